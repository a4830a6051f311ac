//===- PipelineMemory.cpp - Checks that micro-batches fit a stage ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/PipelineMemory.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/order/schedules/BackwardOrder.h"

namespace dyna {
namespace {

/// Returns what micro-batches [begin, end) have of samples, together.
MicroBatchContents contentsOf(const PipelineProblem &problem, int begin,
                              int end) {
  MicroBatchContents all;
  if (problem.contents.empty())
    return all;
  all = problem.contents[begin];
  for (int m = begin + 1; m < end; ++m) {
    const MicroBatchContents &one = problem.contents[m];
    all.firstSample = std::min(all.firstSample, one.firstSample);
    all.lastSample = std::max(all.lastSample, one.lastSample);
    all.tokens += one.tokens;
  }
  return all;
}

/// Returns "sample 3 (512 tokens)"; nothing if that is not known.
std::string describe(const MicroBatchContents &contents) {
  const bool isOne = contents.firstSample == contents.lastSample;
  return isOne
             ? formatText("sample %d (%d tokens)", contents.firstSample,
                          contents.tokens)
             : formatText("samples %d to %d (%d tokens)", contents.firstSample,
                          contents.lastSample, contents.tokens);
}

/// Says that micro-batches [begin, end), which no order takes apart, do not fit a stage.
Status refuse(const PipelineProblem &problem, int stage, int begin, int end,
              int64_t held) {
  const int64_t limit = problem.limits[stage];
  const MicroBatchContents contents = contentsOf(problem, begin, end);
  const bool isKnown = contents.firstSample >= 0;
  std::string text;
  if (end == begin + 1)
    text = formatText("micro-batch %d%s alone keeps", begin,
                      isKnown ? " with " + describe(contents) : "");
  else
    text =
        formatText("the %d slices%s, micro-batches %d to %d, keep", end - begin,
                   isKnown ? " of " + describe(contents) : "", begin, end - 1);
  text += formatText(" %s on stage %d, but there are %s", formatBytes(held),
                     stage, formatBytes(limit));
  // Bytes grow with tokens, except for rounding.
  if (isKnown)
    text +=
        formatText(", enough for about %d tokens",
                   static_cast<int64_t>(static_cast<double>(limit) /
                                        static_cast<double>(held) *
                                        static_cast<double>(contents.tokens)));
  text += end == begin + 1
              ? ": use smaller micro-batches or more recomputation"
              : ": all slices of a sample are kept until its backward; use "
                "shorter samples, more recomputation or more stages";
  return Status::resourceExhausted(text);
}

} // namespace

Status checkMemory(const PipelineProblem &problem) {
  if (problem.limits.empty())
    return Status::ok();
  const BackwardOrder order(problem);
  for (int s = 0; s < problem.stages(); ++s) {
    int begin = 0;
    for (int end : order.unitEnds) {
      int64_t held = 0;
      for (int m = begin; m < end; ++m)
        held += problem.heldBytes(s, m);
      if (held > problem.limits[s])
        return refuse(problem, s, begin, end, held);
      begin = end;
    }
  }
  return Status::ok();
}

} // namespace dyna
