//===- PlanEditor.h - Changes plans by hand, for tests -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_PLANEDITOR_H
#define DYNA_TEST_RUNTIME_PLAN_PLANEDITOR_H

#include "runtime/plan/InstructionBlocks.h"

#include <gtest/gtest.h>

namespace dyna {

/// Makes it another instruction, without what that one has not.
inline void turnInto(plan::Instruction &i, plan::Instruction::Op op) {
  i.set_op(op);
  for (int field = 0; field < fieldCount; ++field)
    if (!hasField(op, static_cast<Field>(field)))
      setField(i, static_cast<Field>(field), 0);
}

/// A plan and its instructions, found by what they do.
struct Editor {
  plan::Plan &plan;
  plan::RankProgram &program;

  explicit Editor(plan::Plan &plan, int rank = 0)
      : plan(plan), program(*plan.mutable_ranks(rank)) {}

  int find(plan::Instruction::Op op, int layer, int microBatch = 0) const {
    for (int index = 0; index < program.instructions_size(); ++index) {
      const plan::Instruction &i = program.instructions(index);
      if (i.op() == op && i.layer() == layer &&
          (i.micro_batch() == microBatch || !isPerMicroBatch(op)))
        return index;
    }
    ADD_FAILURE() << "no such instruction";
    return 0;
  }
  plan::Instruction &at(plan::Instruction::Op op, int layer,
                        int microBatch = 0) {
    return *program.mutable_instructions(find(op, layer, microBatch));
  }
  void remove(plan::Instruction::Op op, int layer, int microBatch = 0) {
    program.mutable_instructions()->DeleteSubrange(find(op, layer, microBatch),
                                                   1);
  }
  void repeat(plan::Instruction::Op op, int layer, int microBatch = 0) {
    move(op, layer, microBatch, program.instructions_size(), true);
  }
  /// Puts the instruction in front of what stands at `target`.
  void move(plan::Instruction::Op op, int layer, int microBatch, int target,
            bool keep = false) {
    int from = find(op, layer, microBatch);
    plan::Instruction copy = program.instructions(from);
    if (!keep) {
      program.mutable_instructions()->DeleteSubrange(from, 1);
      if (from < target)
        --target;
    }
    *program.add_instructions() = copy;
    for (int i = program.instructions_size() - 1; i > target; --i)
      program.mutable_instructions()->SwapElements(i, i - 1);
  }
  plan::Segment &segment(int microBatch) {
    return *plan.mutable_micro_batches(microBatch)->mutable_segments(0);
  }
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_PLANEDITOR_H
