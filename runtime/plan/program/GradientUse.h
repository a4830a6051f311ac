//===- GradientUse.h - What instructions do with gradients ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the proof of a step of several graphs goes by, and what joins its phases.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_GRADIENTUSE_H
#define DYNA_RUNTIME_PLAN_GRADIENTUSE_H

#include "runtime/plan/program/InstructionTable.h"

namespace dyna {

/// Whether home's gradients must be whole before it: they are reduced, measured, or
/// used up.
inline bool needsWholeGradients(plan::Instruction::Op op) {
  return reads(op, ParameterUse::UpdatedGradients) ||
         writes(op, ParameterUse::UpdatedGradients);
}

/// Whether it is the last to add to the gradients of its layer's parameters for its
/// micro-batch: `BACKWARD_INPUT` leaves those of weights to `BACKWARD_WEIGHT`.
inline bool addsGradients(plan::Instruction::Op op) {
  return op == plan::Instruction::BACKWARD ||
         op == plan::Instruction::BACKWARD_WEIGHT;
}

/// Whether programs compute gradients: those that do not only evaluate.
inline bool trains(const plan::Plan &plan) {
  for (const plan::RankProgram &program : plan.ranks)
    for (const plan::Instruction &i : program.instructions)
      if (i.op == plan::Instruction::EVALUATE)
        return false;
  return true;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_GRADIENTUSE_H
