//===- InstructionTable.h - What each instruction has and does --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Instructions.def as functions. Every instruction has room for every field;
// what it has not is 0, or the plan is refused.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H
#define DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H

#include "runtime/plan/program/Plan.h"

namespace dyna {

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// In the order in which they are written.
enum class Field { Layer, MicroBatch, Recompute, Phase, Bucket, Parameter };
constexpr int fieldCount = static_cast<int>(Field::Parameter) + 1;

const char *fieldName(Field field);
int64_t fieldOf(const plan::Instruction &instruction, Field field);
void setField(plan::Instruction &instruction, Field field, int64_t value);

bool hasField(plan::Instruction::Op op, Field field);
/// Whether 0 is no value for it. (What else a field may be follows from the
/// plan; PlanVerifier.h.)
bool needsField(plan::Instruction::Op op, Field field);
/// "layer, workspace", or "nothing": fields, then blocks that it takes.
std::string listFields(plan::Instruction::Op op);

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// What an instruction calls a block; which one that is, BlockKinds.def says.
enum class Operand {
#define DYNA_OPERAND(name, ...) name,
#include "runtime/plan/program/BlockKinds.def"
};
constexpr int operandCount = 0
#define DYNA_OPERAND(...) +1
#include "runtime/plan/program/BlockKinds.def"
    ;
const char *operandName(Operand operand);

/// What an instruction does with a block; see Instructions.def.
struct BlockRule {
  enum Access : uint8_t {
    Read = 0,
    Write = 1,
    Take = 2,
    Give = 4,
    IfAbsent = 8 ///< takes what is not there yet
  };
  Operand operand = Operand::Batch;
  uint8_t access = Read;

  constexpr bool is(Access what) const { return access & what; }
};

/// A list in the table.
struct BlockRules {
  const BlockRule *first;
  int count;
  const BlockRule *begin() const { return first; }
  const BlockRule *end() const { return first + count; }
};
BlockRules blockRules(plan::Instruction::Op op);

/// What it takes: the names of its `places`.
struct TakenOperands {
  std::array<Operand, plan::Instruction::maxTaken> operands;
  int count;
  const Operand *begin() const { return operands.data(); }
  const Operand *end() const { return operands.data() + count; }
};
TakenOperands takenBy(plan::Instruction::Op op);
/// The place of an operand in `places`, -1 for one that it does not take.
int placeIndex(plan::Instruction::Op op, Operand operand);

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// What of the parameters of a layer may be written, or read beside what its
/// functions read; but for the first, of those that it updates.
enum class ParameterUse {
  UsedGradients = 1, ///< of all that it uses
  UpdatedGradients = 2,
  Masters = 4,
  Moments = 8,
  Copies = 16 ///< in the compute type
};
bool writesParameters(plan::Instruction::Op op);
bool writes(plan::Instruction::Op op, ParameterUse what);
bool reads(plan::Instruction::Op op, ParameterUse what);

//===----------------------------------------------------------------------===//
// Calls and exchanges
//===----------------------------------------------------------------------===//

/// What ranks do together by instructions of their own.
enum class ExchangeKind {
  None,
  Activation, ///< to the next stage
  Gradient,   ///< to the stage before, of an activation
  Reduction,  ///< of the gradients of parameters
  Gather,     ///< of the rows of parameters that other ranks updated
  Norm,
  ValueSwitch,   ///< parameters come to another graph
  GradientSwitch ///< gradients of parameters go home
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
  constexpr bool isSwitch() const {
    return kind == ExchangeKind::ValueSwitch ||
           kind == ExchangeKind::GradientSwitch;
  }
  constexpr bool isGradient() const { return kind == ExchangeKind::Gradient; }
  /// How many stages behind this one the other end of a message is: 1 or -1.
  constexpr int stagesOn() const { return sends != isGradient() ? 1 : -1; }
};

const char *instructionName(plan::Instruction::Op op);
ExchangeOp exchangeOf(plan::Instruction::Op op);
/// The DYNA_ROLE_* that an instruction calls, -1 for those that call nothing.
int roleOf(const plan::Instruction &instruction);

/// Of a stage's work, by the role that is called: schedules, reports and pictures go
/// by it, not by names of instructions.
enum class Pass { None, Forward, Recompute, Backward, Weight, Update };
Pass passOf(plan::Instruction::Op op);

/// Returns true if a start of an exchange of parameters includes the parameter at this
/// slot of its layer.
inline bool exchangesSlot(const plan::Instruction &instruction, int slot) {
  return instruction.parameter == 0 || instruction.parameter == slot + 1;
}

/// Whether it works on a micro-batch; the others on parameters.
inline bool isPerMicroBatch(plan::Instruction::Op op) {
  return hasField(op, Field::MicroBatch);
}
/// Whether it works on one and is no message.
inline bool isCompute(plan::Instruction::Op op) {
  return isPerMicroBatch(op) && exchangeOf(op).kind == ExchangeKind::None;
}
inline bool namesLayer(plan::Instruction::Op op) {
  return hasField(op, Field::Layer);
}
/// "FORWARD layer 3 micro-batch 1": for messages and traces.
std::string describeInstruction(const plan::Instruction &instruction);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H
