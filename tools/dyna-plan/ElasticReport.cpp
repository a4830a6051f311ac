//===- ElasticReport.cpp - Describes other cuts and fewer ranks -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "tools/dyna-plan/ElasticPlans.h"

#include <algorithm>

namespace dyna {
namespace {

/// Returns the cut as text: "4+3+3", or its replacement.
std::string cutText(const ElasticRow &row) {
  std::string text;
  for (int layers : row.cut)
    text += (text.empty() ? "" : "+") + std::to_string(layers);
  return text.empty() ? "-" : text;
}

std::string earnedText(const ElasticRow &row) {
  if (row.movedBytes == 0)
    return "-";
  return row.stepsToEarn < 0 ? "never" : std::to_string(row.stepsToEarn);
}

/// Formats a table: columns are as wide as their widest cell, and two spaces
/// apart.
std::string tableOf(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto &row : rows)
    for (size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      std::string cell = row[c];
      const std::string gap(widths[c] - cell.size(), ' ');
      line += c == 0 ? cell + gap : "  " + gap + cell;
    }
    text += line + "\n";
  }
  return text;
}

std::string percent(double share) { return formatText("%.1f %%", 100 * share); }

std::vector<std::string> cellsOf(const ElasticRow &row,
                                 const ElasticRow &present) {
  const bool isPresent = &row == &present;
  std::vector<std::string> cells = {
      row.name,
      cutText(row),
      formatText("%s%.4g s", row.isSimulated ? "" : "~", row.stepSeconds),
      formatText("%.2fx", present.stepSeconds / row.stepSeconds),
      isPresent ? "-" : formatBytes(row.movedBytes),
      isPresent ? "-" : formatText("%.4g s", row.moveSeconds),
      isPresent ? "-" : earnedText(row)};
  if (row.isSimulated)
    for (double share : {row.idle.all(), row.idle.inherent, row.idle.imbalance,
                         row.idle.network})
      cells.push_back(percent(share));
  else
    cells.insert(cells.end(), 4, "-");
  return cells;
}

std::string refusalsOf(const std::vector<ElasticRow> &rows) {
  std::string text;
  for (const ElasticRow &row : rows)
    if (!row.refusal.empty())
      text += row.name + ": " + row.refusal + "\n";
  return text;
}

std::string balancedTable(const ElasticReport &report) {
  std::vector<std::vector<std::string>> rows = {
      {"policy", "cut", "step", "gain", "moved", "move", "earned after", "idle",
       "inherent", "imbalance", "network"}};
  rows.push_back(cellsOf(report.present, report.present));
  for (const ElasticRow &row : report.balanced)
    if (row.refusal.empty())
      rows.push_back(cellsOf(row, report.present));
  return tableOf(rows) + refusalsOf(report.balanced);
}

std::string packedTable(const ElasticReport &report) {
  std::vector<std::vector<std::string>> rows = {
      {"ranks", "cut", "step", "tokens/s", "per rank", "peak", "fits", "moved",
       "move", "idle"}};
  auto add = [&](const ElasticRow &row) {
    rows.push_back(
        {std::to_string(row.ranks), cutText(row),
         formatText("%.4g s", row.stepSeconds),
         formatText("%.0f", row.tokensPerSecond),
         formatText("%.0f", row.tokensPerSecond / row.ranks),
         formatBytes(row.peakBytes), row.fits ? "yes" : "no",
         &row == &report.present ? "-" : formatBytes(row.movedBytes),
         &row == &report.present ? "-" : formatText("%.4g s", row.moveSeconds),
         percent(row.idle.all())});
  };
  add(report.present);
  for (const ElasticRow &row : report.packed)
    if (row.refusal.empty())
      add(row);
  return tableOf(rows) + refusalsOf(report.packed);
}

std::string loadsText(const std::vector<double> &loads) {
  std::string text;
  for (double load : loads)
    text += formatText(" %.4g", load);
  return text;
}

std::string describeLoads(const std::vector<ElasticRow> &rows,
                          const ElasticRow &present) {
  std::string text;
  for (const ElasticRow &row : rows)
    if (row.refusal.empty())
      text += formatText(
          "%s: load of stages in seconds, before%s, after%s%s%s%s\n", row.name,
          loadsText(present.loads), loadsText(row.loads),
          row.rounds > 0 ? formatText("; %s", countOf(row.rounds, "round"))
                         : std::string(),
          row.note.empty() ? "" : "; ", row.note);
  return text;
}

JsonObject jsonOf(const char *kind, const ElasticRow &row) {
  JsonObject object;
  object.add(kind, row.name);
  if (!row.refusal.empty())
    return object.add("refused", row.refusal);
  JsonArray cut, loads;
  for (int layers : row.cut)
    cut.add(layers);
  for (double load : row.loads)
    loads.add(jsonRounded(load, 8));
  object.add("strategy", row.strategy)
      .add("cut", cut)
      .add("simulated", row.isSimulated)
      .add("ranks", row.ranks)
      .add("loads", loads)
      .add("step_seconds", jsonRounded(row.stepSeconds, 8))
      .add("tokens_per_second", jsonRounded(row.tokensPerSecond, 8))
      .add("peak_bytes", row.peakBytes)
      .add("fits", row.fits)
      .add("moved_bytes", row.movedBytes)
      .add("move_seconds", jsonRounded(row.moveSeconds, 8))
      .add("steps_to_earn", row.stepsToEarn)
      .add("rounds", row.rounds);
  if (row.isSimulated)
    object.add("idle", JsonObject()
                           .add("inherent", jsonRounded(row.idle.inherent, 6))
                           .add("imbalance", jsonRounded(row.idle.imbalance, 6))
                           .add("network", jsonRounded(row.idle.network, 6)));
  if (!row.note.empty())
    object.add("note", row.note);
  return object;
}

} // namespace

std::string describeElastic(const ElasticReport &report, bool isLong) {
  std::string text = formatText("present: %s\n", report.present.strategy);
  if (!report.balanced.empty())
    text += balancedTable(report);
  if (isLong)
    text += describeLoads(report.balanced, report.present);
  if (!report.packed.empty())
    text += packedTable(report);
  if (!isLong)
    return text;
  text += describeLoads(report.packed, report.present);
  for (const EmptiedRanks &one : report.emptied)
    text +=
        formatText("%s into %d: %s left after %s%s\n", one.policy, one.wanted,
                   countOf(one.left, "rank"), countOf(one.moves, "move"),
                   one.keepsOrder ? "" : ", in another order of layers");
  return text;
}

std::string elasticJson(const ElasticReport &report) {
  std::string text = jsonOf("present", report.present).text() + "\n";
  for (const ElasticRow &row : report.balanced)
    text += jsonOf("rebalance", row).text() + "\n";
  for (const ElasticRow &row : report.packed)
    text += jsonOf("repack", row).text() + "\n";
  for (const EmptiedRanks &one : report.emptied)
    text += JsonObject()
                .add("policy", one.policy)
                .add("wanted", one.wanted)
                .add("left", one.left)
                .add("moves", one.moves)
                .add("keeps_order", one.keepsOrder)
                .text() +
            "\n";
  return text;
}

} // namespace dyna
