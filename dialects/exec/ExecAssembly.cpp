//===- ExecAssembly.cpp - How exec ops are written ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::exec;

/// A number without the type of its attribute.
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

/// `[sample 3 length 30, sample 0 begin 8 length 5]`.
static ParseResult parseSegments(OpAsmParser &parser,
                                 DenseI64ArrayAttr &samples,
                                 DenseI64ArrayAttr &begins,
                                 DenseI64ArrayAttr &lengths) {
  SmallVector<int64_t> sample, begin, length;
  auto parseSegment = [&]() -> ParseResult {
    begin.push_back(0);
    if (parser.parseKeyword("sample") ||
        parser.parseInteger(sample.emplace_back()))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("begin")) &&
        parser.parseInteger(begin.back()))
      return failure();
    return failure(parser.parseKeyword("length") ||
                   parser.parseInteger(length.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseSegment))
    return failure();
  Builder &builder = parser.getBuilder();
  samples = builder.getDenseI64ArrayAttr(sample);
  begins = builder.getDenseI64ArrayAttr(begin);
  lengths = builder.getDenseI64ArrayAttr(length);
  return success();
}

static void printSegments(OpAsmPrinter &printer, Operation *,
                          DenseI64ArrayAttr samples, DenseI64ArrayAttr begins,
                          DenseI64ArrayAttr lengths) {
  printer << '[';
  llvm::interleaveComma(llvm::zip(samples.asArrayRef(), begins.asArrayRef(),
                                  lengths.asArrayRef()),
                        printer, [&](auto segment) {
                          auto [sample, begin, length] = segment;
                          printer << "sample " << sample;
                          if (begin != 0)
                            printer << " begin " << begin;
                          printer << " length " << length;
                        });
  printer << ']';
}

/// `[[0, 2], [1, 3]]`.
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

/// `[0:4, 0:8]`: begin and end of rows, then of columns.
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

/// `[rank 0 [0:4, 0:8], rank 1 [4:8, 0:8]]`.
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
