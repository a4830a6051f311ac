//===- InstructionTable.cpp - Lists fields, blocks, uses of ops -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/InstructionTable.h"

#include "runtime/abi/Abi.h"
#include "runtime/base/text/Text.h"

namespace dyna {

using plan::Instruction;

namespace {

constexpr int maxBlocks = 8;

/// Uses of parameters, as bits of ParameterUse.
struct ParameterUses {
  int writes = 0, reads = 0;
};

struct Row {
  const char *name;
  unsigned fields; ///< bits of its fields, then of required ones
  int calls;
  ExchangeOp exchange;
  BlockRule blocks[maxBlocks] = {};
  int blockCount = 0;
  TakenOperands taken = {{}, 0};
  ParameterUses uses = {};

  constexpr void add(BlockRule rule) {
    blocks[blockCount++] = rule;
    // This index is past the end if a row takes more than
    // Instruction::maxTaken.
    if (rule.is(BlockRule::Take))
      taken.operands[taken.count++] = rule.operand;
  }
  constexpr void add(ParameterUses more) {
    uses.writes |= more.writes;
    uses.reads |= more.reads;
  }
};

template <typename... Words>
constexpr Row makeRow(const char *name, unsigned fields, int calls,
                      ExchangeOp exchange, Words... words) {
  Row row = {name, fields, calls, exchange};
  (row.add(words), ...);
  return row;
}

// These are the words of Instructions.def.
namespace words {

constexpr unsigned bit(Field field) { return 1u << static_cast<int>(field); }
constexpr unsigned Layer = bit(Field::Layer);
constexpr unsigned MicroBatch = bit(Field::MicroBatch);
constexpr unsigned Recompute = bit(Field::Recompute);
constexpr unsigned Phase = bit(Field::Phase);
constexpr unsigned Bucket = bit(Field::Bucket);
constexpr unsigned Parameter = bit(Field::Parameter);
constexpr unsigned needs(unsigned field) { return field | field << fieldCount; }

constexpr int nothing = -1;

constexpr auto Activation = ExchangeKind::Activation;
constexpr auto LayerGradient = ExchangeKind::Gradient;
constexpr auto Reduction = ExchangeKind::Reduction;
constexpr auto Gather = ExchangeKind::Gather;
constexpr auto Norms = ExchangeKind::Norm;
constexpr auto ValueSwitch = ExchangeKind::ValueSwitch;
constexpr auto GradientSwitch = ExchangeKind::GradientSwitch;
constexpr ExchangeOp none = {};
constexpr ExchangeOp among(ExchangeKind kind) { return {kind, false, false}; }
constexpr ExchangeOp sendOf(ExchangeKind kind) { return {kind, true, false}; }
constexpr ExchangeOp receiptOf(ExchangeKind kind) { return among(kind); }
constexpr ExchangeOp start(ExchangeOp op) { return {op.kind, op.sends, true}; }
constexpr ExchangeOp wait(ExchangeOp op) { return op; }

#define DYNA_OPERAND(name, ...) constexpr Operand name = Operand::name;
#include "runtime/plan/program/BlockKinds.def"
constexpr BlockRule rule(Operand operand, int access) {
  return {operand, static_cast<uint8_t>(access)};
}
constexpr BlockRule read(Operand o) { return rule(o, BlockRule::Read); }
constexpr BlockRule write(Operand o) { return rule(o, BlockRule::Write); }
constexpr BlockRule give(Operand o) { return rule(o, BlockRule::Give); }
constexpr BlockRule take(Operand o) {
  return rule(o, BlockRule::Take | BlockRule::Write);
}
constexpr BlockRule fill(Operand o) {
  return rule(o, BlockRule::Take | BlockRule::IfAbsent | BlockRule::Write);
}
constexpr BlockRule scratch(Operand o) {
  return rule(o, BlockRule::Take | BlockRule::Write | BlockRule::Give);
}

constexpr auto UsedGradients = ParameterUse::UsedGradients;
constexpr auto UpdatedGradients = ParameterUse::UpdatedGradients;
constexpr auto Masters = ParameterUse::Masters;
constexpr auto Moments = ParameterUse::Moments;
constexpr auto Copies = ParameterUse::Copies;
template <typename... What> constexpr ParameterUses writes(What... what) {
  return {(static_cast<int>(what) | ...), 0};
}
template <typename... What> constexpr ParameterUses reads(What... what) {
  return {0, (static_cast<int>(what) | ...)};
}

constexpr Row rows[] = {
    makeRow("unknown instruction", 0, nothing, none),
#define DYNA_INSTRUCTION(name, ...) makeRow(#name, __VA_ARGS__),
#include "runtime/plan/program/Instructions.def"
};

} // namespace words

using words::rows;

static_assert(2 * fieldCount <= 32, "bits of fields");

constexpr int mostTaken() {
  int most = 0;
  for (const Row &row : rows)
    most = row.taken.count > most ? row.taken.count : most;
  return most;
}
static_assert(mostTaken() == Instruction::maxTaken,
              "no row takes as many blocks as there are places");
static_assert(Instruction().places.back() == plan::noPlace,
              "a place that nobody states is none: Instruction::places");

/// Returns the row of an op. A plan made by hand may contain any number.
const Row &rowOf(Instruction::Op op) {
  return rows[op <= Instruction::Op_MAX ? op : 0];
}

} // namespace

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

const char *fieldName(Field field) {
  static const char *const names[] = {"layer", "micro_batch", "recompute",
                                      "phase", "bucket",      "parameter"};
  static_assert(sizeof(names) / sizeof(*names) == fieldCount);
  return names[static_cast<int>(field)];
}

bool hasField(Instruction::Op op, Field field) {
  return rowOf(op).fields & words::bit(field);
}

bool needsField(Instruction::Op op, Field field) {
  return rowOf(op).fields >> fieldCount & words::bit(field);
}

std::string listFields(Instruction::Op op) {
  std::string text;
  auto add = [&](const char *name) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  };
  for (int field = 0; field < fieldCount; ++field)
    if (hasField(op, static_cast<Field>(field)))
      add(fieldName(static_cast<Field>(field)));
  for (Operand operand : takenBy(op))
    add(operandName(operand));
  return text.empty() ? "nothing" : text;
}

int64_t fieldOf(const Instruction &i, Field field) {
  switch (field) {
  case Field::Layer:
    return i.layer;
  case Field::MicroBatch:
    return i.microBatch;
  case Field::Recompute:
    return i.recompute;
  case Field::Phase:
    return i.phase;
  case Field::Bucket:
    return i.bucket;
  case Field::Parameter:
    return i.parameter;
  }
  return 0;
}

void setField(Instruction &i, Field field, int64_t value) {
  switch (field) {
  case Field::Layer:
    i.layer = static_cast<int>(value);
    break;
  case Field::MicroBatch:
    i.microBatch = static_cast<int>(value);
    break;
  case Field::Recompute:
    i.recompute = static_cast<plan::Recompute>(value);
    break;
  case Field::Phase:
    i.phase = static_cast<int>(value);
    break;
  case Field::Bucket:
    i.bucket = static_cast<int>(value);
    break;
  case Field::Parameter:
    i.parameter = static_cast<int>(value);
    break;
  }
}

bool plan::operator==(const Instruction &a, const Instruction &b) {
  return a.op == b.op && a.layer == b.layer && a.microBatch == b.microBatch &&
         a.recompute == b.recompute && a.phase == b.phase &&
         a.bucket == b.bucket && a.parameter == b.parameter &&
         a.places == b.places;
}

bool plan::operator==(const Segment &a, const Segment &b) {
  return a.sample == b.sample && a.stream == b.stream &&
         a.queries() == b.queries() && a.keyStream == b.keyStream &&
         a.keys() == b.keys();
}

bool plan::operator==(const MicroBatch &a, const MicroBatch &b) {
  return a.replica == b.replica && a.segments == b.segments;
}

bool plan::operator==(const PhasePlaces &a, const PhasePlaces &b) {
  return a.dynamic == b.dynamic && a.values == b.values &&
         a.gradients == b.gradients && a.valueTransit == b.valueTransit &&
         a.gradientTransit == b.gradientTransit;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

const char *operandName(Operand operand) {
  switch (operand) {
#define DYNA_OPERAND(name, text, ...)                                          \
  case Operand::name:                                                          \
    return text;
#include "runtime/plan/program/BlockKinds.def"
  }
  return "unknown";
}

BlockRules blockRules(Instruction::Op op) {
  return {rowOf(op).blocks, rowOf(op).blockCount};
}

TakenOperands takenBy(Instruction::Op op) { return rowOf(op).taken; }

int placeIndex(Instruction::Op op, Operand operand) {
  const TakenOperands &taken = rowOf(op).taken;
  for (int index = 0; index < taken.count; ++index)
    if (taken.operands[index] == operand)
      return index;
  return -1;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

bool writesParameters(Instruction::Op op) { return rowOf(op).uses.writes != 0; }

bool writes(Instruction::Op op, ParameterUse what) {
  return rowOf(op).uses.writes & static_cast<int>(what);
}

bool reads(Instruction::Op op, ParameterUse what) {
  return rowOf(op).uses.reads & static_cast<int>(what);
}

//===----------------------------------------------------------------------===//
// Calls and exchanges
//===----------------------------------------------------------------------===//

const char *instructionName(Instruction::Op op) { return rowOf(op).name; }

ExchangeOp exchangeOf(Instruction::Op op) { return rowOf(op).exchange; }

int roleOf(const Instruction &instruction) {
  int role = rowOf(instruction.op).calls;
  return role == DYNA_ROLE_RECOMPUTE_SELECTIVE &&
                 instruction.recompute == plan::RECOMPUTE_FULL
             ? DYNA_ROLE_RECOMPUTE_FULL
             : role;
}

/// By role.
static constexpr Pass passes[] = {
    Pass::Forward, // evaluates
    Pass::Forward,  Pass::Recompute, Pass::Recompute, Pass::Backward,
    Pass::Backward, Pass::Weight,    Pass::Update,
    Pass::None, // norms
    Pass::None, // casts
};
static_assert(std::size(passes) == DYNA_ROLE_COUNT,
              "say what pass of a stage a function of a new role belongs to");
static_assert(passes[DYNA_ROLE_RECOMPUTE_FULL] == Pass::Recompute &&
              passes[DYNA_ROLE_BACKWARD_WEIGHT] == Pass::Weight &&
              passes[DYNA_ROLE_UPDATE] == Pass::Update);

Pass passOf(Instruction::Op op) {
  const int role = rowOf(op).calls;
  return role < 0 ? Pass::None : passes[role];
}

std::string describeInstruction(const Instruction &instruction) {
  std::string text = instructionName(instruction.op);
  if (namesLayer(instruction.op))
    text += formatText(" layer %d", instruction.layer);
  if (isPerMicroBatch(instruction.op))
    text += formatText(" micro-batch %d", instruction.microBatch);
  if (hasField(instruction.op, Field::Bucket))
    text += formatText(" phase %d bucket %d", instruction.phase,
                       instruction.bucket);
  if (instruction.parameter != 0)
    text += formatText(" parameter %d", instruction.parameter);
  return text;
}

} // namespace dyna
