//===- InstructionTable.h - The fields of each instruction ------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of all instructions: what each has beside its name. The message of
// a plan has room for every field in every instruction; what an instruction has
// not is 0 there, or the plan is refused. `exec.do` is written by this table.
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

const char *instructionName(plan::Instruction::Op op);
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
