//===- PlanEditor.h - Changes plans by hand, for tests -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_PLANEDITOR_H
#define DYNA_TEST_RUNTIME_PLAN_PLANEDITOR_H

#include "runtime/plan/graph/ProgramBlocks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dyna {

/// Makes it another instruction, without what that one has not.
inline void turnInto(plan::Instruction &i, plan::Instruction::Op op) {
  i.op = op;
  for (int field = 0; field < fieldCount; ++field)
    if (!hasField(op, static_cast<Field>(field)))
      setField(i, static_cast<Field>(field), 0);
  for (size_t place = takenBy(op).count; place < i.places.size(); ++place)
    i.places[place] = plan::noPlace;
}

/// Leaves out all that measures gradients.
inline void removeNorms(plan::RankProgram &program) {
  auto &list = program.instructions;
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const plan::Instruction &i) {
                              return i.op == plan::Instruction::GRAD_NORM ||
                                     i.op == plan::Instruction::COMBINE_NORM;
                            }),
             list.end());
}

/// Starts each parameter that a layer shares by itself.
inline void startOneByOne(const RankView &view, int layer,
                          plan::RankProgram &program) {
  std::vector<plan::Instruction> list;
  for (const plan::Instruction &i : program.instructions) {
    const ExchangeOp op = exchangeOf(i.op);
    const bool isSplit = i.layer == layer && op.isOfParameters() && op.starts;
    if (!isSplit)
      list.push_back(i);
    else
      for (int slot : view.sharedSlots(layer))
        list.emplace_back(i).parameter = slot + 1;
  }
  program.instructions = list;
}

/// Where it puts a block that it takes.
inline int64_t &placeOf(plan::Instruction &i, Operand operand) {
  return i.places.at(placeIndex(i.op, operand));
}

/// A plan and its instructions, found by what they do.
struct Editor {
  plan::Plan &plan;
  plan::RankProgram &program;
  std::vector<plan::Instruction> &instructions;

  explicit Editor(plan::Plan &plan, int rank = 0)
      : plan(plan), program(plan.ranks[rank]),
        instructions(program.instructions) {}

  int find(plan::Instruction::Op op, int layer, int microBatch = 0) const {
    for (int index = 0; index < program.count(); ++index) {
      const plan::Instruction &i = instructions[index];
      if (i.op == op && i.layer == layer &&
          (i.microBatch == microBatch || !isPerMicroBatch(op)))
        return index;
    }
    ADD_FAILURE() << "no such instruction";
    return 0;
  }
  plan::Instruction &at(plan::Instruction::Op op, int layer,
                        int microBatch = 0) {
    return instructions[find(op, layer, microBatch)];
  }
  void remove(plan::Instruction::Op op, int layer, int microBatch = 0) {
    instructions.erase(instructions.begin() + find(op, layer, microBatch));
  }
  void repeat(plan::Instruction::Op op, int layer, int microBatch = 0) {
    move(op, layer, microBatch, program.count(), true);
  }
  /// Puts the instruction in front of what stands at `target`.
  void move(plan::Instruction::Op op, int layer, int microBatch, int target,
            bool keep = false) {
    int from = find(op, layer, microBatch);
    plan::Instruction copy = instructions[from];
    if (!keep) {
      instructions.erase(instructions.begin() + from);
      if (from < target)
        --target;
    }
    instructions.insert(instructions.begin() + target, copy);
  }
  plan::Segment &segment(int microBatch) {
    return plan.microBatches[microBatch].segments[0];
  }
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_PLANEDITOR_H
