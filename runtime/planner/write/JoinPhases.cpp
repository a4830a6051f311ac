//===- JoinPhases.cpp - Joins phases to a step ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/write/JoinPhases.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/GradientUse.h"
#include "runtime/plan/verify/ExchangeStarts.h"

#include <algorithm>
#include <utility>

namespace dyna {
namespace {

using plan::Instruction;

/// The buckets of one switch as one rank goes through them.
class Buckets {
public:
  Buckets(const GraphSwitch *way, int rank, int phase, bool ofGradients)
      : way_(way), side_(way ? &way->sides[rank] : nullptr), phase_(phase),
        start_(ofGradients ? Instruction::SWITCH_GRADS_START
                           : Instruction::SWITCH_START),
        wait_(ofGradients ? Instruction::SWITCH_GRADS_WAIT
                          : Instruction::SWITCH_WAIT),
        waited_(way ? way->buckets() : 0, false) {}

  void start(int bucket, std::vector<Instruction> &program) {
    for (int after = way_->plan.buckets[bucket].after; after >= 0;
         after = way_->plan.buckets[after].after)
      wait(after, program);
    add(start_, bucket, program);
  }
  void wait(int bucket, std::vector<Instruction> &program) {
    if (waited_[bucket] || !side_->takesPart(bucket))
      return;
    waited_[bucket] = true;
    add(wait_, bucket, program);
  }
  void waitAll(std::vector<Instruction> &program) {
    for (int b = 0; way_ && b < way_->buckets(); ++b)
      wait(b, program);
  }
  /// Waits for buckets that bring parts of these parameters.
  template <typename Parameters>
  void waitFor(const Parameters &parameters,
               std::vector<Instruction> &program) {
    if (!way_)
      return;
    for (int p : parameters)
      for (int b : side_->arrivals[p])
        wait(b, program);
  }
  const GraphSwitch::Side &side() const { return *side_; }

private:
  void add(Instruction::Op op, int bucket, std::vector<Instruction> &program) {
    Instruction &i = program.emplace_back();
    i.op = op;
    i.phase = phase_;
    i.bucket = bucket;
  }

  const GraphSwitch *way_;
  const GraphSwitch::Side *side_;
  int phase_;
  Instruction::Op start_, wait_;
  std::vector<bool> waited_;
};

/// A start among the instructions of a rank.
struct PlacedStart {
  int before; ///< next instruction of the phase's program
  bool ofGradients;
  int bucket;
};

/// When, in one rank's program of a phase, there is what it sends.
class RankReadiness {
public:
  RankReadiness(const RankView &view, const plan::RankProgram &program)
      : view_(view), added_(view.layers(), 0), reduced_(view.layers(), 0),
        users_(view.parameters()) {
    for (int l = view.firstLayer(); l < view.endLayer(); ++l)
      for (int p : view.layer(l).parameters())
        users_[p].push_back(l);
    for (int index = 0; index < program.count(); ++index) {
      const Instruction &i = program.instructions[index];
      const ExchangeOp op = exchangeOf(i.op);
      if (addsGradients(i.op))
        added_[i.layer] = index + 1;
      else if (op.kind == ExchangeKind::Reduction && !op.starts)
        reduced_[i.layer] = index + 1;
      // The last match belongs to the last micro-batch.
      const bool isBackward = passOf(i.op) == Pass::Backward;
      const bool isAlone = passOf(i.op) == Pass::Forward &&
                           (i.op == Instruction::EVALUATE ||
                            !view.hasBackward(view.endLayer() - 1));
      if ((isBackward && i.layer == view.endLayer() - 1) ||
          (isAlone && i.layer == view.firstLayer()))
        lastPass_ = index;
    }
  }

  /// Returns the first instruction of the last micro-batch's backward, or of
  /// its evaluation, or of its forward on a stage without backward.
  int lastPass() const { return lastPass_; }
  /// Returns the instruction before which the gradients of these parameters are
  /// complete.
  int gradients(const std::vector<int> &parameters) const {
    int ready = 0;
    for (int p : parameters) {
      for (int layer : users_[p])
        ready = std::max(ready, added_[layer]);
      if (view_.place(p).holders > 1)
        ready = std::max(ready, reduced_[view_.owner(p)]);
    }
    return ready;
  }

private:
  const RankView &view_;
  std::vector<int> added_, reduced_; ///< by layer
  std::vector<std::vector<int>> users_;
  int lastPass_ = 0;
};

/// Places the starts of switches that leave a phase. Each bucket starts as
/// early as its data are there, where all ranks that start it together can be
/// at one time (Rendezvous). Gradients start in the order in which they become
/// complete, and values in the order of their buckets. Of both, the next one is
/// that for which ranks run ahead least, by the rank that runs ahead most.
class StartPlacer {
public:
  StartPlacer(const ExecutableGraph &graph, const plan::Plan &plan,
              const GraphSwitch *gradients, const GraphSwitch *next)
      : starts_(ExchangeStarts::of(graph, plan)), run_(starts_),
        placed_(graph.ranks()) {
    if (!gradients && !next)
      return;
    std::vector<RankReadiness> readiness;
    for (int rank = 0; rank < graph.ranks(); ++rank)
      readiness.emplace_back(graph.replicaView(rank), plan.ranks[rank]);
    for (int b = 0; gradients && b < gradients->buckets(); ++b) {
      const Bucket &bucket = add(*gradients, b, true, [&](int rank) {
        return readiness[rank].gradients(gradients->sides[rank].sent[b]);
      });
      double whole = 0;
      for (const Part &part : bucket.parts)
        whole =
            std::max(whole, 1.0 * part.ready / plan.ranks[part.rank].count());
      // A bucket comes after the one from which it passes bytes on.
      if (const int after = gradients->plan.buckets[b].after; after >= 0)
        whole = std::max(whole, whole_[after]);
      whole_.push_back(whole);
    }
    std::sort(gradients_.begin(), gradients_.end(),
              [&](const Bucket &a, const Bucket &b) {
                return std::make_pair(whole_[a.number], a.number) <
                       std::make_pair(whole_[b.number], b.number);
              });
    for (int b = 0; next && b < next->buckets(); ++b)
      add(*next, b, false,
          [&](int rank) { return readiness[rank].lastPass(); });
  }

  /// Returns the starts by rank, in order.
  StatusOr<std::vector<std::vector<PlacedStart>>> place() {
    size_t g = 0, v = 0;
    while (g < gradients_.size() || v < values_.size()) {
      const bool ofValues =
          g == gradients_.size() ||
          (v < values_.size() && missing(values_[v]) < missing(gradients_[g]));
      DYNA_RETURN_IF_ERROR(
          placeBucket(ofValues ? values_[v++] : gradients_[g++], !ofValues));
    }
    return std::move(placed_);
  }

private:
  struct Part {
    int rank, ready;
  };
  struct Bucket {
    int number;
    std::vector<Part> parts; ///< of the ranks that have one
  };

  template <typename Ready>
  const Bucket &add(const GraphSwitch &way, int number, bool ofGradients,
                    Ready readyAt) {
    Bucket &bucket = (ofGradients ? gradients_ : values_).emplace_back();
    bucket.number = number;
    for (size_t rank = 0; rank < way.sides.size(); ++rank)
      if (way.sides[rank].takesPart(number))
        bucket.parts.push_back(
            {static_cast<int>(rank), readyAt(static_cast<int>(rank))});
    return bucket;
  }

  /// Instructions that a rank must still run before it, at most.
  int missing(const Bucket &bucket) const {
    int most = 0;
    for (const Part &part : bucket.parts)
      most = std::max(most, part.ready - run_.position(part.rank));
    return most;
  }

  Status advance(int rank, int instruction) {
    return run_.advance(rank, instruction)
               ? Status::ok()
               : Status::invalidArgument(
                     formatText("rank %d waits for ever in a phase that is to "
                                "be followed by a switch",
                                rank));
  }

  Status placeBucket(const Bucket &bucket, bool ofGradients) {
    for (const Part &part : bucket.parts)
      DYNA_RETURN_IF_ERROR(advance(part.rank, part.ready));
    // An instruction may start several exchanges, such as reductions of several
    // groups. No start may lie between them, so finish the instruction. At its
    // end a rank lets others finish theirs.
    for (bool isInside = true; isInside;) {
      isInside = false;
      for (const Part &part : bucket.parts)
        if (const ExchangeStarts::Start *next = run_.next(part.rank);
            next && next->instruction < run_.position(part.rank)) {
          isInside = true;
          DYNA_RETURN_IF_ERROR(advance(part.rank, run_.position(part.rank)));
        }
    }
    for (const Part &part : bucket.parts)
      placed_[part.rank].push_back(
          {run_.position(part.rank), ofGradients, bucket.number});
    return Status::ok();
  }

  const ExchangeStarts starts_;
  Rendezvous run_;
  std::vector<Bucket> gradients_, values_;
  std::vector<double> whole_; ///< buckets of gradients: share of the phase
  std::vector<std::vector<PlacedStart>> placed_;
};

/// The programs of one rank in all phases, with what switches between them.
class RankJoiner {
public:
  RankJoiner(const std::vector<SwitchTable::PhaseSwitches> &phases, bool trains,
             int rank)
      : phases_(phases) {
    for (int k = 0; k < static_cast<int>(phases.size()); ++k) {
      values_.emplace_back(phases[k].values, rank, k, false);
      gradients_.emplace_back(trains ? phases[k].gradients : nullptr, rank, k,
                              true);
    }
  }

  /// Joins a phase; `starts` are those of switches to the next phase, in order.
  void join(int k, const RankView &view, const std::vector<PlacedStart> &starts,
            plan::RankProgram &program) {
    std::vector<Instruction> out;
    out.reserve(program.instructions.size());
    if (k == 0)
      startFirst(out);
    size_t next = 0;
    auto startUpTo = [&](int index) {
      for (; next < starts.size() && starts[next].before <= index; ++next)
        start(k, starts[next], out);
    };
    const bool isLast = k + 1 == static_cast<int>(phases_.size());
    for (int index = 0; index < program.count(); ++index) {
      const Instruction &i = program.instructions[index];
      startUpTo(index);
      if (isPerMicroBatch(i.op) && roleOf(i) >= 0)
        values_[k].waitFor(view.layer(i.layer).parameters(), out);
      if (k > 0 && isLast && needsWholeGradients(i.op))
        gradients_[k - 1].waitAll(out);
      out.push_back(i);
    }
    startUpTo(program.count());
    values_[k].waitAll(out);
    if (k > 0)
      gradients_[k - 1].waitAll(out);
    program.instructions = std::move(out);
  }

private:
  /// Starts the switch that brings values from home.
  void startFirst(std::vector<Instruction> &out) {
    for (int b = 0; phases_[0].values && b < phases_[0].values->buckets(); ++b)
      if (values_[0].side().takesPart(b))
        values_[0].start(b, out);
  }
  void start(int k, const PlacedStart &start, std::vector<Instruction> &out) {
    if (start.ofGradients) {
      // Add gradients after those of the phase before.
      if (k > 0)
        gradients_[k - 1].waitAll(out);
      gradients_[k].start(start.bucket, out);
    } else {
      // Pass on the values that came to this phase.
      values_[k].waitFor(values_[k + 1].side().sent[start.bucket], out);
      values_[k + 1].start(start.bucket, out);
    }
  }

  const std::vector<SwitchTable::PhaseSwitches> &phases_;
  std::vector<Buckets> values_, gradients_;
};

} // namespace

Status joinPhases(const SwitchTable &switches, bool trains,
                  plan::StepPlan &step) {
  DYNA_ASSIGN_OR_RETURN(auto phases, switches.switchesOf(step));
  const int count = step.phaseCount();
  if (count == 1) // nothing is switched between phases
    return Status::ok();
  const int ranks = switches.graph(switches.home()).ranks();
  std::vector<std::vector<std::vector<PlacedStart>>> starts;
  for (int k = 0; k + 1 < count; ++k) {
    DYNA_ASSIGN_OR_RETURN(auto placed,
                          StartPlacer(switches.graph(phases[k].graph),
                                      step.phases[k].plan,
                                      trains ? phases[k].gradients : nullptr,
                                      phases[k + 1].values)
                              .place());
    starts.push_back(std::move(placed));
  }
  starts.emplace_back(ranks); // nothing follows the last phase
  for (int rank = 0; rank < ranks; ++rank) {
    RankJoiner joiner(phases, trains, rank);
    for (int k = 0; k < count; ++k)
      joiner.join(k, switches.graph(phases[k].graph).replicaView(rank),
                  starts[k][rank], step.phases[k].plan.ranks[rank]);
  }
  return Status::ok();
}

} // namespace dyna
