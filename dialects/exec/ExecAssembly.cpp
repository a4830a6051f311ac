//===- ExecAssembly.cpp - Prints and parses exec ops ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/program/Plan.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;

/// Parses a number without the type of its attribute.
static ParseResult parseNumberOf(OpAsmParser &parser, IntegerAttr &number,
                                 unsigned width) {
  int64_t value;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseInteger(value))
    return failure();
  if (!llvm::isIntN(width, value))
    return parser.emitError(location)
           << "expects a number of " << width << " bits, but got " << value;
  Builder &builder = parser.getBuilder();
  number = builder.getIntegerAttr(builder.getIntegerType(width), value);
  return success();
}

static ParseResult parseIndex(OpAsmParser &parser, IntegerAttr &number) {
  return parseNumberOf(parser, number, 32);
}

static void printIndex(OpAsmPrinter &printer, Operation *, IntegerAttr number) {
  printer << number.getInt();
}

static ParseResult parseNumber(OpAsmParser &parser, IntegerAttr &number) {
  return parseNumberOf(parser, number, 64);
}

static void printNumber(OpAsmPrinter &printer, Operation *,
                        IntegerAttr number) {
  printer << number.getInt();
}

static ParseResult parseHash(OpAsmParser &parser, IntegerAttr &hash) {
  uint64_t value;
  if (parser.parseInteger(value))
    return failure();
  hash = parser.getBuilder().getI64IntegerAttr(static_cast<int64_t>(value));
  return success();
}

static void printHash(OpAsmPrinter &printer, Operation *, IntegerAttr hash) {
  printer << llvm::format_hex(static_cast<uint64_t>(hash.getInt()), 18,
                              /*Upper=*/true);
}

/// Parses `[sample 3 length 30, sample 0 stream 1 begin 8 length 5 key_stream 2
/// key_begin 4 key_end 9]`.
static ParseResult
parseSegments(OpAsmParser &parser, DenseI64ArrayAttr &samples,
              DenseI64ArrayAttr &begins, DenseI64ArrayAttr &lengths,
              DenseI64ArrayAttr &streams, DenseI64ArrayAttr &keys) {
  SmallVector<int64_t> sample, begin, length, stream, key;
  bool hasBegin = false, hasStream = false, hasKeys = false;
  // `number` is the default. A default that is written counts as left out.
  auto parseOptional = [&](StringRef keyword, int64_t &number,
                           bool &hasOther) -> ParseResult {
    const int64_t usual = number;
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseInteger(number))
      return failure();
    hasOther |= number != usual;
    return success();
  };
  auto parseSegment = [&]() -> ParseResult {
    begin.push_back(0);
    stream.push_back(0);
    key.append({0, 0, plan::Segment::ownEnd});
    if (parser.parseKeyword("sample") ||
        parser.parseInteger(sample.emplace_back()) ||
        parseOptional("stream", stream.back(), hasStream) ||
        parseOptional("begin", begin.back(), hasBegin) ||
        parser.parseKeyword("length") ||
        parser.parseInteger(length.emplace_back()))
      return failure();
    int64_t *own = key.end() - 3;
    return failure(parseOptional("key_stream", own[0], hasKeys) ||
                   parseOptional("key_begin", own[1], hasKeys) ||
                   parseOptional("key_end", own[2], hasKeys));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseSegment))
    return failure();
  Builder &builder = parser.getBuilder();
  samples = builder.getDenseI64ArrayAttr(sample);
  begins = builder.getDenseI64ArrayAttr(begin);
  lengths = builder.getDenseI64ArrayAttr(length);
  if (hasStream)
    streams = builder.getDenseI64ArrayAttr(stream);
  if (hasKeys)
    keys = builder.getDenseI64ArrayAttr(key);
  return success();
}

static void printSegments(OpAsmPrinter &printer, Operation *,
                          DenseI64ArrayAttr samples, DenseI64ArrayAttr begins,
                          DenseI64ArrayAttr lengths, DenseI64ArrayAttr streams,
                          DenseI64ArrayAttr keys) {
  auto printUnless = [&](int64_t usual, const char *word, int64_t number) {
    if (number != usual)
      printer << word << number;
  };
  printer << '[';
  llvm::interleaveComma(
      llvm::seq<int64_t>(samples.size()), printer, [&](int64_t at) {
        printer << "sample " << samples[at];
        if (streams)
          printUnless(0, " stream ", streams[at]);
        printUnless(0, " begin ", begins[at]);
        printer << " length " << lengths[at];
        if (!keys)
          return;
        printUnless(0, " key_stream ", keys[3 * at]);
        printUnless(0, " key_begin ", keys[3 * at + 1]);
        printUnless(plan::Segment::ownEnd, " key_end ", keys[3 * at + 2]);
      });
  printer << ']';
}

/// Parses `[[0, 2], [1, 3]]`.
static ParseResult parseRankLists(OpAsmParser &parser, ArrayAttr &lists) {
  SmallVector<Attribute> elements;
  auto parseList = [&]() -> ParseResult {
    SmallVector<int64_t> ranks;
    auto parseRank = [&]() {
      return parser.parseInteger(ranks.emplace_back());
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRank))
      return failure();
    elements.push_back(parser.getBuilder().getDenseI64ArrayAttr(ranks));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseList))
    return failure();
  lists = parser.getBuilder().getArrayAttr(elements);
  return success();
}

static void printRankLists(OpAsmPrinter &printer, Operation *,
                           ArrayAttr lists) {
  printer << '[';
  llvm::interleaveComma(lists.getAsRange<DenseI64ArrayAttr>(), printer,
                        [&](DenseI64ArrayAttr ranks) {
                          printer << '[';
                          llvm::interleaveComma(ranks.asArrayRef(), printer);
                          printer << ']';
                        });
  printer << ']';
}

/// Parses `[0:4, 0:8]`: begin and end of rows, then of columns.
static ParseResult parseRectangle(OpAsmParser &parser,
                                  SmallVectorImpl<int64_t> &numbers) {
  auto parseRange = [&]() -> ParseResult {
    return failure(parser.parseInteger(numbers.emplace_back()) ||
                   parser.parseColon() ||
                   parser.parseInteger(numbers.emplace_back()));
  };
  return failure(parser.parseLSquare() || parseRange() || parser.parseComma() ||
                 parseRange() || parser.parseRSquare());
}

static void printRectangle(OpAsmPrinter &printer, ArrayRef<int64_t> numbers) {
  printer << '[' << numbers[0] << ':' << numbers[1] << ", " << numbers[2] << ':'
          << numbers[3] << ']';
}

static ParseResult parseRectangle(OpAsmParser &parser, DenseI64ArrayAttr &box) {
  SmallVector<int64_t> numbers;
  if (parseRectangle(parser, numbers))
    return failure();
  box = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}

static void printRectangle(OpAsmPrinter &printer, Operation *,
                           DenseI64ArrayAttr box) {
  printRectangle(printer, box.asArrayRef());
}

/// Parses `[rank 0 [0:4, 0:8], rank 1 [4:8, 0:8]]`.
static ParseResult parseRankBoxes(OpAsmParser &parser,
                                  DenseI64ArrayAttr &boxes) {
  SmallVector<int64_t> numbers;
  auto parseBox = [&]() -> ParseResult {
    return failure(parser.parseKeyword("rank") ||
                   parser.parseInteger(numbers.emplace_back()) ||
                   parseRectangle(parser, numbers));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseBox))
    return failure();
  boxes = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}

static void printRankBoxes(OpAsmPrinter &printer, Operation *,
                           DenseI64ArrayAttr boxes) {
  printer << '[';
  for (ArrayRef<int64_t> left = boxes.asArrayRef(); left.size() >= 5;
       left = left.drop_front(5)) {
    printer << (left.size() == static_cast<size_t>(boxes.size()) ? "" : ", ")
            << "rank " << left[0] << ' ';
    printRectangle(printer, left.slice(1, 4));
  }
  printer << ']';
}

#define GET_OP_CLASSES
#include "dialects/exec/Exec.cpp.inc"
