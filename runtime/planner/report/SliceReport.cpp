//===- SliceReport.cpp - Describes the slices of a plan -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/SliceReport.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace dyna {
namespace {

struct Seconds {
  double forward = 0, backward = 0;
};

/// Returns the longest time of a rank, by micro-batch.
std::vector<Seconds> secondsOf(const plan::Plan &plan, const PlanWork &work) {
  std::vector<Seconds> most(plan.microBatches.size());
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    std::unordered_map<int, Seconds> own;
    const auto &program = plan.ranks[rank].instructions;
    for (size_t i = 0; i < program.size(); ++i) {
      const plan::Instruction &instruction = program[i];
      if (!isPerMicroBatch(instruction.op) || roleOf(instruction) < 0)
        continue;
      Seconds &sum = own[instruction.microBatch];
      (passOf(instruction.op) == Pass::Forward ? sum.forward : sum.backward) +=
          work.steps(rank)[static_cast<int>(i)].seconds;
    }
    for (const auto &[microBatch, sum] : own) {
      most[microBatch].forward =
          std::max(most[microBatch].forward, sum.forward);
      most[microBatch].backward =
          std::max(most[microBatch].backward, sum.backward);
    }
  }
  return most;
}

/// Describes a cut: "2048 behind 1024 (0.5 + 1 s)".
std::string describeCut(const ReportedCut &cut) {
  std::string text;
  for (const ReportedSlice &slice : cut.slices)
    text +=
        formatText("%s%d behind %d (%.3g + %.3g s)", text.empty() ? "" : ", ",
                   slice.tokens, slice.context, slice.forward, slice.backward);
  return text;
}

} // namespace

int64_t ReportedCut::tokens() const {
  return slices.empty() ? 0 : slices.back().context + slices.back().tokens;
}

std::vector<ReportedCut> reportCuts(const plan::Plan &plan,
                                    const PlanWork &work) {
  if (std::none_of(plan.microBatches.begin(), plan.microBatches.end(),
                   continuesSample))
    return {};
  const std::vector<Seconds> seconds = secondsOf(plan, work);
  std::vector<ReportedCut> all;
  std::unordered_map<int64_t, size_t> places;
  for (size_t m = 0; m < plan.microBatches.size(); ++m)
    for (const plan::Segment &segment : plan.microBatches[m].segments) {
      auto [place, isNew] = places.try_emplace(segment.sample, all.size());
      if (isNew)
        all.push_back({segment.sample, plan.microBatches[m].replica, {}});
      all[place->second].slices.push_back({segment.length, segment.begin,
                                           seconds[m].forward,
                                           seconds[m].backward});
    }
  all.erase(std::remove_if(
                all.begin(), all.end(),
                [](const ReportedCut &cut) { return cut.slices.size() < 2; }),
            all.end());
  for (ReportedCut &cut : all)
    std::sort(cut.slices.begin(), cut.slices.end(),
              [](const ReportedSlice &a, const ReportedSlice &b) {
                return a.context < b.context;
              });
  return all;
}

JsonArray cutsJson(const std::vector<ReportedCut> &cuts) {
  JsonArray all;
  for (const ReportedCut &cut : cuts) {
    JsonArray slices;
    for (const ReportedSlice &slice : cut.slices)
      slices.add(JsonObject()
                     .add("tokens", slice.tokens)
                     .add("context", slice.context)
                     .add("forward_seconds", jsonRounded(slice.forward, 9))
                     .add("backward_seconds", jsonRounded(slice.backward, 9)));
    all.add(JsonObject()
                .add("sample", cut.sample)
                .add("replica", cut.replica)
                .add("slices", slices));
  }
  return all;
}

std::string describeCuts(const std::vector<ReportedCut> &cuts) {
  constexpr size_t mostLines = 16;
  std::vector<std::pair<const ReportedCut *, int64_t>> lines;
  std::map<std::vector<int64_t>, size_t> lineOf; // by the tokens of slices
  for (const ReportedCut &cut : cuts) {
    std::vector<int64_t> tokens;
    for (const ReportedSlice &slice : cut.slices)
      tokens.push_back(slice.tokens);
    auto [line, isNew] = lineOf.try_emplace(std::move(tokens), lines.size());
    if (isNew)
      lines.emplace_back(&cut, 0);
    ++lines[line->second].second;
  }
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), mostLines); ++i)
    text += formatText("  %d sample%s of %d tokens in slices: %s\n",
                       lines[i].second, lines[i].second == 1 ? "" : "s",
                       lines[i].first->tokens(), describeCut(*lines[i].first));
  if (lines.size() > mostLines)
    text += formatText("  and %d other cuts\n", lines.size() - mostLines);
  return text;
}

} // namespace dyna
