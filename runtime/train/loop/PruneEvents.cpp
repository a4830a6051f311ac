//===- PruneEvents.cpp - Prunes weights while a run trains ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/PruneEvents.h"

#include "runtime/base/text/Text.h"
#include "runtime/elastic/prune/PrunedParameters.h"
#include "runtime/train/files/Metrics.h"
#include "runtime/train/files/Progress.h"

namespace dyna {

/// Returns how many parameters have masks and may come in sparse form.
static int acceptedBy(const Model &model) {
  int accepted = 0;
  for (int p = 0; p < model.parameters(); ++p)
    accepted += model.hasMask(p) && model.acceptsSparse(p);
  return accepted;
}

static Status checkSparse(const Model &model, const TrainOptions &options) {
  if (options.sparseFrom == 0 || acceptedBy(model) > 0)
    return Status::ok();
  return Status::invalidArgument(
      "--sparse-from is about weights in sparse form, and this binary computes "
      "pruned weights as dense ones: compile it with dynac --sparse, or leave "
      "out --sparse-from");
}

static StatusOr<std::vector<bool>> parametersOf(const Model &model,
                                                const PruneFlag &flag) {
  if (flag.structure == PrunedStructure::Element)
    return prunedParameters(model, flag.parameters);
  DYNA_ASSIGN_OR_RETURN(const auto units, prunedUnits(model, flag.structure));
  return parametersOf(model, units);
}

Status setMasks(Model &model, const TrainOptions &options) {
  if (options.prune.empty()) {
    if (options.sparseFrom == 0)
      return Status::ok();
    return Status::invalidArgument("--sparse-from is about weights that "
                                   "--prune prunes: give both, or none");
  }
  DYNA_ASSIGN_OR_RETURN(const PruneFlag flag, parsePruneFlag(options.prune));
  auto masked = parametersOf(model, flag);
  if (!masked.isOk())
    return Status(masked.status().code(),
                  "--prune" + masked.status().message().substr(
                                  std::string_view("pruning").size()));
  model.setMasks(std::move(*masked));
  model.setScores(flag.hasScores());
  return checkSparse(model, options);
}

PruneEvents::PruneEvents(const TrainOptions &options, const Model &model,
                         const PrunedSoFar &resumed)
    : pruned_(resumed) {
  for (int p = 0; p < model.parameters(); ++p)
    if (model.hasMask(p)) {
      ++parameters_;
      weights_ += model.elements(p);
    }
  accepted_ = acceptedBy(model);
  scoreBytes_ = elementBytes(model.masterType());
  sparseFrom_ = options.sparseFrom > 0
                    ? options.sparseFrom
                    : sparseCrossing(model.manifest().compute_type());
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
  order.structure = flag_->structure;
  order.isByScore = flag_->isByGradient;
  order.regrow = flag_->regrow;
  PruneResult result;
  DYNA_RETURN_IF_ERROR(ranks.prune(order, result));
  if (!result.refusal.empty())
    return Status::invalidArgument(
        formatText("before step %d: %s", step + 1, result.refusal));
  pruned_ = {order.sparsity, result.weights, result.survivors, step};
  lastRegrown_ = result.regrown;
  lastUnits_ = result.units;
  lastSurvivingUnits_ = result.survivingUnits;
  lastStep_ = step;
  lastSeconds_ = result.seconds;
  seconds_ += result.seconds;
  ++events_;
  countForms(ranks);
  return ranks.countUnits(order.structure);
}

void PruneEvents::countForms(RankTeam &ranks) {
  sparse_ = 0;
  formBytes_ = 0;
  if (!ranks.executor(0).hasPlace())
    return;
  const WeightForms &forms = ranks.executor(0).seat().forms();
  sparse_ = forms.count();
  formBytes_ = forms.bytes();
}

double PruneEvents::zeroShare() const {
  if (pruned_.weights == 0 || flag_->structure == PrunedStructure::Element)
    return pruned_.sparsity;
  return 1 - static_cast<double>(pruned_.survivors) /
                 static_cast<double>(pruned_.weights);
}

void PruneEvents::addTo(StepMetrics &metrics) const {
  if (!isOn())
    return;
  PruningMetrics &own = metrics.pruning.emplace();
  own.sparsity = zeroShare();
  own.survivors = pruned_.weights > 0 ? pruned_.survivors : weights_;
  if (metrics.step == lastStep_ + 1)
    own.eventSeconds = lastSeconds_;
}

std::vector<std::string> PruneEvents::describeStart(int64_t steps) const {
  std::vector<std::string> lines;
  if (!isOn())
    return lines;
  const std::string masked = formatText(
      "--prune: %s weights of %s are masked: those that are pruned stay zero, ",
      groupDigits(weights_), countOf(parameters_, "parameter"));
  lines.push_back(
      accepted_ > 0
          ? masked + formatText("and products with %d of the parameters skip "
                                "them once %g %% of a rank's part are zero",
                                accepted_, 100 * sparseFrom_)
          : masked + "and products are computed as for dense weights "
                     "(dynac --sparse compiles others)");
  if (flag_->hasScores())
    lines.push_back(formatText(
        "--prune: %s takes a number beside each of them: %.1f MB over all "
        "ranks, without replicas",
        flag_->isByGradient ? "criterion=gradient" : "regrow=",
        1e-6 * static_cast<double>(weights_ * scoreBytes_)));
  if (flag_->schedule.until > steps)
    lines.push_back(formatText(
        "--prune: the last event is at step %d, but the run ends with step %d",
        flag_->schedule.until, steps));
  return lines;
}

std::string PruneEvents::describeEvent() const {
  return formatText("from step %d on, %.2f %% of %s weights are zero, and %s "
                    "survive; %.1f ms",
                    lastStep_ + 1, 100 * zeroShare(),
                    groupDigits(pruned_.weights),
                    groupDigits(pruned_.survivors), 1e3 * lastSeconds_) +
         (lastUnits_ == 0
              ? ""
              : formatText("; these are %s of %s %ss",
                           groupDigits(lastSurvivingUnits_),
                           groupDigits(lastUnits_), nameOf(flag_->structure))) +
         (lastRegrown_ == 0
              ? ""
              : formatText("; %s of these were pruned before and start at zero",
                           groupDigits(lastRegrown_))) +
         (accepted_ == 0
              ? ""
              : formatText("; %d of %d parameters are in sparse form on the "
                           "first rank, %.1f MB",
                           sparse_, accepted_,
                           1e-6 * static_cast<double>(formBytes_)));
}

std::string PruneEvents::describeEnd() const {
  if (pruned_.weights == 0)
    return "no event yet";
  // All events were before the run was resumed.
  if (events_ == 0)
    return formatText(
        "%.2f %% of %s weights are zero; no event since it resumed",
        100 * zeroShare(), groupDigits(pruned_.weights));
  return formatText("%.2f %% of %s weights are zero; %s in %.1f ms",
                    100 * zeroShare(), groupDigits(pruned_.weights),
                    countOf(events_, "event"), 1e3 * seconds_);
}

} // namespace dyna
