//===- PruneEvents.cpp - Prunes weights while a run trains ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/PruneEvents.h"

#include "runtime/base/Text.h"
#include "runtime/elastic/prune/PrunedParameters.h"
#include "runtime/train/files/Metrics.h"
#include "runtime/train/files/Progress.h"

namespace dyna {

Status setMasks(Model &model, const TrainOptions &options) {
  if (options.prune.empty())
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(const PruneFlag flag, parsePruneFlag(options.prune));
  auto masked = prunedParameters(model, flag.parameters);
  if (!masked.isOk())
    return Status(masked.status().code(), "--" + masked.status().message());
  model.setMasks(std::move(*masked));
  return Status::ok();
}

PruneEvents::PruneEvents(const TrainOptions &options, const Model &model,
                         const PrunedSoFar &resumed)
    : pruned_(resumed) {
  for (int p = 0; p < model.parameters(); ++p)
    if (model.hasMask(p)) {
      ++parameters_;
      weights_ += model.elements(p);
    }
  if (options.prune.empty())
    return;
  if (auto flag = parsePruneFlag(options.prune); flag.isOk())
    flag_ = *flag;
}

Status PruneEvents::prune(RankTeam &ranks, int64_t step) {
  PruneOrder order;
  order.step = step;
  order.sparsity = flag_->schedule.sparsityAt(step + 1);
  order.isPerLayer = flag_->isPerLayer;
  PruneResult result;
  DYNA_RETURN_IF_ERROR(ranks.prune(order, result));
  if (!result.refusal.empty())
    return Status::invalidArgument(
        formatText("before step %d: %s", step + 1, result.refusal));
  pruned_ = {order.sparsity, result.weights, result.survivors};
  lastStep_ = step;
  lastSeconds_ = result.seconds;
  seconds_ += result.seconds;
  ++events_;
  return Status::ok();
}

void PruneEvents::addTo(StepMetrics &metrics) const {
  if (!isOn())
    return;
  PruningMetrics &own = metrics.pruning.emplace();
  own.sparsity = pruned_.sparsity;
  own.survivors = pruned_.weights > 0 ? pruned_.survivors : weights_;
  if (metrics.step == lastStep_ + 1)
    own.eventSeconds = lastSeconds_;
}

std::vector<std::string> PruneEvents::describeStart(int64_t steps) const {
  std::vector<std::string> lines;
  if (!isOn())
    return lines;
  lines.push_back(formatText(
      "--prune: %s weights of %s are masked: those that are pruned stay "
      "zero, and products are computed as for dense weights",
      groupDigits(weights_), countOf(parameters_, "parameter")));
  if (flag_->schedule.until > steps)
    lines.push_back(formatText(
        "--prune: the last event is at step %d, but the run ends with step %d",
        flag_->schedule.until, steps));
  return lines;
}

std::string PruneEvents::describeEvent() const {
  return formatText("from step %d on, %.2f %% of %s weights are zero, and %s "
                    "survive; %.1f ms",
                    lastStep_ + 1, 100 * pruned_.sparsity,
                    groupDigits(pruned_.weights),
                    groupDigits(pruned_.survivors), 1e3 * lastSeconds_);
}

std::string PruneEvents::describeEnd() const {
  if (pruned_.weights == 0)
    return "no event yet";
  return formatText("%.2f %% of %s weights are zero; %s in %.1f ms",
                    100 * pruned_.sparsity, groupDigits(pruned_.weights),
                    countOf(events_, "event"), 1e3 * seconds_);
}

} // namespace dyna
