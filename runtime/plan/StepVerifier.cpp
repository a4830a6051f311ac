//===- StepVerifier.cpp - The proof of a step of several graphs -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/StepVerifier.h"

#include "runtime/base/Text.h"
#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/PlanRules.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace dyna {
namespace {

using plan::Instruction;
using PhaseSwitches = SwitchTable::PhaseSwitches;

/// P12.
Status checkSamples(const plan::StepPlan &step,
                    const std::vector<int64_t> &lengths) {
  std::vector<int> phaseOf(lengths.size(), -1);
  for (int k = 0; k < step.phaseCount(); ++k)
    for (int64_t sample : step.phases[k].samples) {
      if (sample < 0 || sample >= static_cast<int64_t>(lengths.size()))
        return refuse(PlanRule::Switched,
                      formatText("phase %d names sample %d of %d", k, sample,
                                 lengths.size()));
      if (phaseOf[sample] >= 0)
        return refuse(PlanRule::Switched,
                      formatText("sample %d is in phase %d and in phase %d",
                                 sample, phaseOf[sample], k));
      phaseOf[sample] = k;
    }
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (phaseOf[sample] < 0)
      return refuse(PlanRule::Switched,
                    formatText("sample %d is in no phase", sample));
  return Status::ok();
}

bool trains(const plan::Plan &plan) {
  for (const plan::RankProgram &program : plan.ranks)
    for (const Instruction &i : program.instructions)
      if (i.op == Instruction::EVALUATE)
        return false;
  return true;
}

/// P12.
Status checkPurposes(const plan::StepPlan &step) {
  int trained = -1, evaluated = -1;
  for (int k = 0; k < step.phaseCount(); ++k) {
    const plan::Plan &plan = step.phases[k].plan;
    if (plan.microBatchCount() > 0)
      (trains(plan) ? trained : evaluated) = k;
  }
  if (trained >= 0 && evaluated >= 0)
    return refuse(PlanRule::Switched,
                  formatText("phase %d trains, but phase %d evaluates", trained,
                             evaluated));
  return Status::ok();
}

/// P13 and P14 of one rank, all phases of which it runs one after another.
class RankSwitches {
public:
  RankSwitches(const SwitchTable &table, const plan::StepPlan &step,
               const std::vector<PhaseSwitches> &phases, bool trains, int rank)
      : table_(table), step_(step), phases_(phases), trains_(trains),
        rank_(rank), values_(phases.size()), gradients_(phases.size()) {}

  Status check(StepPosition &failedAt) {
    for (phase_ = 0; phase_ < step_.phaseCount(); ++phase_) {
      reduced_.clear();
      isTail_ = hasBody_ = false;
      const plan::RankProgram &program = step_.phases[phase_].plan.ranks[rank_];
      for (int index = 0; index < program.count(); ++index)
        if (Status status = this->step(program.instructions[index]);
            !status.isOk()) {
          failedAt = {phase_, {rank_, index}};
          return refused(status, formatText("instruction %d (%s)", index,
                                            describeInstruction(
                                                program.instructions[index])));
        }
      if (Status status = finishPhase(); !status.isOk()) {
        failedAt = {phase_, {rank_, -1}};
        return refused(status, "its end");
      }
    }
    return Status::ok();
  }

private:
  /// Of the buckets of one switch.
  struct State {
    std::set<int> started, waited;
  };

  Status refused(const Status &status, const std::string &where) const {
    std::string what = status.message().substr(std::string("plan: ").size());
    return Status(status.code(), formatText("plan: phase %d rank %d: %s: %s",
                                            phase_, rank_, where, what));
  }

  const ExecutableGraph &graph() const {
    return table_.graph(phases_[phase_].graph);
  }
  const RankView &view() const { return graph().replicaView(rank_); }
  bool isHome() const { return phases_[phase_].graph == table_.home(); }

  /// The switch that an instruction names; null if there is none.
  const GraphSwitch *switchOf(const Instruction &i) const {
    if (i.phase < 0 || i.phase >= step_.phaseCount())
      return nullptr;
    return exchangeOf(i.op).kind == ExchangeKind::ValueSwitch
               ? phases_[i.phase].values
           : trains_ ? phases_[i.phase].gradients
                     : nullptr;
  }
  State &stateOf(const Instruction &i) {
    return exchangeOf(i.op).kind == ExchangeKind::ValueSwitch
               ? values_[i.phase]
               : gradients_[i.phase];
  }

  Status step(const Instruction &i) {
    const ExchangeOp op = exchangeOf(i.op);
    if (op.isSwitch())
      return checkBucket(i, op);
    if (isTail_)
      return refuse(PlanRule::Arrived,
                    "stands behind the first start of a switch at the end of "
                    "its phase");
    hasBody_ = true;
    if (op.kind == ExchangeKind::Reduction && !op.starts)
      reduced_.insert(i.layer);
    if (isPerMicroBatch(i.op) && roleOf(i) >= 0)
      return checkArrived(i.layer);
    const bool needsGradients =
        (op.kind == ExchangeKind::Reduction && op.starts) ||
        i.op == Instruction::GRAD_NORM || i.op == Instruction::UPDATE;
    return needsGradients && isHome() ? checkReturned(i.layer) : Status::ok();
  }

  Status checkBucket(const Instruction &i, const ExchangeOp &op) {
    const GraphSwitch *way = switchOf(i);
    if (!way)
      return refuse(PlanRule::Arrived, "there is no such switch in this step");
    if (i.bucket < 0 || i.bucket >= way->buckets())
      return refuse(PlanRule::Arrived,
                    formatText("the switch has %d buckets", way->buckets()));
    const GraphSwitch::Side &side = way->sides[rank_];
    if (!side.takesPart(i.bucket))
      return refuse(PlanRule::Arrived,
                    "the rank sends and gets nothing in this bucket");
    State &state = stateOf(i);
    if (!op.starts) {
      if (state.started.count(i.bucket) == 0)
        return refuse(PlanRule::Arrived, "waited for before it is started");
      if (!state.waited.insert(i.bucket).second)
        return refuse(PlanRule::Arrived, "waited for twice");
      return Status::ok();
    }
    DYNA_RETURN_IF_ERROR(checkPlace(i, op));
    if (!state.started.empty() && *state.started.rbegin() >= i.bucket)
      return refuse(PlanRule::Arrived,
                    formatText("started behind bucket %d: all ranks start them "
                               "in one order",
                               *state.started.rbegin()));
    for (int after = way->plan.buckets[i.bucket].after; after >= 0;
         after = way->plan.buckets[after].after)
      if (side.takesPart(after) && state.waited.count(after) == 0)
        return refuse(PlanRule::Arrived,
                      formatText("passes on what bucket %d brings, which is "
                                 "not waited for yet",
                                 after));
    state.started.insert(i.bucket);
    return Status::ok();
  }

  /// Values come at the end of the phase before, or at the start of the first;
  /// gradients leave at the end of their own.
  Status checkPlace(const Instruction &i, const ExchangeOp &op) {
    const bool isValues = op.kind == ExchangeKind::ValueSwitch;
    if (isValues && i.phase == 0 && phase_ == 0)
      return hasBody_
                 ? refuse(PlanRule::Arrived,
                          "what the first phase reads is fetched at its start")
                 : Status::ok();
    if (i.phase != (isValues ? phase_ + 1 : phase_))
      return refuse(PlanRule::Arrived, "started in another phase than its own");
    isTail_ = true;
    // All ranks go through their tails in one order, or some wait for others.
    if (!isValues && phase_ + 1 < step_.phaseCount() &&
        !values_[phase_ + 1].started.empty())
      return refuse(PlanRule::Arrived,
                    "gradients leave before what the next phase reads is "
                    "fetched: all ranks start them in one order");
    if (!isValues && step_.phases[phase_].plan.microBatchCount() > 0)
      for (int p : phases_[phase_].gradients->sides[rank_].sent)
        if (int owner = view().owner(p);
            view().place(p).holders > 1 && reduced_.count(owner) == 0)
          return refuse(PlanRule::Returned,
                        formatText("the gradients of '%s' are not reduced yet",
                                   view().parameter(p).name()));
    // What this phase got may go on with it.
    return isValues ? checkWaited(values_[phase_], phases_[phase_].values)
                    : Status::ok();
  }

  Status checkWaited(const State &state, const GraphSwitch *way) const {
    for (int b = 0; way && b < way->buckets(); ++b)
      if (way->sides[rank_].takesPart(b) && state.waited.count(b) == 0)
        return refuse(PlanRule::Arrived,
                      formatText("bucket %d is not waited for", b));
    return Status::ok();
  }

  /// What a layer reads.
  Status checkArrived(int layer) const {
    const GraphSwitch *way = phases_[phase_].values;
    if (!way)
      return Status::ok();
    for (int p : view().layer(layer).parameters())
      for (int b : way->sides[rank_].arrivals[p])
        if (values_[phase_].waited.count(b) == 0)
          return refuse(PlanRule::Arrived,
                        formatText("a part of '%s' comes in bucket %d, which "
                                   "is not waited for yet",
                                   view().parameter(p).name(), b));
    return Status::ok();
  }

  /// What home's layer updates.
  Status checkReturned(int layer) const {
    const auto &list = view().layer(layer).parameters();
    for (int k = 0; k < phase_; ++k)
      for (int slot = 0; slot < list.size() && phases_[k].gradients; ++slot)
        if (int p = list.Get(slot); view().updates(layer, slot))
          for (int b : phases_[k].gradients->sides[rank_].arrivals[p])
            if (gradients_[k].waited.count(b) == 0)
              return refuse(PlanRule::Returned,
                            formatText("gradients of '%s' of phase %d come in "
                                       "bucket %d, which is not waited for yet",
                                       view().parameter(p).name(), k, b));
    return Status::ok();
  }

  Status finishPhase() const {
    DYNA_RETURN_IF_ERROR(checkWaited(values_[phase_], phases_[phase_].values));
    if (phase_ > 0 && trains_)
      DYNA_RETURN_IF_ERROR(
          checkWaited(gradients_[phase_ - 1], phases_[phase_ - 1].gradients));
    return Status::ok();
  }

  const SwitchTable &table_;
  const plan::StepPlan &step_;
  const std::vector<PhaseSwitches> &phases_;
  const bool trains_;
  const int rank_;
  int phase_ = 0;
  std::vector<State> values_, gradients_; ///< by phase
  // Of the running phase.
  std::set<int> reduced_; ///< layers
  bool isTail_ = false;   ///< the starts at its end have begun
  bool hasBody_ = false;  ///< anything but switches has passed
};

} // namespace

StatusOr<VerifiedStep>
VerifiedStep::prove(const SwitchTable &switches, plan::StepPlan step,
                    const std::vector<int64_t> &lengths, int64_t targets,
                    const std::vector<int64_t> &dynamicLimits,
                    StepPosition *failedAt) {
  StepPosition unasked;
  return proveFor(switches, std::move(step), std::nullopt, lengths, targets,
                  dynamicLimits, failedAt ? *failedAt : unasked);
}

StatusOr<VerifiedStep>
VerifiedStep::proveRanks(const SwitchTable &switches, plan::StepPlan step,
                         const std::vector<int> &ranks,
                         const std::vector<int64_t> &lengths, int64_t targets,
                         const std::vector<int64_t> &dynamicLimits) {
  StepPosition unasked;
  return proveFor(switches, std::move(step), ranks, lengths, targets,
                  dynamicLimits, unasked);
}

StatusOr<VerifiedStep>
VerifiedStep::proveFor(const SwitchTable &switches, plan::StepPlan step,
                       const std::optional<std::vector<int>> &ranks,
                       const std::vector<int64_t> &lengths, int64_t targets,
                       const std::vector<int64_t> &dynamicLimits,
                       StepPosition &position) {
  DYNA_ASSIGN_OR_RETURN(auto phases, switches.switchesOf(step));
  DYNA_RETURN_IF_ERROR(checkSamples(step, lengths));
  VerifiedStep proven;
  proven.targets_ = targets;
  std::vector<std::vector<int64_t>> lengthsOf;
  for (int k = 0; k < step.phaseCount(); ++k) {
    const plan::Phase &phase = step.phases[k];
    VerifyOptions options;
    options.dynamicLimit = maxBlockBytes;
    options.targets = targets;
    options.isPhase = true;
    options.isSwitched = phases[k].graph != switches.home();
    position.phase = k;
    options.failedAt = &position.at;
    std::vector<int64_t> &own = lengthsOf.emplace_back();
    for (int64_t sample : phase.samples)
      own.push_back(lengths[sample]);
    const ExecutableGraph &graph = switches.graph(phases[k].graph);
    if (Status status =
            ranks ? verifyRanks(graph, phase.plan, *ranks, own, options)
                  : verifyPlan(graph, phase.plan, own, options);
        !status.isOk())
      return Status(status.code(),
                    formatText("phase %d: %s", k, status.message()));
    for (size_t rank = 0; rank < dynamicLimits.size(); ++rank)
      if (int64_t bytes = phase.plan.ranks[rank].dynamicBytes;
          bytes > dynamicLimits[rank])
        return refuse(PlanRule::Fits,
                      formatText("phase %d rank %d needs %d bytes, but the "
                                 "limit is %d",
                                 k, rank, bytes, dynamicLimits[rank]));
  }
  position = StepPosition();
  DYNA_RETURN_IF_ERROR(checkPurposes(step));
  bool training = true;
  for (const plan::Phase &phase : step.phases)
    training &= trains(phase.plan);
  std::vector<int> checked(switches.graph(switches.home()).ranks());
  std::iota(checked.begin(), checked.end(), 0);
  for (int rank : ranks.value_or(checked))
    DYNA_RETURN_IF_ERROR(
        RankSwitches(switches, step, phases, training, rank).check(position));
  for (int k = 0; k < step.phaseCount(); ++k) {
    VerifiedPlan plan(std::move(step.phases[k].plan), std::move(lengthsOf[k]));
    plan.ranks_ = ranks;
    proven.phases_.push_back(
        {std::move(plan), std::move(step.phases[k].samples), phases[k]});
  }
  return proven;
}

plan::StepPlan VerifiedStep::toStepPlan() const {
  plan::StepPlan step;
  for (const Phase &phase : phases_)
    step.phases.push_back({phase.plan.plan(), phase.samples});
  return step;
}

} // namespace dyna
