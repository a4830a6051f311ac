//===- InstructionTable.cpp - The fields of each instruction --------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/InstructionTable.h"

namespace dyna {

using plan::Instruction;

namespace {

template <typename... Fields> constexpr unsigned bits(Fields... list) {
  return ((1u << static_cast<int>(list)) | ... | 0u);
}

struct Row {
  Instruction::Op op;
  const char *name;
  unsigned has;
  unsigned needs;
};

constexpr unsigned message = bits(Field::Layer, Field::MicroBatch, Field::Peer);
constexpr unsigned call = bits(Field::Layer, Field::MicroBatch, Field::Kept,
                               Field::Workspace, Field::Batch);
constexpr unsigned mode = bits(Field::Recompute);
constexpr unsigned late = bits(Field::Recompute, Field::Late);
constexpr unsigned bytes = bits(Field::Bytes);
constexpr unsigned gradients = bits(Field::GradIn, Field::GradOut);
constexpr unsigned parameters = bits(Field::Layer);

// A micro-batch may have no tokens, and its message no bytes.
constexpr Row rows[] = {
    {Instruction::OP_UNKNOWN, "unknown instruction", 0, 0},
    {Instruction::LOAD, "LOAD",
     bits(Field::MicroBatch, Field::Out, Field::Batch), 0},
    {Instruction::FORWARD, "FORWARD", call | late | bits(Field::Out), 0},
    {Instruction::RECOMPUTE, "RECOMPUTE", call | late, mode},
    {Instruction::BACKWARD, "BACKWARD", call | late | gradients, 0},
    {Instruction::BACKWARD_INPUT, "BACKWARD_INPUT", call | late | gradients, 0},
    {Instruction::BACKWARD_WEIGHT, "BACKWARD_WEIGHT", call | late, 0},
    {Instruction::FREE, "FREE",
     bits(Field::Layer, Field::MicroBatch, Field::Kept, Field::Batch), 0},
    {Instruction::GRAD_NORM, "GRAD_NORM",
     parameters | bits(Field::Out, Field::Workspace), 0},
    {Instruction::UPDATE, "UPDATE", parameters | bits(Field::Workspace), 0},
    {Instruction::CAST_PARAMS, "CAST_PARAMS",
     parameters | bits(Field::Workspace), 0},
    {Instruction::EVALUATE, "EVALUATE", call | bits(Field::Out), 0},
    {Instruction::SEND_ACT_START, "SEND_ACT_START",
     message | bytes | bits(Field::Kept), 0},
    {Instruction::SEND_ACT_WAIT, "SEND_ACT_WAIT", message | bits(Field::Kept),
     0},
    {Instruction::RECV_ACT_START, "RECV_ACT_START",
     message | bytes | bits(Field::Kept), 0},
    {Instruction::RECV_ACT_WAIT, "RECV_ACT_WAIT", message | bits(Field::Kept),
     0},
    {Instruction::SEND_GRAD_START, "SEND_GRAD_START",
     message | bytes | bits(Field::GradOut), 0},
    {Instruction::SEND_GRAD_WAIT, "SEND_GRAD_WAIT",
     message | bits(Field::GradOut), 0},
    {Instruction::RECV_GRAD_START, "RECV_GRAD_START",
     message | bytes | bits(Field::GradIn), 0},
    {Instruction::RECV_GRAD_WAIT, "RECV_GRAD_WAIT",
     message | bits(Field::GradIn), 0},
    {Instruction::REDUCE_GRADS_START, "REDUCE_GRADS_START", parameters, 0},
    {Instruction::REDUCE_GRADS_WAIT, "REDUCE_GRADS_WAIT", parameters, 0},
    {Instruction::COMBINE_NORM, "COMBINE_NORM", 0, 0},
    {Instruction::GATHER_PARAMS_START, "GATHER_PARAMS_START", parameters, 0},
    {Instruction::GATHER_PARAMS_WAIT, "GATHER_PARAMS_WAIT", parameters, 0},
};

constexpr bool isInOrder() {
  for (int op = 0; op <= Instruction::Op_MAX; ++op)
    if (rows[op].op != op)
      return false;
  return sizeof(rows) / sizeof(*rows) == Instruction::Op_MAX + 1;
}
static_assert(isInOrder(), "a row for each instruction, by its number");

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

bool hasField(Instruction::Op op, Field field) {
  return rowOf(op).has & bits(field);
}

bool needsField(Instruction::Op op, Field field) {
  return rowOf(op).needs & bits(field);
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
