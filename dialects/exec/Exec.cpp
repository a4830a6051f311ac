//===- Exec.cpp - Registers the exec dialect and its instructions ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "dialects/dyna/KnownAttributes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "runtime/plan/program/InstructionTable.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;
using ::dyna::Field;
using ::dyna::takenBy;

// The modes of the dialect and those of plans must have the same numbers.
static_assert(static_cast<int>(Recompute::Full) == plan::RECOMPUTE_FULL &&
              getMaxEnumValForRecompute() == plan::Recompute_MAX);

//===----------------------------------------------------------------------===//
// exec.do
//===----------------------------------------------------------------------===//

/// Returns the word of exec for an op: "forward".
static std::string wordOf(plan::Instruction::Op op) {
  return StringRef(::dyna::instructionName(op)).lower();
}

static std::optional<plan::Instruction::Op> findInstruction(StringRef word) {
  for (int op = 1; op <= plan::Instruction::Op_MAX; ++op)
    if (auto which = static_cast<plan::Instruction::Op>(op);
        word == wordOf(which))
      return which;
  return std::nullopt;
}

LogicalResult DoOp::verify() {
  // DO1
  auto number = static_cast<int32_t>(getInstruction());
  if (number <= 0 || number > plan::Instruction::Op_MAX)
    return emitOpError() << "expects an instruction from 1 to "
                         << plan::Instruction::Op_MAX << ", but got " << number;
  auto op = static_cast<plan::Instruction::Op>(number);
  auto value = [&](Field field) -> int64_t {
    return field == Field::Layer        ? static_cast<int32_t>(getLayer())
           : field == Field::MicroBatch ? static_cast<int32_t>(getMicroBatch())
           : field == Field::Phase      ? static_cast<int32_t>(getPhase())
           : field == Field::Bucket     ? static_cast<int32_t>(getBucket())
           : field == Field::Parameter  ? static_cast<int32_t>(getParameter())
                                        : static_cast<int32_t>(getRecompute());
  };
  for (int number = 0; number < ::dyna::fieldCount; ++number) {
    auto field = static_cast<Field>(number);
    // DO1
    if (value(field) != 0 && !hasField(op, field))
      return emitOpError() << wordOf(op) << " has no '" << fieldName(field)
                           << "', expects " << ::dyna::listFields(op);
    // DO2
    if (value(field) < 0)
      return emitOpError() << "expects '" << fieldName(field)
                           << "' not to be negative, but got " << value(field);
  }
  // DO3
  const ::dyna::TakenOperands taken = takenBy(op);
  if (getPlaces().size() != static_cast<size_t>(taken.count))
    return emitOpError() << "expects a place for each of " << taken.count
                         << " blocks that " << wordOf(op)
                         << " may take, but got " << getPlaces().size();
  for (auto [operand, place] : llvm::zip(taken, getPlaces()))
    if (place != plan::noPlace &&
        (place < 0 || place % plan::placeAlignment != 0))
      return emitOpError() << "expects '" << operandName(operand)
                           << "' to be a multiple of " << plan::placeAlignment
                           << ", but got " << place;
  return success();
}

void DoOp::print(OpAsmPrinter &printer) {
  auto op = static_cast<plan::Instruction::Op>(getInstruction());
  printer << ' ' << wordOf(op);
  if (hasField(op, Field::Layer))
    printer << " layer " << getLayer();
  if (hasField(op, Field::MicroBatch))
    printer << " micro_batch " << getMicroBatch();
  if (hasField(op, Field::Recompute) && getRecompute() != Recompute::None)
    printer << " recompute " << stringifyRecompute(getRecompute());
  if (hasField(op, Field::Phase))
    printer << " phase " << getPhase();
  if (hasField(op, Field::Bucket))
    printer << " bucket " << getBucket();
  if (hasField(op, Field::Parameter) && getParameter() != 0)
    printer << " parameter " << getParameter();
  for (auto [operand, place] : llvm::zip(takenBy(op), getPlaces()))
    if (place != plan::noPlace)
      printer << ' ' << operandName(operand) << ' ' << place;
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {"instruction", "layer", "micro_batch", "recompute",
                            "phase", "bucket", "parameter", "places"});
}

namespace {
/// The words behind an instruction, in any order, each once.
class WordParser {
public:
  WordParser(OpAsmParser &parser, plan::Instruction::Op op)
      : parser_(parser), op_(op) {}

  ParseResult parse(OperationState &result) {
    places_.assign(takenBy(op_).count, plan::noPlace);
    SMLoc location = parser_.getCurrentLocation();
    while (std::optional<StringRef> word = parseWord()) {
      if (!seen_.insert(*word).second)
        return parser_.emitError(location)
               << "'" << *word << "' is given twice";
      if (parseValueOf(*word, location, result))
        return failure();
      location = parser_.getCurrentLocation();
    }
    result.addAttribute("places",
                        parser_.getBuilder().getDenseI64ArrayAttr(places_));
    return success();
  }

private:
  /// Parses a word of an instruction; any other word begins the next op.
  std::optional<StringRef> parseWord() {
    StringRef word;
    auto is = [&](const char *name) {
      return succeeded(parser_.parseOptionalKeyword(word = name));
    };
    for (int field = 0; field < ::dyna::fieldCount; ++field)
      if (is(fieldName(static_cast<Field>(field))))
        return word;
    for (int operand = 0; operand < ::dyna::operandCount; ++operand)
      if (is(operandName(static_cast<::dyna::Operand>(operand))))
        return word;
    return std::nullopt;
  }

  ParseResult parseValueOf(StringRef word, SMLoc location,
                           OperationState &result) {
    for (int number = 0; number < ::dyna::fieldCount; ++number)
      if (auto field = static_cast<Field>(number);
          word == fieldName(field) && hasField(op_, field))
        return parseField(field, result);
    for (auto [index, operand] : llvm::enumerate(takenBy(op_)))
      if (word == operandName(operand))
        return parsePlace(word, places_[index]);
    return parser_.emitError(location)
           << wordOf(op_) << " has no '" << word << "', expects "
           << ::dyna::listFields(op_);
  }

  /// Parses a place. -1 means no place, which has no word.
  ParseResult parsePlace(StringRef word, int64_t &place) {
    SMLoc location = parser_.getCurrentLocation();
    if (parser_.parseInteger(place))
      return failure();
    if (place < 0)
      return parser_.emitError(location)
             << "expects '" << word << "' to be a multiple of "
             << plan::placeAlignment << ", but got " << place;
    return success();
  }

  ParseResult parseField(Field field, OperationState &result) {
    int64_t value = 0;
    SMLoc location = parser_.getCurrentLocation();
    if (field == Field::Recompute) {
      StringRef keyword;
      if (parser_.parseKeyword(&keyword))
        return failure();
      auto mode = symbolizeRecompute(keyword);
      if (!mode)
        return parser_.emitError(location)
               << "expects none, selective or full, but got '" << keyword
               << "'";
      value = static_cast<int64_t>(*mode);
    } else if (parser_.parseInteger(value)) {
      return failure();
    }
    if (value != static_cast<int32_t>(value))
      return parser_.emitError(location)
             << "expects a number of 32 bits, but got " << value;
    result.addAttribute(fieldName(field),
                        parser_.getBuilder().getI32IntegerAttr(value));
    return success();
  }

  OpAsmParser &parser_;
  const plan::Instruction::Op op_;
  SmallVector<int64_t> places_;
  llvm::StringSet<> seen_;
};
} // namespace

ParseResult DoOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc location = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  auto instruction = findInstruction(name);
  if (!instruction)
    return parser.emitError(location)
           << "expects an instruction, but got '" << name << "'";
  result.addAttribute("instruction", parser.getBuilder().getI32IntegerAttr(
                                         static_cast<int32_t>(*instruction)));
  if (WordParser(parser, *instruction).parse(result))
    return failure();
  return parser.parseOptionalAttrDict(result.attributes);
}

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

#include "dialects/exec/ExecDialect.cpp.inc"
#include "dialects/exec/ExecEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttributes.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/ExecAttributes.cpp.inc"
      >();
  dyna::StrictOps<
#define GET_OP_LIST
#include "dialects/exec/Exec.cpp.inc"
      >::addTo(*this);
  // No attribute of this dialect remains after a phase.
  addInterface(std::make_unique<dyna::KnownAttributes>(
      this, ArrayRef<dyna::KnownAttribute>()));
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  return getRegisteredInterface<dyna::KnownAttributes>()->verify(op, attribute);
}
