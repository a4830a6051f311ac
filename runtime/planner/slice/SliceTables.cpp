//===- SliceTables.cpp - Tabulates costs of slices by their ends ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/SliceTables.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double mostCosts = 1 << 26;

/// Rows of the slices of `joined` samples, without costs.
JoinedTable layOut(const std::vector<LengthGroup> &groups, int64_t joined) {
  JoinedTable table;
  table.joined = joined;
  for (const LengthGroup &group : groups)
    if (group.count() >= joined)
      table.units = std::max(table.units, group.units);
  table.offsets = {0, 0};
  for (int64_t row = 1; row <= table.units; ++row)
    table.offsets.push_back(table.offsets.back() + row);
  for (const LengthGroup &group : groups) {
    if (group.count() < joined || group.rest == 0) {
      table.tails.push_back(group.count() < joined ? -1 : 0);
      continue;
    }
    table.tails.push_back(table.rows());
    table.offsets.push_back(table.offsets.back() + group.units + 1);
  }
  table.firsts.assign(table.rows(), 0);
  return table;
}

/// Entries of the tables of all numbers of joined samples.
double countCosts(const std::vector<LengthGroup> &groups,
                  const SliceProblem &problem, int64_t mostJoined) {
  double costs = 0;
  for (int64_t joined = 1; joined <= mostJoined; ++joined) {
    double units = 0;
    for (const LengthGroup &group : groups) {
      if (group.count() < joined)
        continue;
      units = std::max(units, static_cast<double>(group.units));
      costs += group.rest > 0 ? static_cast<double>(group.units) + 1 : 0;
    }
    costs += units * (units + 1) / 2;
  }
  return costs * problem.costs.modes;
}

/// Fills tables with costs.
class TableFiller {
public:
  TableFiller(const SliceProblem &problem, SliceTables &tables)
      : problem_(problem), options_(problem.options), tables_(tables),
        costs_(problem.costs.modes) {}

  Status fill(JoinedTable &table);
  Status fillBundles();

private:
  Status fillRow(JoinedTable &table, int64_t row, int64_t end);
  void allow(std::vector<SliceCost> &costs, bool hasRoom) const;
  void drop(JoinedTable &table) const;
  void note(const SliceCost &cost);

  const SliceProblem &problem_;
  const SliceOptions &options_;
  SliceTables &tables_;
  std::vector<SliceCost> costs_; ///< [mode], of one slice
};

/// Makes costs infinite that no plan needs.
void TableFiller::allow(std::vector<SliceCost> &costs, bool hasRoom) const {
  for (SliceCost &cost : costs) {
    if (options_.joinsDirections)
      cost.forward += cost.backward, cost.backward = 0;
    if (!hasRoom || cost.bytes > options_.sliceBytes)
      cost.forward = cost.backward = infinity;
  }
  const bool countsBytes =
      options_.totalBytes < std::numeric_limits<int64_t>::max();
  for (size_t mode = 0; mode < costs.size(); ++mode)
    for (size_t other = 0; other < costs.size(); ++other) {
      const SliceCost &a = costs[mode], &b = costs[other];
      if (other == mode || b.forward > a.forward || b.backward > a.backward ||
          (countsBytes && b.bytes > a.bytes))
        continue;
      const bool isEqual = b.forward == a.forward && b.backward == a.backward &&
                           (!countsBytes || b.bytes == a.bytes);
      if (!isEqual || other < mode)
        costs[mode].forward = costs[mode].backward = infinity;
    }
}

void TableFiller::note(const SliceCost &cost) {
  if (std::isinf(cost.forward))
    return;
  tables_.largestForward = std::max(tables_.largestForward, cost.forward);
  tables_.largestBackward = std::max(tables_.largestBackward, cost.backward);
}

Status TableFiller::fillRow(JoinedTable &table, int64_t row, int64_t end) {
  for (int64_t begin = 0; begin < table.count(row); ++begin) {
    SliceShape shape;
    shape.samples = table.joined;
    shape.begin = begin * options_.grain;
    shape.tokens = end - shape.begin;
    for (int mode = 0; mode < problem_.costs.modes; ++mode) {
      shape.mode = mode;
      DYNA_ASSIGN_OR_RETURN(costs_[mode], costOfSlice(problem_, shape));
    }
    allow(costs_, shape.tokens <= options_.sliceTokens / table.joined);
    for (int mode = 0; mode < problem_.costs.modes; ++mode) {
      const int64_t at = table.offsets[row] + begin;
      table.modes[mode].forward[at] = costs_[mode].forward;
      table.modes[mode].backward[at] = costs_[mode].backward;
      if (!table.modes[mode].bytes.empty())
        table.modes[mode].bytes[at] = costs_[mode].bytes;
      note(costs_[mode]);
    }
  }
  return Status::ok();
}

/// Returns the smallest values of each row up to each begin; empty if no value rises.
std::vector<double> lowestOf(const JoinedTable &table,
                             const std::vector<double> &values) {
  bool rises = false;
  for (int64_t row = 1; row < table.rows() && !rises; ++row)
    for (int64_t at = table.offsets[row] + 1; at < table.offsets[row + 1]; ++at)
      rises |= values[at] > values[at - 1];
  if (!rises)
    return {};
  std::vector<double> lowest = values;
  for (int64_t row = 1; row < table.rows(); ++row)
    for (int64_t at = table.offsets[row] + 1; at < table.offsets[row + 1]; ++at)
      lowest[at] = std::min(lowest[at], lowest[at - 1]);
  return lowest;
}

/// Drops modes that no slice may have.
void TableFiller::drop(JoinedTable &table) const {
  std::vector<ModeTable> kept;
  for (int mode = 0; mode < problem_.costs.modes; ++mode) {
    ModeTable &own = table.modes[mode];
    if (std::all_of(own.forward.begin(), own.forward.end(),
                    [](double seconds) { return std::isinf(seconds); }))
      continue;
    own.lowForward = lowestOf(table, own.forward);
    own.lowBackward = lowestOf(table, own.backward);
    table.modeNumbers.push_back(mode);
    kept.push_back(std::move(own));
  }
  table.modes = std::move(kept);
}

Status TableFiller::fill(JoinedTable &table) {
  const auto costs = static_cast<size_t>(table.offsets.back());
  table.modes.resize(problem_.costs.modes);
  for (ModeTable &mode : table.modes) {
    mode.forward.resize(costs);
    mode.backward.resize(costs);
    if (options_.totalBytes < std::numeric_limits<int64_t>::max())
      mode.bytes.resize(costs);
  }
  for (int64_t row = 1; row <= table.units; ++row)
    DYNA_RETURN_IF_ERROR(fillRow(table, row, row * options_.grain));
  for (size_t group = 0; group < table.tails.size(); ++group)
    if (table.tails[group] > 0)
      DYNA_RETURN_IF_ERROR(
          fillRow(table, table.tails[group], tables_.groups[group].tokens));
  drop(table);
  return Status::ok();
}

Status TableFiller::fillBundles() {
  for (size_t bundle = 0; bundle < problem_.bundles.size(); ++bundle) {
    BundleCosts own;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int mode = 0; mode < problem_.costs.modes; ++mode) {
      DYNA_ASSIGN_OR_RETURN(
          SliceCost cost,
          costOfBundle(problem_, problem_.bundles[bundle], mode));
      own.modes.push_back(cost);
      least = std::min(least, cost.bytes);
    }
    if (least > options_.sliceBytes)
      return Status::resourceExhausted(
          formatText("bundle %d keeps %s, but the limit is %s", bundle,
                     formatBytes(least), formatBytes(options_.sliceBytes)));
    allow(own.modes, true);
    for (const SliceCost &cost : own.modes)
      note(cost);
    tables_.bundles.push_back(std::move(own));
  }
  return Status::ok();
}

} // namespace

std::vector<LengthGroup> groupLengths(const SliceProblem &problem) {
  std::vector<bool> isWhole(problem.lengths.size(), false);
  for (const std::vector<int64_t> &bundle : problem.bundles)
    for (int64_t sample : bundle)
      isWhole[sample] = true;
  std::map<int64_t, LengthGroup> groups;
  for (size_t sample = 0; sample < problem.lengths.size(); ++sample) {
    if (isWhole[sample])
      continue;
    const int64_t tokens = problem.lengths[sample];
    LengthGroup &group = groups[tokens];
    group.tokens = tokens;
    group.units = tokens / problem.options.grain;
    group.rest = tokens % problem.options.grain;
    group.samples.push_back(static_cast<int64_t>(sample));
  }
  std::vector<LengthGroup> result;
  for (auto &[tokens, group] : groups)
    result.push_back(std::move(group));
  return result;
}

StatusOr<SliceTables> makeSliceTables(const SliceProblem &problem) {
  DYNA_RETURN_IF_ERROR(checkSlices(problem));
  SliceTables tables;
  tables.grain = problem.options.grain;
  tables.groups = groupLengths(problem);
  int64_t mostJoined = 0;
  for (const LengthGroup &group : tables.groups)
    mostJoined = std::max(mostJoined,
                          std::min(group.count(), problem.options.mostJoined));
  double costs = countCosts(tables.groups, problem, mostJoined);
  if (costs > mostCosts)
    return Status::invalidArgument(
        formatText("slices of up to %d tokens with grain %d, up to %d samples "
                   "joined, in %d modes have %.3g costs, at most %.3g: choose "
                   "a larger grain",
                   tables.groups.back().tokens, problem.options.grain,
                   mostJoined, problem.costs.modes, costs, mostCosts));
  TableFiller filler(problem, tables);
  for (int64_t joined = 1; joined <= mostJoined; ++joined) {
    tables.tables.push_back(layOut(tables.groups, joined));
    DYNA_RETURN_IF_ERROR(filler.fill(tables.tables.back()));
  }
  DYNA_RETURN_IF_ERROR(filler.fillBundles());
  return tables;
}

} // namespace dyna
