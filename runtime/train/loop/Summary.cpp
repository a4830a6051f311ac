//===- Summary.cpp - Writes the table at the end of a run -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Summary.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/train/session/DescribeData.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dyna {
namespace {

void addRow(std::string &text, const char *name, const std::string &value) {
  text += formatText("  %-22s %s\n", name, value);
}

std::string arrow(double before, double after) {
  return formatText("%.4f -> %.4f", before, after);
}

std::string describeLosses(const TrainSummary &summary) {
  const auto &last = summary.lastLosses;
  std::string text =
      arrow(summary.firstLoss, std::accumulate(last.begin(), last.end(), 0.0) /
                                   static_cast<double>(last.size()));
  if (last.size() > 1)
    text += formatText(" (mean of the last %d steps)", last.size());
  return text;
}

/// Describes the share of padding in the computed tokens, or in those of padded
/// micro-batches. With --plans, steps with and without padding may be mixed.
std::string describePadding(const TrainSummary &summary) {
  auto part = [&](int64_t padded) {
    return 100 * (1 - static_cast<double>(summary.tokens) /
                          static_cast<double>(std::max<int64_t>(padded, 1)));
  };
  return formatText(
      "%.1f %% of the tokens of padded micro-batches",
      part(summary.pads ? summary.takenTokens : summary.paddedTokens));
}

/// Adds how the model has changed while it trained.
void addChanges(std::string &text, const TrainSummary &summary) {
  for (auto [name, what] : {std::pair("pruning", &summary.pruning),
                            {"freezing", &summary.freezing},
                            {"balance", &summary.balance}})
    if (!what->empty())
      addRow(text, name, *what);
}

/// Adds the samples of each strategy and the time of switches.
void addPhases(std::string &text, const Session &session,
               const TrainSummary &summary) {
  const PhaseSummary &phases = summary.phases;
  if (!session.hasRanges() || summary.steps == 0)
    return;
  const auto steps = static_cast<double>(summary.steps);
  for (const LengthRange &range : session.graphs->ranges().ranges()) {
    const auto found = phases.strategies.find(range.name);
    const PhaseSummary::Strategy own = found == phases.strategies.end()
                                           ? PhaseSummary::Strategy()
                                           : found->second;
    addRow(text, ("strategy " + range.name).c_str(),
           formatText("%s sample%s in %d of %s%s", groupDigits(own.samples),
                      own.samples == 1 ? "" : "s", own.steps,
                      countOf(summary.steps, "step"),
                      own.merged > 0
                          ? formatText(", %s of them merged from other ranges",
                                       groupDigits(own.merged))
                          : ""));
  }
  addRow(text, "switches",
         formatText("%.1f phases and %s a step, %.1f %% of the time",
                    static_cast<double>(phases.phases) / steps,
                    formatBytes(phases.switchBytes / summary.steps),
                    summary.seconds > 0
                        ? 100 * phases.switchSeconds / summary.seconds
                        : 0.0));
}

/// Adds rows about schedules other than --pipeline, and about slices.
void addPlans(std::string &text, const TrainSummary &summary) {
  if (summary.otherSchedules > 0)
    addRow(text, "schedule",
           formatText("%s had another than --pipeline, which fits or is "
                      "faster; --metrics say which",
                      countOf(summary.otherSchedules, "step")));
  if (summary.slicedSteps > 0)
    addRow(text, "slices",
           formatText("%s in %s, in %s",
                      countOf(summary.slices.samples, "sample"),
                      countOf(summary.slices.slices, "slice"),
                      countOf(summary.slicedSteps, "step")));
}

std::string describeStop(const TrainOptions &options,
                         const TrainSummary &summary) {
  if (summary.isWhole)
    return " after the last step, in the evaluation" +
           std::string(options.save.empty()
                           ? "; nothing was saved, as --save was not given"
                           : "; the model is saved");
  if (options.save.empty())
    return "; nothing was saved, as --save was not given";
  const std::string dropped =
      summary.hasDroppedStep ? "; the step under way was dropped" : "";
  if (summary.savedTo.empty())
    return " before a step was done; nothing was saved" + dropped;
  return " after step " + std::to_string(summary.firstStep + summary.steps) +
         dropped + "; continue with --resume " + options.save;
}

} // namespace

std::string summaryText(const Session &session, const TrainSummary &summary) {
  const TrainOptions &options = session.options;
  std::string text = session.model->manifest().model() + "\n";
  addRow(text, "data", nameData(session));
  if (std::string longer = describeLongDocuments(session); !longer.empty())
    addRow(text, "long documents", longer);
  addRow(text, "steps",
         formatText("%s (%s tokens in %s)", groupDigits(summary.steps),
                    groupDigits(summary.tokens),
                    Progress::formatDuration(summary.seconds)));
  if (!summary.lastLosses.empty()) // a skipped step has no losses
    addRow(text, "training loss", describeLosses(summary));
  const auto &before = summary.heldOutBefore, &after = summary.heldOutAfter;
  if (before && after) {
    addRow(text, "held-out loss", arrow(before->loss, after->loss));
    if (after->bitsPerByte > 0)
      addRow(text, "held-out bits per byte",
             arrow(before->bitsPerByte, after->bitsPerByte));
  }
  if (!before && after)
    addRow(text, "held-out loss", formatText("%.4f", after->loss));
  if (summary.seconds > 0)
    addRow(
        text, "speed",
        formatText("%s tokens/s, %.1f GFLOP/s",
                   groupDigits(std::llround(
                       static_cast<double>(summary.tokens) / summary.seconds)),
                   summary.flops / summary.seconds / 1e9));
  addPhases(text, session, summary);
  if (!summary.predictions.empty()) {
    addRow(text, "error of predictions",
           summary.predictions.describe("step", "steps"));
    addRow(text, "ranks without a core",
           formatText("%.1f %% of the time",
                      100 * summary.coreWaitSeconds / summary.seconds));
  }
  if (summary.steps > 0)
    addRow(text, options.pad || summary.pads ? "padding" : "padding avoided",
           describePadding(summary));
  addPlans(text, summary);
  addChanges(text, summary);
  addRow(text, "peak memory", formatBytes(session.peakBytes()));
  if (!summary.savedTo.empty())
    addRow(text, "model", printable(summary.savedTo));
  if (!options.metrics.empty())
    addRow(text, "metrics", options.metrics);
  if (!options.trace.empty())
    addRow(text, "trace", options.trace);
  if (!options.gradNorms.empty())
    addRow(text, "gradient norms", options.gradNorms);
  if (summary.stoppedBy)
    text += "stopped by a signal" + describeStop(options, summary) + "\n";
  return text;
}

std::string evaluationText(const Session &session,
                           const Evaluation &evaluation) {
  std::string text = "evaluation\n";
  addRow(text, "data", nameData(session));
  addRow(text, "targets",
         formatText("%s (%s tokens in %s)", groupDigits(evaluation.targets),
                    groupDigits(evaluation.tokens),
                    Progress::formatDuration(evaluation.seconds)));
  addRow(text, "loss", formatText("%.6f", evaluation.loss));
  for (const auto &[name, loss] : evaluation.losses)
    addRow(text, formatText("loss of %s", name).c_str(),
           formatText("%.6f", loss));
  addRow(text, "perplexity",
         formatText("%.4f", std::exp(evaluation.headLoss())));
  if (evaluation.bitsPerByte > 0)
    addRow(text, "bits per byte", formatText("%.4f", evaluation.bitsPerByte));
  return text;
}

} // namespace dyna
