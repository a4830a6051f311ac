//===- InstructionTable.h - The fields of each instruction ------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions.def as functions: what each instruction has, calls and
// exchanges. The message of a plan has room for every field in every
// instruction; what an instruction has not is 0 there, or the plan is refused.
// `exec.do` is written by this table.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H
#define DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H

#include "runtime/plan/Plan.pb.h"

#include <cstdint>
#include <string>

namespace dyna {

/// In the order in which they are written. From `Kept` on they are offsets.
enum class Field {
  Layer,
  MicroBatch,
  Recompute,
  Peer,
  Bytes,
  Kept,
  Late,
  Out,
  GradIn,
  GradOut,
  Workspace,
  Batch
};
constexpr int fieldCount = static_cast<int>(Field::Batch) + 1;

const char *fieldName(Field field);
int64_t fieldOf(const plan::Instruction &instruction, Field field);
void setField(plan::Instruction &instruction, Field field, int64_t value);

/// What ranks do together by instructions of their own.
enum class ExchangeKind {
  None,
  Activation, ///< to the next stage
  Gradient,   ///< to the stage before, of an activation
  Reduction,  ///< of the gradients of parameters
  Gather,     ///< of the rows of parameters that other ranks updated
  Norm
};

/// An exchange from the side of one rank.
struct ExchangeOp {
  ExchangeKind kind = ExchangeKind::None;
  bool sends = false;  ///< a message to another stage; else receives it
  bool starts = false; ///< else waits for what was started

  constexpr bool isMessage() const {
    return kind == ExchangeKind::Activation || kind == ExchangeKind::Gradient;
  }
  constexpr bool isOfParameters() const {
    return kind == ExchangeKind::Reduction || kind == ExchangeKind::Gather;
  }
  constexpr bool isGradient() const { return kind == ExchangeKind::Gradient; }
};

const char *instructionName(plan::Instruction::Op op);
ExchangeOp exchangeOf(plan::Instruction::Op op);
/// The DYNA_ROLE_* that an instruction calls, -1 for those that call nothing.
int roleOf(const plan::Instruction &instruction);
bool hasField(plan::Instruction::Op op, Field field);
/// Whether 0 is no value for it. (What else a field may be follows from the
/// plan; PlanVerifier.h.)
bool needsField(plan::Instruction::Op op, Field field);
/// "layer, workspace", or "nothing".
std::string listFields(plan::Instruction::Op op);

/// Whether it works on a micro-batch; the others on parameters.
inline bool isPerMicroBatch(plan::Instruction::Op op) {
  return hasField(op, Field::MicroBatch);
}
inline bool namesLayer(plan::Instruction::Op op) {
  return hasField(op, Field::Layer);
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H
