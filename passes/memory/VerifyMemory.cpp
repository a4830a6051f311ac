//===- VerifyMemory.cpp - Verifies that no needed value is overwritten ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows the bytes instead of lifetimes. Every value has a range. A write to a
// range spoils all earlier values whose ranges may overlap it. To read a
// spoiled value is an error. Ranges are linear in the counts of tokens and
// segments. They are separate for all counts if one ends before the other
// begins in every coefficient.
//
// Functions of a layer must agree on the sizes of its tiers, and on the places
// of arguments and results in them. These are computed again and compared. Each
// function chooses the places of its temporaries. But these must not use memory
// that is kept after the call, and the workspace must not be larger than
// needed.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "passes/memory/AcceptSparse.h"
#include "passes/memory/Passes.h"
#include "passes/memory/place/MemoryPlan.h"
#include "passes/memory/value/ProductRuns.h"
#include "passes/memory/value/TokenParts.h"
#include "passes/memory/value/Values.h"
#include "runtime/abi/Abi.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_VERIFYMEMORY
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct Range {
  PlaceAttr place;
  LinearBytes begin;
  LinearBytes end;
  // Fields of the place, which are read very often.
  Memory memory;
  int64_t index;
  bool block;

  /// Sizes of a place with a stride, in bytes.
  int64_t rowBytes = 0, column = 0, stride = 0;

  static Range of(PlaceAttr place, const LinearBytes &bytes) {
    LinearBytes begin = place.getOffset();
    Memory memory = place.getMemory();
    return {place,
            begin,
            begin + bytes,
            memory,
            place.getIndex(),
            isTier(memory) || memory == Memory::Workspace};
  }
  /// Returns the range of a value. With a stride, it spans the rows from the
  /// first to the last with everything in between.
  static Range of(PlaceAttr place, Value value, const TokenParts &parts) {
    LinearBytes bytes = parts.bytesOf(value);
    if (place.getStride() == 0)
      return of(place, bytes);
    int64_t rowBytes = rowBytesOf(value);
    Range range = of(place, stridedBytes(bytes, rowBytes, place.getStride()));
    range.rowBytes = rowBytes;
    range.column = place.getColumn();
    range.stride = place.getStride();
    return range;
  }
  bool isBlock() const { return block; }
  bool isApartFrom(const Range &other) const {
    if (memory != other.memory)
      return true;
    // Entries of the arrays are separate tensors.
    if (!block)
      return index != other.index;
    if (isBesides(other) && (column + rowBytes <= other.column ||
                             other.column + other.rowBytes <= column))
      return true;
    return end.isAtMost(other.begin) || other.end.isAtMost(begin);
  }
  /// Returns true if both have columns of the same rows.
  bool isBesides(const Range &other) const {
    return stride != 0 && stride == other.stride && begin == other.begin;
  }
  bool isSameAs(const Range &other) const {
    return memory == other.memory && (block || index == other.index) &&
           begin == other.begin && end == other.end && column == other.column &&
           stride == other.stride && rowBytes == other.rowBytes;
  }
};

/// One value as the walk sees it.
struct State {
  Range range;
  Operation *spoiledBy = nullptr;
};

/// Values that an op reads while it writes, and those that may share a place
/// with its results.
struct Readers {
  llvm::SetVector<Value> reads;
  SmallVector<std::pair<Value, OpResult>> sums;
  // The product in whose epilogue a sweep runs, and its operands.
  Operation *product = nullptr;
  llvm::SmallPtrSet<Value, 4> productReads, productSums;
};

class FunctionVerifier {
public:
  FunctionVerifier(FunctionOp function, LayerOp layer)
      : function(function), block(function.getBody().front()), layer(layer),
        parts(function), runs(findJoinedRuns(function)) {}

  LogicalResult run();

private:
  LogicalResult addArguments();
  void findLastReaders();
  LogicalResult runOp(Operation &op);
  LogicalResult checkOutlives(Operation &op);
  LogicalResult checkWorkspace();
  LogicalResult checkReturn(Operation &op);
  LogicalResult checkRange(Operation *op, const Range &range);
  LogicalResult checkReads(Operation &op);
  LogicalResult checkOwnOperands(Operation &op, const Readers &readers,
                                 Value result, const Range &written);
  LogicalResult checkAccumulators(Operation &op);
  void spoil(Operation &op, const Range &written);

  /// Returns the products that run as one with this one, if it is the last of
  /// them.
  SmallVector<Operation *> runOf(Operation *product) const;
  /// Returns the values that these products read.
  llvm::SetVector<Value> productReadsOf(Operation *product) const;
  /// Returns the outside values that the op reads.
  llvm::SetVector<Value> readsOf(Operation &op) const;
  Readers readersOf(Operation &op) const;

  FunctionOp function;
  Block &block;
  LayerOp layer;
  const TokenParts parts;
  const SmallVector<ProductRun> runs;
  LinearBytes workspace; ///< of all that lies there
  /// States of values that later ops still read.
  llvm::DenseMap<Value, State> states;
  /// The values that nothing reads behind an op.
  llvm::DenseMap<Operation *, SmallVector<Value>> lastReads;
};

llvm::SetVector<Value> FunctionVerifier::readsOf(Operation &op) const {
  llvm::SetVector<Value> reads;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (operand.getParentBlock() == &block && states.contains(operand))
        reads.insert(operand);
  });
  return reads;
}

/// Checks that a range is aligned, and inside of its tier or of the workspace.
/// An array has only the entries that the function takes or gives.
LogicalResult FunctionVerifier::checkRange(Operation *op, const Range &range) {
  if (!range.isBlock()) {
    if (llvm::is_contained(function.getArgPlaces(), range.place) ||
        llvm::is_contained(function.getResultPlaces(), range.place))
      return success();
    return op->emitOpError("lies in ")
           << range.place << ", which the function neither takes nor gives";
  }
  if (range.memory == Memory::Workspace && range.index != 0)
    return op->emitOpError("expects no index in workspace, but got ")
           << range.place;
  const LinearBytes &at = range.begin;
  if (at.tq < 0 || at.tkv < 0 || at.s < 0 || at.constant < 0)
    return op->emitOpError("expects offsets that are not negative, but got ")
           << range.place;
  for (int64_t perRow : {at.tq, at.tkv, at.s})
    if (perRow * DYNA_ROW_ALIGNMENT % DYNA_BLOCK_ALIGNMENT != 0)
      return op->emitOpError("expects even offsets per token, but got ")
             << range.place;
  if (at.constant % DYNA_BLOCK_ALIGNMENT != 0)
    return op->emitOpError("expects a constant offset that is a multiple of ")
           << DYNA_BLOCK_ALIGNMENT << ", but got " << range.place;
  int64_t column = range.place.getColumn(), stride = range.place.getStride();
  if (column % DYNA_BLOCK_ALIGNMENT != 0 || stride % DYNA_BLOCK_ALIGNMENT != 0)
    return op->emitOpError(
               "expects a column and a stride that are multiples of ")
           << DYNA_BLOCK_ALIGNMENT << ", but got " << range.place;
  if (stride != 0 && column + range.rowBytes > stride)
    return op->emitOpError("has ")
           << range.rowBytes << " bytes a row, which do not fit into "
           << range.place;

  PlaceAttr limit = function.getWorkspaceAttr();
  Memory memory = range.place.getMemory();
  if (memory != Memory::Workspace) {
    if (!layer || !layer.getTiersAttr() || layer.getTiersAttr().size() != 4)
      return op->emitOpError("lies in a tier, but the layer ")
             << function.getLayerAttr() << " does not state its four tiers";
    unsigned tier = llvm::find(tierMemories, memory) - tierMemories;
    limit = cast<PlaceAttr>(layer.getTiersAttr()[tier]);
  } else if (!limit) {
    return op->emitOpError("lies in workspace, but the function does not state "
                           "its workspace");
  }
  if (!range.end.isAtMost(limit.getOffset()))
    return op->emitOpError("ends at ")
           << range.end.str() << " bytes of '" << stringifyMemory(memory)
           << "', which has only " << limit.getOffset().str();
  return success();
}

llvm::SetVector<Value>
FunctionVerifier::productReadsOf(Operation *product) const {
  llvm::SetVector<Value> reads;
  for (Operation *op : runOf(product))
    for (Value operand : readsOf(*op))
      reads.insert(operand);
  return reads;
}

SmallVector<Operation *> FunctionVerifier::runOf(Operation *product) const {
  for (const ProductRun &run : runs)
    if (run.last() == product)
      return run.ops;
  return {product};
}

LogicalResult FunctionVerifier::addArguments() {
  SmallVector<Range> ranges;
  for (auto [argument, place] :
       llvm::zip_equal(block.getArguments(),
                       function.getArgPlaces().getAsRange<PlaceAttr>())) {
    if (place.getMemory() == Memory::Segments)
      continue;
    Range range = Range::of(place, argument, parts);
    if (failed(checkRange(function, range)))
      return failure();
    for (const Range &other : ranges)
      if (!range.isApartFrom(other))
        return function.emitOpError("has arguments that overlap, in ")
               << other.place << " and " << place;
    ranges.push_back(range);
    states[argument] = {range, nullptr};
  }
  return success();
}

LogicalResult FunctionVerifier::checkReads(Operation &op) {
  for (Value value : readsOf(op)) {
    Operation *spoiler = states[value].spoiledBy;
    if (!spoiler)
      continue;
    InFlightDiagnostic error = op.emitOpError("reads a value in ")
                               << states[value].range.place
                               << " that has been overwritten";
    error.attachNote(spoiler->getLoc()) << "overwritten here";
    return error;
  }
  return success();
}

Readers FunctionVerifier::readersOf(Operation &op) const {
  Readers readers;
  readers.reads = readsOf(op);
  readers.sums = accumulationsOf(&op);
  auto rows = dyn_cast<RowsOp>(op);
  readers.product = rows ? getEpilogueProduct(rows) : nullptr;
  if (!readers.product)
    return readers;
  for (Value operand : productReadsOf(readers.product)) {
    readers.productReads.insert(operand);
    readers.reads.insert(operand);
  }
  for (Operation *part : runOf(readers.product))
    for (auto [accumulator, sum] : accumulationsOf(part))
      readers.productSums.insert(accumulator);
  return readers;
}

/// Checks that a result shares a place with an operand of its own op only if
/// code generation supports it. A sweep in an epilogue never overwrites
/// operands that its product still reads.
LogicalResult FunctionVerifier::checkOwnOperands(Operation &op,
                                                 const Readers &readers,
                                                 Value result,
                                                 const Range &written) {
  for (Value operand : readers.reads) {
    const Range &from = states[operand].range;
    if (written.isApartFrom(from))
      continue;
    bool isAllowed = false;
    for (auto [accumulator, sum] : readers.sums)
      isAllowed |= accumulator == operand && sum == result;
    // The product turns this operand into its result row by row.
    isAllowed |= readers.productSums.contains(operand) &&
                 from.isSameAs(states[readers.product->getResult(0)].range);
    isAllowed |= result && from.isSameAs(written) &&
                 !readers.productReads.contains(operand) &&
                 mayReplace(&op, operand, cast<OpResult>(result));
    if (!isAllowed)
      return op.emitOpError("writes to ")
             << written.place << " while it still reads an operand in "
             << from.place;
  }
  return success();
}

LogicalResult FunctionVerifier::checkAccumulators(Operation &op) {
  for (auto [accumulator, result] : accumulationsOf(&op))
    if (!states[accumulator].range.isSameAs(states[result].range))
      return op.emitOpError("expects to add in place, but the accumulator lies "
                            "in ")
             << states[accumulator].range.place << " and the result in "
             << states[result].range.place;
  return success();
}

void FunctionVerifier::spoil(Operation &op, const Range &written) {
  for (auto &[value, state] : states)
    if (!written.isApartFrom(state.range) && value.getDefiningOp() != &op)
      state.spoiledBy = &op;
}

/// Checks that an op writes outside of the workspace only where the function
/// returns results, because that memory outlives the call.
LogicalResult FunctionVerifier::checkOutlives(Operation &op) {
  ArrayAttr places = placesOf(&op);
  if (!places)
    return success();
  for (auto place : places.getAsRange<PlaceAttr>())
    if (place.getMemory() != Memory::Workspace &&
        !llvm::is_contained(function.getResultPlaces(), place))
      return op.emitOpError("writes to ")
             << place << ", where the function returns nothing: a temporary "
             << "lies in workspace";
  return success();
}

/// Checks that the workspace is as large as its contents, and no larger.
LogicalResult FunctionVerifier::checkWorkspace() {
  PlaceAttr stated = function.getWorkspaceAttr();
  PlaceAttr expected =
      PlaceAttr::get(function.getContext(), Memory::Workspace, 0, workspace);
  if (!stated || stated == expected)
    return success();
  return function.emitOpError("expects the workspace ")
         << expected << ", which is what lies in it, but got " << stated;
}

LogicalResult FunctionVerifier::runOp(Operation &op) {
  ArrayAttr places = placesOf(&op);
  std::optional<LinearBytes> scratch = scratchOf(&op);
  size_t expected = op.getNumResults() + (scratch ? 1 : 0);
  if (!places)
    return op.emitOpError("has no places; run dyna-plan-memory first");
  if (places.size() != expected)
    return op.emitOpError("expects ")
           << expected << " places, but got " << places.size();
  if (failed(checkReads(op)))
    return failure();

  const Readers readers = readersOf(op);
  SmallVector<std::pair<Value, Range>> written;
  for (auto [index, attribute] : llvm::enumerate(places)) {
    Value result = index < op.getNumResults() ? op.getResult(index) : Value();
    auto place = cast<PlaceAttr>(attribute);
    Range range =
        result ? Range::of(place, result, parts) : Range::of(place, *scratch);
    if (place.getStride() != 0 && !(result && takesStrides(&op)))
      return op.emitOpError("takes no stride, but got ") << place;
    if (range.memory == Memory::Workspace)
      workspace = workspace.upperBound(range.end);
    if (failed(checkRange(&op, range)) ||
        failed(checkOwnOperands(op, readers, result, range)))
      return failure();
    for (auto &[other, otherRange] : written)
      if (!range.isApartFrom(otherRange))
        return op.emitOpError("writes two results to overlapping places, ")
               << otherRange.place << " and " << range.place;
    written.push_back({result, range});
  }
  for (auto &[result, range] : written) {
    spoil(op, range);
    if (result)
      states[result] = {range, nullptr};
  }
  if (failed(checkAccumulators(op)))
    return failure();
  // Values without later reads need no state.
  for (Value value : lastReads[&op])
    states.erase(value);
  return success();
}

/// Arguments are watched to the end. A product in front of its sweep reads
/// until that has ended.
void FunctionVerifier::findLastReaders() {
  DenseMap<Operation *, int64_t> number;
  SmallVector<Operation *> ops;
  for (Operation &op : block) {
    number[&op] = static_cast<int64_t>(ops.size());
    ops.push_back(&op);
  }
  DenseMap<Operation *, Operation *> lastOfRun;
  for (const ProductRun &run : runs)
    for (Operation *op : run.ops)
      lastOfRun[op] = run.last();
  auto numberOf = [&](Operation *reader) {
    Operation *outer = block.findAncestorOpInBlock(*reader);
    if (Operation *last = lastOfRun.lookup(outer))
      outer = last; // inner reads count until the end of the run
    return number[outer] + (getEpilogue(outer) ? 1 : 0);
  };
  for (Operation &op : block.without_terminator())
    for (Value result : op.getResults()) {
      int64_t last = number[&op];
      for (Operation *reader : result.getUsers())
        last = std::max(last, numberOf(reader));
      lastReads[ops[last]].push_back(result);
    }
}

/// Checks the results. A value is at its place of return, or can be copied
/// there: no other result is in the way. Arguments are unchanged, unless they
/// were replaced.
LogicalResult FunctionVerifier::checkReturn(Operation &op) {
  if (failed(checkReads(op)))
    return failure();
  SmallVector<Range> targets;
  for (auto [value, place] :
       llvm::zip_equal(op.getOperands(),
                       function.getResultPlaces().getAsRange<PlaceAttr>())) {
    Range target = Range::of(place, value, parts);
    if (failed(checkRange(&op, target)))
      return failure();
    for (const Range &other : targets)
      if (!target.isApartFrom(other))
        return op.emitOpError("returns two values to overlapping places, ")
               << other.place << " and " << place;
    targets.push_back(target);
    bool isArgument = isa<BlockArgument>(value);
    if (!isArgument && !states[value].range.isSameAs(target) &&
        llvm::count(op.getOperands(), value) == 1)
      return op.emitOpError("returns a value in ")
             << place << ", but it lies in " << states[value].range.place;
    if (states[value].range.isSameAs(target))
      continue;
    for (Value other : op.getOperands())
      if (!target.isApartFrom(states[other].range))
        return op.emitOpError("copies a value to ")
               << place << ", where another returned value lies";
  }
  for (BlockArgument argument : block.getArguments()) {
    auto state = states.find(argument);
    if (state == states.end() || !state->second.spoiledBy)
      continue;
    auto isHere = [&](const Range &target) {
      return target.isSameAs(state->second.range);
    };
    if (llvm::any_of(targets, isHere))
      continue;
    return state->second.spoiledBy->emitOpError("overwrites the argument in ")
           << state->second.range.place
           << ", which the function does not return";
  }
  return success();
}

LogicalResult FunctionVerifier::run() {
  if (failed(addArguments()))
    return failure();
  findLastReaders();
  for (Operation &op : block.without_terminator())
    if (failed(runOp(op)))
      return failure();
  if (failed(checkReturn(*block.getTerminator())))
    return failure();
  for (Operation &op : block.without_terminator())
    if (failed(checkOutlives(op)))
      return failure();
  return checkWorkspace();
}

//===----------------------------------------------------------------------===//
// Agreement of the functions of a layer
//===----------------------------------------------------------------------===//

LogicalResult checkPlaces(FunctionOp function, StringRef what, ArrayAttr stated,
                          const TierPlan &plan) {
  SmallVector<PlaceAttr> expected = placesInTiers(stated, plan);
  for (auto [index, place] : llvm::enumerate(stated.getAsRange<PlaceAttr>())) {
    // There is one saved input. Other indices count from 0.
    if (place.getIndex() < 0 ||
        (place.getMemory() == Memory::SavedInput && place.getIndex() != 0))
      return function.emitOpError("expects ")
             << what << " #" << index
             << " to have an index that its memory has, but got " << place;
    if (place != expected[index])
      return function.emitOpError("expects ")
             << what << " #" << index << " to lie in " << expected[index]
             << ", as in all functions of its layer, but got " << place;
  }
  return success();
}

LogicalResult checkTiers(LayerOp layer, ArrayRef<FunctionOp> functions) {
  FailureOr<TierPlan> plan = planTiers(layer, functions);
  if (failed(plan))
    return failure();
  for (FunctionOp function : functions)
    if (failed(checkPlaces(function, "argument", function.getArgPlaces(),
                           *plan)) ||
        failed(
            checkPlaces(function, "result", function.getResultPlaces(), *plan)))
      return failure();
  ArrayAttr stated = layer ? layer.getTiersAttr() : ArrayAttr();
  if (!stated)
    return success();
  SmallVector<Attribute> expected;
  for (auto [memory, size] : llvm::zip_equal(tierMemories, plan->sizes))
    expected.push_back(PlaceAttr::get(layer.getContext(), memory, 0, size));
  auto tiers = ArrayAttr::get(layer.getContext(), expected);
  if (stated == tiers)
    return success();
  return layer.emitOpError("expects the tiers ")
         << tiers << ", which is what its functions keep, but got " << stated;
}

/// Callers pass one list of forms to all functions of a layer.
LogicalResult checkSparse(ArrayRef<FunctionOp> functions) {
  FunctionOp first;
  for (FunctionOp function : functions) {
    if (!computesLayer(function.getRole())) {
      if (function.getSparseParameters().empty())
        continue;
      return function.emitOpError("accepts sparse weights, but has no matrix "
                                  "products");
    }
    if (!first)
      first = function;
    if (function.getSparseParameters() != first.getSparseParameters())
      return function.emitOpError("expects 'sparse' to list the parameters "
                                  "that it lists in @")
             << first.getSymName() << ", a function of the same layer";
  }
  return success();
}

} // namespace

LogicalResult mlir::dyna::verifyMemory(ModuleOp module) {
  if (failed(requireFunctions(module)))
    return failure();
  SymbolTable symbols(module);
  for (auto &[name, functions] : functionsByLayer(module)) {
    auto layer = symbols.lookup<LayerOp>(name);
    for (FunctionOp function : functions)
      if (failed(FunctionVerifier(function, layer).run()))
        return failure();
    if (failed(checkTiers(layer, functions)) || failed(checkSparse(functions)))
      return failure();
  }
  return success();
}

namespace {

struct VerifyMemory : mlir::dyna::impl::VerifyMemoryBase<VerifyMemory> {
  void runOnOperation() override {
    if (getOperation().getOps<FunctionOp>().empty())
      warnOfNothing(getOperation(), getArgument(),
                    "layer functions; --dyna-differentiate makes them");
    if (failed(verifyMemory(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
