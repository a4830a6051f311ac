//===- StepVerifier.cpp - Verifies the step of a run ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/StepVerifier.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/GradientUse.h"
#include "runtime/plan/program/PlanRules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace dyna {
namespace {

using plan::Instruction;
using PhaseSwitches = SwitchTable::PhaseSwitches;

/// Returns "phase 1" and `end` for messages; nothing if there is one phase.
std::string namePhase(const plan::StepPlan &step, int phase, const char *end) {
  return step.phaseCount() > 1 ? formatText("phase %d%s", phase, end) : "";
}

/// Verifies P12.
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

/// Verifies P12.
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
      const plan::RankProgram &program = step_.phases[phase_].plan.ranks[rank_];
      beginPhase(program);
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
  /// State of the buckets of one switch.
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

  /// Returns the switch that an instruction names; null if there is none.
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

  void beginPhase(const plan::RankProgram &program) {
    reduced_.clear();
    additions_.assign(view().layers(), 0);
    for (const Instruction &i : program.instructions)
      if (addsGradients(i.op))
        ++additions_[i.layer];
    users_.assign(view().parameters(), {});
    for (int l = view().firstLayer(); l < view().endLayer(); ++l)
      for (int p : view().layer(l).parameters())
        users_[p].push_back(l);
  }

  Status step(const Instruction &i) {
    const ExchangeOp op = exchangeOf(i.op);
    if (op.isSwitch())
      return checkBucket(i, op);
    if (op.kind == ExchangeKind::Reduction && !op.starts)
      reduced_.insert(i.layer);
    if (addsGradients(i.op))
      --additions_[i.layer];
    if (isPerMicroBatch(i.op) && roleOf(i) >= 0)
      return checkArrived(i.layer);
    return needsWholeGradients(i.op) && isHome() ? checkReturned(i.layer)
                                                 : Status::ok();
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
    DYNA_RETURN_IF_ERROR(checkStart(i, op, side));
    if (state.started.count(i.bucket) > 0)
      return refuse(PlanRule::Arrived, "started twice");
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

  /// Values come in the phase before, or in the first; gradients leave in their
  /// own. Of both, what is sent is there.
  Status checkStart(const Instruction &i, const ExchangeOp &op,
                    const GraphSwitch::Side &side) const {
    const bool isValues = op.kind == ExchangeKind::ValueSwitch;
    const bool isFirst = isValues && i.phase == 0 && phase_ == 0;
    if (!isFirst && i.phase != (isValues ? phase_ + 1 : phase_))
      return refuse(PlanRule::Arrived, "started in another phase than its own");
    if (isFirst)
      return Status::ok(); // home's values are whole since its update
    // Add in the order of the phases, so that sums are the same in every run.
    if (!isValues && phase_ > 0)
      DYNA_RETURN_IF_ERROR(
          checkWaited(gradients_[phase_ - 1], phases_[phase_ - 1].gradients));
    for (int p : side.sent[i.bucket])
      DYNA_RETURN_IF_ERROR(isValues ? checkArrivedPart(p) : checkAdded(p));
    return Status::ok();
  }

  /// Checks that all micro-batches and ranks have added their gradients of a
  /// parameter.
  Status checkAdded(int p) const {
    for (int layer : users_[p])
      if (additions_[layer] > 0)
        return refuse(
            PlanRule::Returned,
            formatText("%d backwards of layer %d have not added their "
                       "gradients of '%s' yet",
                       additions_[layer], layer, view().parameter(p).name()));
    if (step_.phases[phase_].plan.microBatchCount() > 0 &&
        view().place(p).holders > 1 && reduced_.count(view().owner(p)) == 0)
      return refuse(PlanRule::Returned,
                    formatText("the gradients of '%s' are not reduced yet",
                               view().parameter(p).name()));
    return Status::ok();
  }

  Status checkWaited(const State &state, const GraphSwitch *way) const {
    for (int b = 0; way && b < way->buckets(); ++b)
      if (way->sides[rank_].takesPart(b) && state.waited.count(b) == 0)
        return refuse(PlanRule::Arrived,
                      formatText("bucket %d is not waited for", b));
    return Status::ok();
  }

  /// Checks that the values that a layer reads have arrived.
  Status checkArrived(int layer) const {
    for (int p : view().layer(layer).parameters())
      DYNA_RETURN_IF_ERROR(checkArrivedPart(p));
    return Status::ok();
  }

  /// Checks that all parts of a parameter have arrived in this phase.
  Status checkArrivedPart(int p) const {
    const GraphSwitch *way = phases_[phase_].values;
    if (!way)
      return Status::ok();
    for (int b : way->sides[rank_].arrivals[p])
      if (values_[phase_].waited.count(b) == 0)
        return refuse(PlanRule::Arrived,
                      formatText("a part of '%s' comes in bucket %d, which is "
                                 "not waited for yet",
                                 view().parameter(p).name(), b));
    return Status::ok();
  }

  /// Checks that all gradients have arrived that home's layer updates with.
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
  // State of the running phase.
  std::set<int> reduced_;      ///< layers
  std::vector<int> additions_; ///< to gradients, still to come; by layer
  std::vector<std::vector<int>> users_; ///< layers of this rank; by parameter
};

/// Verifies P11 of all phases; exchanges include the starts of switches.
Status checkOrder(const SwitchTable &table, const plan::StepPlan &step,
                  const std::vector<PhaseSwitches> &phases,
                  std::vector<ExchangeStarts> own, StepPosition &failedAt) {
  ExchangeStarts all;
  all.starts.resize(table.graph(table.home()).ranks());
  // The key is (gradients, phase, bucket).
  std::map<std::tuple<bool, int, int>, int> buckets;
  auto wireOf = [&](const Instruction &i) {
    const bool isGradients =
        exchangeOf(i.op).kind == ExchangeKind::GradientSwitch;
    auto [found, isNew] = buckets.insert(
        {{isGradients, i.phase, i.bucket}, static_cast<int>(all.wires.size())});
    if (isNew) {
      const GraphSwitch &way =
          isGradients ? *phases[i.phase].gradients : *phases[i.phase].values;
      ExchangeStarts::Wire &wire = all.wires.emplace_back();
      wire.ranks = way.ranksThatMeet(i.bucket);
      wire.sides.assign(std::max<size_t>(wire.ranks.size(), 1), {{-1, -1}});
    }
    return found->second;
  };
  for (int k = 0; k < step.phaseCount(); ++k) {
    const int first = static_cast<int>(all.wires.size());
    std::move(own[k].wires.begin(), own[k].wires.end(),
              std::back_inserter(all.wires));
    for (size_t rank = 0; rank < own[k].starts.size(); ++rank)
      for (ExchangeStarts::Start start : own[k].starts[rank]) {
        start.phase = k;
        if (start.wire >= 0) {
          start.wire += first;
        } else {
          const Instruction &i =
              step.phases[k].plan.ranks[rank].instructions[start.instruction];
          start.wire = wireOf(i);
          start.entry = 0;
          const std::vector<int> &ranks = all.wires[start.wire].ranks;
          // The rank only copies for itself.
          if (std::find(ranks.begin(), ranks.end(), static_cast<int>(rank)) ==
              ranks.end())
            continue;
        }
        all.starts[rank].push_back(start);
      }
  }
  return carryOutExchanges(all, [&](int rank,
                                    const ExchangeStarts::Start &start) {
    if (failedAt.phase < 0)
      failedAt = {start.phase, {rank, start.instruction}};
    return namePhase(step, start.phase, " ") +
           describeAt(table.graph(phases[start.phase].graph),
                      step.phases[start.phase].plan, rank, start.instruction);
  });
}

} // namespace

Status checkUpdated(const plan::StepPlan &step) {
  if (!trains(step))
    return Status::ok();
  for (const plan::RankProgram &program : step.phases.back().plan.ranks)
    for (const Instruction &i : program.instructions)
      if (i.op == Instruction::UPDATE)
        return Status::ok();
  return refuse(PlanRule::Returned,
                formatText("phase %d, which is home's, updates nothing: the "
                           "gradients of the step are lost",
                           step.phaseCount() - 1));
}

bool VerifiedStep::covers(int rank) const {
  return !ranks_ ||
         std::find(ranks_->begin(), ranks_->end(), rank) != ranks_->end();
}

StatusOr<VerifiedStep>
VerifiedStep::prove(const SwitchTable &switches, plan::StepPlan step,
                    std::vector<int64_t> lengths, int64_t targets,
                    const std::vector<int64_t> &regionLimits,
                    StepPosition *failedAt, const UpdateRules &updates) {
  StepPosition unasked;
  return proveFor(switches, std::move(step), std::nullopt, std::move(lengths),
                  targets, regionLimits, updates,
                  failedAt ? *failedAt : unasked);
}

StatusOr<VerifiedStep>
VerifiedStep::proveRanks(const SwitchTable &switches, plan::StepPlan step,
                         const std::vector<int> &ranks,
                         std::vector<int64_t> lengths, int64_t targets,
                         const std::vector<int64_t> &regionLimits,
                         const UpdateRules &updates) {
  StepPosition unasked;
  return proveFor(switches, std::move(step), ranks, std::move(lengths), targets,
                  regionLimits, updates, unasked);
}

/// Verifies a phase by itself. `lengths` are those of its samples.
static Status checkPhase(const SwitchTable &switches,
                         const plan::StepPlan &step, int graph,
                         const std::optional<std::vector<int>> &ranks,
                         const std::vector<int64_t> &lengths,
                         const VerifyOptions &common, ExchangeStarts &starts,
                         StepPosition &position) {
  VerifyOptions options = common;
  options.isPhase = step.phaseCount() > 1;
  options.isSwitched = graph != switches.home();
  options.starts = &starts;
  options.failedAt = &position.at;
  const ExecutableGraph &own = switches.graph(graph);
  const plan::Plan &plan = step.phases[position.phase].plan;
  Status status = ranks ? verifyRanks(own, plan, *ranks, lengths, options)
                        : verifyPlan(own, plan, lengths, options);
  return status.isOk()
             ? status
             : Status(status.code(),
                      namePhase(step, position.phase, ": ") + status.message());
}

/// Returns a failure of the only phase of a step whose samples are not those of the
/// mini-batch. P1 and P2 say more about it than `status`, which is P12's.
static Status explainSamples(const SwitchTable &switches,
                             const plan::StepPlan &step,
                             const std::optional<std::vector<int>> &ranks,
                             const std::vector<int64_t> &lengths,
                             const VerifyOptions &options,
                             StepPosition &position, const Status &status) {
  ExchangeStarts unused;
  position.phase = 0;
  DYNA_RETURN_IF_ERROR(checkPhase(switches, step, switches.home(), ranks,
                                  lengths, options, unused, position));
  position = StepPosition();
  return status;
}

/// Verifies P6 to P8 for the region of a rank.
static Status checkRegion(const plan::StepPlan &step,
                          const std::vector<StepBlock> &blocks, int rank,
                          const std::vector<int64_t> &limits,
                          StepPosition &position) {
  int failed = -1;
  const int64_t limit = limits.empty() ? maxBlockBytes : limits[rank];
  Status status = checkStepMemory(step, blocks, rank, limit, failed);
  if (!status.isOk())
    position = {failed, {rank, -1}};
  return status;
}

StatusOr<VerifiedStep>
VerifiedStep::proveFor(const SwitchTable &switches, plan::StepPlan step,
                       const std::optional<std::vector<int>> &ranks,
                       std::vector<int64_t> lengths, int64_t targets,
                       const std::vector<int64_t> &regionLimits,
                       const UpdateRules &updates, StepPosition &position) {
  DYNA_ASSIGN_OR_RETURN(auto phases, switches.switchesOf(step));
  VerifyOptions options;
  options.targets = targets;
  options.updates = updates;
  // The memory of several phases is compared together below.
  const bool isAlone = step.phaseCount() == 1;
  if (isAlone)
    options.limits = regionLimits;
  if (Status status = checkSamples(step, lengths); !status.isOk())
    return isAlone ? explainSamples(switches, step, ranks, lengths, options,
                                    position, status)
                   : status;
  std::vector<std::vector<int64_t>> lengthsOf(step.phases.size());
  std::vector<ExchangeStarts> starts(step.phases.size());
  for (int k = 0; k < step.phaseCount(); ++k) {
    for (int64_t sample : step.phases[k].samples)
      lengthsOf[k].push_back(lengths[sample]);
    position.phase = k;
    DYNA_RETURN_IF_ERROR(checkPhase(switches, step, phases[k].graph, ranks,
                                    lengthsOf[k], options, starts[k],
                                    position));
  }
  position = StepPosition();
  DYNA_RETURN_IF_ERROR(checkPurposes(step));
  const bool training = trains(step);
  std::vector<int> all(switches.graph(switches.home()).ranks());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> &checked = ranks ? *ranks : all;
  // A single phase has no switches, and its programs must not name any (P6).
  for (int rank : isAlone ? std::vector<int>() : checked)
    DYNA_RETURN_IF_ERROR(
        RankSwitches(switches, step, phases, training, rank).check(position));
  if (!ranks)
    DYNA_RETURN_IF_ERROR(
        checkOrder(switches, step, phases, std::move(starts), position));
  VerifiedStep proven;
  proven.blocks_.resize(all.size());
  for (int rank : checked) {
    proven.blocks_[rank] = stepBlocks(switches, phases, step, training, rank);
    DYNA_RETURN_IF_ERROR(
        checkRegion(step, proven.blocks_[rank], rank, regionLimits, position));
  }
  for (int k = 0; k < step.phaseCount(); ++k) {
    Turns turns(switches.graph(phases[k].graph), step.phases[k].plan);
    proven.phases_.push_back(
        {std::move(step.phases[k].plan), std::move(step.phases[k].samples),
         std::move(lengthsOf[k]), phases[k], std::move(turns)});
  }
  proven.lengths_ = std::move(lengths);
  proven.ranks_ = ranks;
  return proven;
}

plan::StepPlan VerifiedStep::toStepPlan() const {
  plan::StepPlan step;
  for (const Phase &phase : phases_)
    step.phases.push_back({phase.plan, phase.samples});
  return step;
}

} // namespace dyna
