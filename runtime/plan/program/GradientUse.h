//===- GradientUse.h - Describes uses of gradients --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Predicates that the verifier of steps and the code that joins phases share.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_GRADIENTUSE_H
#define DYNA_RUNTIME_PLAN_GRADIENTUSE_H

#include "runtime/plan/program/InstructionTable.h"

namespace dyna {

/// Returns true if home's gradients must be complete before the instruction, because
/// it reduces, measures or uses them.
inline bool needsWholeGradients(plan::Instruction::Op op) {
  return reads(op, ParameterUse::UpdatedGradients) ||
         writes(op, ParameterUse::UpdatedGradients);
}

/// Returns true if the instruction is the last one that adds to the gradients of its
/// layer for its micro-batch. `BACKWARD_INPUT` leaves the gradients of weights to
/// `BACKWARD_WEIGHT`.
inline bool addsGradients(plan::Instruction::Op op) {
  return op == plan::Instruction::BACKWARD ||
         op == plan::Instruction::BACKWARD_WEIGHT;
}

/// Returns true if the plan computes gradients, so does not only evaluate.
inline bool trains(const plan::Plan &plan) {
  for (const plan::RankProgram &program : plan.ranks)
    for (const plan::Instruction &i : program.instructions)
      if (i.op == plan::Instruction::EVALUATE)
        return false;
  return true;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_GRADIENTUSE_H
