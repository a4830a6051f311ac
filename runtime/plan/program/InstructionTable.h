//===- InstructionTable.h - Lists fields, blocks, uses of ops ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions that look up Instructions.def. Every instruction has room for every
// field. A field that its kind does not have must be 0, or the plan is refused.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H
#define DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H

#include "runtime/plan/program/Plan.h"

namespace dyna {

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// Fields in the order in which files and IR have them.
enum class Field { Layer, MicroBatch, Recompute, Phase, Bucket, Parameter };
constexpr int fieldCount = static_cast<int>(Field::Parameter) + 1;

const char *fieldName(Field field);
int64_t fieldOf(const plan::Instruction &instruction, Field field);
void setField(plan::Instruction &instruction, Field field, int64_t value);

bool hasField(plan::Instruction::Op op, Field field);
/// Returns true if the field must not be 0. Other limits follow from the plan
/// (PlanVerifier.h).
bool needsField(plan::Instruction::Op op, Field field);
/// Returns the fields of an instruction, then the blocks that it takes: "layer,
/// workspace", or "nothing".
std::string listFields(plan::Instruction::Op op);

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Names a block in an instruction. BlockKinds.def gives the block.
enum class Operand {
#define DYNA_OPERAND(name, ...) name,
#include "runtime/plan/program/BlockKinds.def"
};
constexpr int operandCount = 0
#define DYNA_OPERAND(...) +1
#include "runtime/plan/program/BlockKinds.def"
    ;
const char *operandName(Operand operand);

/// Use of a block by an instruction (Instructions.def).
struct BlockRule {
  enum Access : uint8_t {
    Read = 0,
    Write = 1,
    Take = 2,
    Give = 4,
    IfAbsent = 8 ///< takes the block unless it is alive already
  };
  Operand operand = Operand::Batch;
  uint8_t access = Read;

  constexpr bool is(Access what) const { return access & what; }
};

/// Rules of one instruction, as a range in the table.
struct BlockRules {
  const BlockRule *first;
  int count;
  const BlockRule *begin() const { return first; }
  const BlockRule *end() const { return first + count; }
};
BlockRules blockRules(plan::Instruction::Op op);

/// Operands that an instruction takes, in the order of its `places`.
struct TakenOperands {
  std::array<Operand, plan::Instruction::maxTaken> operands;
  int count;
  const Operand *begin() const { return operands.data(); }
  const Operand *end() const { return operands.data() + count; }
};
TakenOperands takenBy(plan::Instruction::Op op);
/// Returns the index of an operand in `places`; -1 if the instruction does not take it.
int placeIndex(plan::Instruction::Op op, Operand operand);

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// State of a layer's parameters that instructions read or write, beside what its
/// functions read. All but `UsedGradients` mean only the parameters that the layer
/// updates.
enum class ParameterUse {
  UsedGradients = 1, ///< gradients of all parameters that the layer uses
  UpdatedGradients = 2,
  Masters = 4,
  Moments = 8,
  Copies = 16 ///< copies in the compute type
};
bool writesParameters(plan::Instruction::Op op);
bool writes(plan::Instruction::Op op, ParameterUse what);
bool reads(plan::Instruction::Op op, ParameterUse what);

//===----------------------------------------------------------------------===//
// Calls and exchanges
//===----------------------------------------------------------------------===//

/// Exchanges between ranks that have instructions of their own.
enum class ExchangeKind {
  None,
  Activation, ///< activation for the next stage
  Gradient,   ///< gradient of an activation for the previous stage
  Reduction,  ///< sum of the gradients of parameters
  Gather,     ///< rows of parameters that other ranks updated
  Norm,
  ValueSwitch,   ///< parameters come to another graph
  GradientSwitch ///< gradients of parameters go home
};

/// An exchange from the side of one rank.
struct ExchangeOp {
  ExchangeKind kind = ExchangeKind::None;
  bool sends = false;  ///< true: sends a message; false: receives it
  bool starts = false; ///< true: starts the exchange; false: waits for it

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
  /// Returns true if the other end of a message is the stage of the edge's consumer,
  /// false if it is that of the producer.
  constexpr bool isTowardsConsumer() const { return sends != isGradient(); }
};

const char *instructionName(plan::Instruction::Op op);
ExchangeOp exchangeOf(plan::Instruction::Op op);
/// Returns the DYNA_ROLE_* that an instruction calls; -1: it calls no function.
int roleOf(const plan::Instruction &instruction);

/// Pass of a stage that an instruction belongs to, by the role that it calls.
/// Schedules, reports and pictures use passes instead of names of instructions.
enum class Pass { None, Forward, Recompute, Backward, Weight, Update };
Pass passOf(plan::Instruction::Op op);

/// Returns true if a start of an exchange of parameters includes the parameter at this
/// slot of its layer.
inline bool exchangesSlot(const plan::Instruction &instruction, int slot) {
  return instruction.parameter == 0 || instruction.parameter == slot + 1;
}

/// Returns true if the instruction works on a micro-batch. Others work on parameters.
inline bool isPerMicroBatch(plan::Instruction::Op op) {
  return hasField(op, Field::MicroBatch);
}
/// Returns true if the instruction works on a micro-batch and is no message.
inline bool isCompute(plan::Instruction::Op op) {
  return isPerMicroBatch(op) && exchangeOf(op).kind == ExchangeKind::None;
}
inline bool namesLayer(plan::Instruction::Op op) {
  return hasField(op, Field::Layer);
}
/// Returns the edge of a message (Model::edge). Files and IR have it as `layer`,
/// because edge l is the first input of layer l.
inline int edgeOf(const plan::Instruction &message) { return message.layer; }
/// Returns a text for messages and traces, such as "FORWARD layer 3 micro-batch 1".
std::string describeInstruction(const plan::Instruction &instruction);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_INSTRUCTIONTABLE_H
