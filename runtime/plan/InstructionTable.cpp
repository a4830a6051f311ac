//===- InstructionTable.cpp - The fields of each instruction --------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/InstructionTable.h"

#include "runtime/abi/Abi.h"

namespace dyna {

using plan::Instruction;

namespace {

struct Row {
  Instruction::Op op;
  const char *name;
  unsigned fields; ///< bits of those that it has, then of those it needs
  int calls;
  ExchangeOp exchange;
};

// The words of Instructions.def.
namespace words {

constexpr unsigned bit(Field field) { return 1u << static_cast<int>(field); }
constexpr unsigned Layer = bit(Field::Layer);
constexpr unsigned MicroBatch = bit(Field::MicroBatch);
constexpr unsigned Recompute = bit(Field::Recompute);
constexpr unsigned Bytes = bit(Field::Bytes);
constexpr unsigned Kept = bit(Field::Kept);
constexpr unsigned Late = bit(Field::Late);
constexpr unsigned Out = bit(Field::Out);
constexpr unsigned GradIn = bit(Field::GradIn);
constexpr unsigned GradOut = bit(Field::GradOut);
constexpr unsigned Workspace = bit(Field::Workspace);
constexpr unsigned Batch = bit(Field::Batch);
constexpr unsigned message = Layer | MicroBatch | bit(Field::Peer);
constexpr unsigned call = Layer | MicroBatch | Kept | Workspace | Batch;
constexpr unsigned needs(unsigned field) { return field | field << fieldCount; }

constexpr int nothing = -1;

constexpr auto Activation = ExchangeKind::Activation;
constexpr auto Gradient = ExchangeKind::Gradient;
constexpr auto Reduction = ExchangeKind::Reduction;
constexpr auto Gather = ExchangeKind::Gather;
constexpr auto Norm = ExchangeKind::Norm;
constexpr ExchangeOp none = {};
constexpr ExchangeOp among(ExchangeKind kind) { return {kind, false, false}; }
constexpr ExchangeOp sendOf(ExchangeKind kind) { return {kind, true, false}; }
constexpr ExchangeOp receiptOf(ExchangeKind kind) { return among(kind); }
constexpr ExchangeOp start(ExchangeOp op) { return {op.kind, op.sends, true}; }
constexpr ExchangeOp wait(ExchangeOp op) { return op; }

constexpr Row rows[] = {
    {Instruction::OP_UNKNOWN, "unknown instruction", 0, nothing, none},
#define DYNA_INSTRUCTION(name, fields, calls, exchange)                        \
  {Instruction::name, #name, fields, calls, exchange},
#include "runtime/plan/Instructions.def"
};

} // namespace words

using words::rows;

constexpr bool isInOrder() {
  for (int op = 0; op <= Instruction::Op_MAX; ++op)
    if (rows[op].op != op)
      return false;
  return sizeof(rows) / sizeof(*rows) == Instruction::Op_MAX + 1;
}
static_assert(isInOrder(), "a row for each instruction, by its number");
static_assert(2 * fieldCount <= 32, "bits of fields");

/// A message may hold any number.
const Row &rowOf(Instruction::Op op) {
  return rows[op > 0 && op <= Instruction::Op_MAX ? op : 0];
}

} // namespace

const char *fieldName(Field field) {
  static const char *const names[] = {
      "layer", "micro_batch", "recompute", "peer",     "bytes",     "kept",
      "late",  "out",         "grad_in",   "grad_out", "workspace", "batch"};
  static_assert(sizeof(names) / sizeof(*names) == fieldCount);
  return names[static_cast<int>(field)];
}

const char *instructionName(Instruction::Op op) { return rowOf(op).name; }

ExchangeOp exchangeOf(Instruction::Op op) { return rowOf(op).exchange; }

int roleOf(const Instruction &instruction) {
  int role = rowOf(instruction.op()).calls;
  return role == DYNA_ROLE_RECOMPUTE_SELECTIVE &&
                 instruction.recompute() == plan::RECOMPUTE_FULL
             ? DYNA_ROLE_RECOMPUTE_FULL
             : role;
}

bool hasField(Instruction::Op op, Field field) {
  return rowOf(op).fields & words::bit(field);
}

bool needsField(Instruction::Op op, Field field) {
  return rowOf(op).fields >> fieldCount & words::bit(field);
}

std::string listFields(Instruction::Op op) {
  std::string text;
  for (int field = 0; field < fieldCount; ++field)
    if (hasField(op, static_cast<Field>(field)))
      text += (text.empty() ? "" : ", ") +
              std::string(fieldName(static_cast<Field>(field)));
  return text.empty() ? "nothing" : text;
}

int64_t fieldOf(const Instruction &i, Field field) {
  switch (field) {
  case Field::Layer:
    return i.layer();
  case Field::MicroBatch:
    return i.micro_batch();
  case Field::Recompute:
    return i.recompute();
  case Field::Peer:
    return i.peer();
  case Field::Bytes:
    return i.message_bytes();
  case Field::Kept:
    return i.kept_offset();
  case Field::Late:
    return i.late_offset();
  case Field::Out:
    return i.out_offset();
  case Field::GradIn:
    return i.grad_in_offset();
  case Field::GradOut:
    return i.grad_out_offset();
  case Field::Workspace:
    return i.workspace_offset();
  case Field::Batch:
    return i.batch_offset();
  }
  return 0;
}

void setField(Instruction &i, Field field, int64_t value) {
  switch (field) {
  case Field::Layer:
    return i.set_layer(static_cast<int32_t>(value));
  case Field::MicroBatch:
    return i.set_micro_batch(static_cast<int32_t>(value));
  case Field::Recompute:
    return i.set_recompute(static_cast<plan::Recompute>(value));
  case Field::Peer:
    return i.set_peer(static_cast<int32_t>(value));
  case Field::Bytes:
    return i.set_message_bytes(value);
  case Field::Kept:
    return i.set_kept_offset(value);
  case Field::Late:
    return i.set_late_offset(value);
  case Field::Out:
    return i.set_out_offset(value);
  case Field::GradIn:
    return i.set_grad_in_offset(value);
  case Field::GradOut:
    return i.set_grad_out_offset(value);
  case Field::Workspace:
    return i.set_workspace_offset(value);
  case Field::Batch:
    return i.set_batch_offset(value);
  }
}

} // namespace dyna
