//===- JoinPhases.cpp - Phases become a step ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/JoinPhases.h"

#include "runtime/plan/InstructionTable.h"

#include <algorithm>

namespace dyna {
namespace {

using plan::Instruction;

/// The buckets of one switch as one rank goes through them.
class Buckets {
public:
  Buckets(const GraphSwitch *way, int rank, int phase, Instruction::Op start,
          Instruction::Op wait, std::vector<Instruction> &program)
      : way_(way), side_(way ? &way->sides[rank] : nullptr), phase_(phase),
        start_(start), wait_(wait), program_(&program),
        waited_(way ? way->buckets() : 0, false) {}

  void startAll() {
    for (int b = 0; way_ && b < way_->buckets(); ++b) {
      if (!side_->takesPart(b))
        continue;
      for (int after = way_->plan.buckets[b].after; after >= 0;
           after = way_->plan.buckets[after].after)
        wait(after);
      add(start_, b);
    }
  }
  void wait(int bucket) {
    if (waited_[bucket] || !side_->takesPart(bucket))
      return;
    waited_[bucket] = true;
    add(wait_, bucket);
  }
  void waitAll() {
    for (int b = 0; way_ && b < way_->buckets(); ++b)
      wait(b);
  }
  /// For what brings parts of these parameters.
  template <typename Parameters> void waitFor(const Parameters &parameters) {
    if (!way_)
      return;
    for (int p : parameters)
      for (int b : side_->arrivals[p])
        wait(b);
  }
  /// From now on instructions are added there.
  void moveTo(std::vector<Instruction> &program) { program_ = &program; }

private:
  void add(Instruction::Op op, int bucket) {
    Instruction &i = program_->emplace_back();
    i.op = op;
    i.phase = phase_;
    i.bucket = bucket;
  }

  const GraphSwitch *way_;
  const GraphSwitch::Side *side_;
  int phase_;
  Instruction::Op start_, wait_;
  std::vector<Instruction> *program_;
  std::vector<bool> waited_;
};

/// Whether home's gradients must be whole before it.
bool readsGradients(const Instruction &i) {
  const ExchangeOp op = exchangeOf(i.op);
  return (op.kind == ExchangeKind::Reduction && op.starts) ||
         i.op == Instruction::GRAD_NORM || i.op == Instruction::UPDATE;
}

} // namespace

Status joinPhases(const SwitchTable &switches, bool trains,
                  plan::StepPlan &step) {
  DYNA_ASSIGN_OR_RETURN(auto phases, switches.switchesOf(step));
  const int count = step.phaseCount();
  const int ranks = switches.graph(switches.home()).ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::vector<Instruction>> programs(count);
    std::vector<Buckets> values, gradients;
    for (int k = 0; k < count; ++k) {
      std::vector<Instruction> &at = programs[std::max(k - 1, 0)];
      values.emplace_back(phases[k].values, rank, k, Instruction::SWITCH_START,
                          Instruction::SWITCH_WAIT, at);
      gradients.emplace_back(trains ? phases[k].gradients : nullptr, rank, k,
                             Instruction::SWITCH_GRADS_START,
                             Instruction::SWITCH_GRADS_WAIT, programs[k]);
    }
    values[0].startAll();
    for (int k = 0; k < count; ++k) {
      plan::RankProgram &program = step.phases[k].plan.ranks[rank];
      const ExecutableGraph &graph = switches.graph(phases[k].graph);
      const RankView &view = graph.replicaView(rank);
      std::vector<Instruction> &out = programs[k];
      out.reserve(out.size() + program.instructions.size());
      values[k].moveTo(out);
      if (k > 0)
        gradients[k - 1].moveTo(out);
      for (const Instruction &i : program.instructions) {
        if (isPerMicroBatch(i.op) && roleOf(i) >= 0)
          values[k].waitFor(view.layer(i.layer).parameters());
        if (k > 0 && k + 1 == count && readsGradients(i))
          gradients[k - 1].waitAll();
        out.push_back(i);
      }
      values[k].waitAll();
      if (k > 0)
        gradients[k - 1].waitAll();
      gradients[k].startAll();
      if (k + 1 < count)
        values[k + 1].startAll();
    }
    for (int k = 0; k < count; ++k)
      step.phases[k].plan.ranks[rank].instructions = std::move(programs[k]);
  }
  return Status::ok();
}

} // namespace dyna
