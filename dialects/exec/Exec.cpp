//===- Exec.cpp - The exec dialect and its instructions -------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "dialects/dyna/KnownAttributes.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/InstructionBlocks.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;

// The dialect's instructions and the message's are one numbering.
static_assert(static_cast<int>(Instruction::GatherParamsWait) ==
                  plan::Instruction::GATHER_PARAMS_WAIT &&
              getMaxEnumValForInstruction() == plan::Instruction::Op_MAX);
static_assert(static_cast<int>(Recompute::Full) == plan::RECOMPUTE_FULL &&
              getMaxEnumValForRecompute() == plan::Recompute_MAX);

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

namespace {
/// By place in `fields`.
constexpr unsigned Mode = static_cast<unsigned>(::dyna::Field::Recompute);
constexpr unsigned Peer = static_cast<unsigned>(::dyna::Field::Peer);
} // namespace

static constexpr InstructionField fields[] = {
    {"layer", "layer", true},          {"micro_batch", "micro_batch", true},
    {"recompute", "recompute", true},  {"peer", "", true},
    {"bytes", "bytes", false},         {"kept", "kept", false},
    {"late", "late", false},           {"out", "out", false},
    {"grad_in", "grad_in", false},     {"grad_out", "grad_out", false},
    {"workspace", "workspace", false}, {"batch", "batch", false}};
static_assert(std::size(fields) == ::dyna::fieldCount);

ArrayRef<InstructionField> mlir::exec::getInstructionFields() { return fields; }

/// The message's number for it.
static plan::Instruction::Op opOf(Instruction instruction) {
  return static_cast<plan::Instruction::Op>(static_cast<int>(instruction));
}

bool mlir::exec::hasField(Instruction instruction, unsigned field) {
  return ::dyna::hasField(opOf(instruction), static_cast<::dyna::Field>(field));
}

/// `peer` is written as the direction of the message.
static StringRef keywordOf(Instruction instruction, unsigned field) {
  if (field != Peer)
    return fields[field].keyword;
  return ::dyna::exchangeOf(opOf(instruction)).sends ? "to" : "from";
}

static std::string listFields(Instruction instruction) {
  std::string text;
  for (unsigned field = 0; field < std::size(fields); ++field)
    if (hasField(instruction, field))
      text += (text.empty() ? "" : ", ") + keywordOf(instruction, field).str();
  return text.empty() ? "nothing" : text;
}

//===----------------------------------------------------------------------===//
// exec.do
//===----------------------------------------------------------------------===//

/// The field's value; absent is 0.
static int64_t valueOf(DoOp op, unsigned field) {
  auto value = dyn_cast_or_null<IntegerAttr>(op->getAttr(fields[field].name));
  return value ? value.getInt() : 0;
}

LogicalResult DoOp::verify() {
  for (unsigned field = 0; field < std::size(fields); ++field) {
    int64_t value = valueOf(*this, field);
    // DO1
    if (value != 0 && !hasField(getInstruction(), field))
      return emitOpError() << stringifyInstruction(getInstruction())
                           << " has no '" << fields[field].name << "', expects "
                           << listFields(getInstruction());
    // DO2
    if (value < 0)
      return emitOpError() << "expects '" << fields[field].name
                           << "' not to be negative, but got " << value;
  }
  return success();
}

void DoOp::print(OpAsmPrinter &printer) {
  Instruction instruction = getInstruction();
  printer << ' ' << stringifyInstruction(instruction);
  SmallVector<StringRef> elided{"instruction"};
  for (unsigned field = 0; field < std::size(fields); ++field) {
    elided.push_back(fields[field].name);
    if (!hasField(instruction, field))
      continue;
    if (field != Mode)
      printer << ' ' << keywordOf(instruction, field) << ' '
              << valueOf(*this, field);
    else if (getRecompute() != Recompute::None)
      printer << " recompute " << stringifyRecompute(getRecompute());
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), elided);
}

/// The field that the next word names, if it names one; `word` is that word.
static std::optional<unsigned> parseFieldName(OpAsmParser &parser,
                                              StringRef &word) {
  for (StringRef direction : {"to", "from"})
    if (succeeded(parser.parseOptionalKeyword(word = direction)))
      return Peer;
  for (unsigned field = 0; field < std::size(fields); ++field)
    if (field != Peer &&
        succeeded(parser.parseOptionalKeyword(word = fields[field].keyword)))
      return field;
  return std::nullopt;
}

/// A field's value behind its keyword.
static ParseResult parseField(OpAsmParser &parser, unsigned field,
                              NamedAttrList &attributes) {
  Builder &builder = parser.getBuilder();
  int64_t value = 0;
  SMLoc location = parser.getCurrentLocation();
  if (field == Mode) {
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    auto mode = symbolizeRecompute(keyword);
    if (!mode)
      return parser.emitError(location)
             << "expects none, selective or full, but got '" << keyword << "'";
    value = static_cast<int64_t>(*mode);
  } else if (parser.parseInteger(value)) {
    return failure();
  }
  bool isIndex = fields[field].isIndex;
  if (isIndex && value != static_cast<int32_t>(value))
    return parser.emitError(location)
           << "expects a number of 32 bits, but got " << value;
  attributes.append(fields[field].name,
                    builder.getIntegerAttr(isIndex ? builder.getI32Type()
                                                   : builder.getI64Type(),
                                           value));
  return success();
}

ParseResult DoOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc location = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  auto instruction = symbolizeInstruction(name);
  if (!instruction)
    return parser.emitError(location)
           << "expects an instruction, but got '" << name << "'";
  result.addAttribute("instruction", parser.getBuilder().getI32IntegerAttr(
                                         static_cast<int32_t>(*instruction)));
  // In any order, each once.
  StringRef word;
  while (std::optional<unsigned> field = parseFieldName(parser, word)) {
    if (!hasField(*instruction, *field))
      return parser.emitError(location)
             << name << " has no '" << fields[*field].name << "', expects "
             << listFields(*instruction);
    if (StringRef expected = keywordOf(*instruction, *field); word != expected)
      return parser.emitError(location) << name << " has '" << expected
                                        << "' a rank, not '" << word << "' one";
    if (result.attributes.get(fields[*field].name))
      return parser.emitError(location)
             << "'" << fields[*field].name << "' is given twice";
    if (failed(parseField(parser, *field, result.attributes)))
      return failure();
  }
  return parser.parseOptionalAttrDict(result.attributes);
}

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

#include "dialects/exec/ExecDialect.cpp.inc"
#include "dialects/exec/ExecEnums.cpp.inc"

void ExecDialect::initialize() {
  dyna::StrictOps<
#define GET_OP_LIST
#include "dialects/exec/Exec.cpp.inc"
      >::addTo(*this);
  // No phase leaves any.
  addInterface(std::make_unique<dyna::KnownAttributes>(
      this, ArrayRef<dyna::KnownAttribute>()));
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  return getRegisteredInterface<dyna::KnownAttributes>()->verify(op, attribute);
}
