//===- CompareFunctions.cpp - Compares what functions compute -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/CompareFunctions.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// Follows the results of both functions back to their arguments.
class Comparison {
public:
  Comparison(FunctionOp function, FunctionOp derived)
      : function(function), derived(derived) {}

  LogicalResult run();

private:
  /// A value of the function and the derived one that it has to equal, with the op
  /// that uses it, or the return.
  struct Pair {
    Value value, expected;
    Operation *user;
  };

  LogicalResult compare(const Pair &pair);
  LogicalResult compareOps(Operation *op, Operation *expected);
  LogicalResult refuse(Operation *at, const Pair &pair);

  FunctionOp function, derived;
  llvm::DenseMap<Value, Value> known;
  SmallVector<Pair> open;
};

} // namespace

static std::string describe(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "argument " + std::to_string(argument.getArgNumber());
  return "'" + value.getDefiningOp()->getName().getStringRef().str() + "'";
}

LogicalResult Comparison::refuse(Operation *at, const Pair &pair) {
  InFlightDiagnostic diagnostic = isa<ReturnOp>(at)
                                      ? function.emitOpError("returns ")
                                      : at->emitOpError("uses ");
  return diagnostic << describe(pair.value)
                    << " where the layer's derivation has "
                    << describe(pair.expected)
                    << "; run --dyna-differentiate on the layer again";
}

/// Compares two ops without their operands, whose types follow from those of
/// arguments.
static bool haveOneForm(Operation *op, Operation *expected) {
  if (op->getAttrDictionary() != expected->getAttrDictionary() ||
      op->getResultTypes() != expected->getResultTypes() ||
      op->getNumOperands() != expected->getNumOperands())
    return false;
  return llvm::all_of_zip(
      op->getRegions(), expected->getRegions(), [](Region &one, Region &other) {
        return OperationEquivalence::isRegionEquivalentTo(
            &one, &other, OperationEquivalence::IgnoreLocations);
      });
}

LogicalResult Comparison::compareOps(Operation *op, Operation *expected) {
  if (!haveOneForm(op, expected))
    return op->emitOpError("has other attributes, types or operands than the "
                           "layer's derivation: ")
           << op->getAttrDictionary() << " instead of "
           << expected->getAttrDictionary()
           << "; run --dyna-differentiate on the layer again";
  for (auto [value, other] :
       llvm::zip_equal(op->getOperands(), expected->getOperands()))
    open.push_back({value, other, op});
  return success();
}

LogicalResult Comparison::compare(const Pair &pair) {
  auto [known, isNew] = this->known.insert({pair.value, pair.expected});
  if (!isNew)
    return known->second == pair.expected ? success() : refuse(pair.user, pair);
  auto argument = dyn_cast<BlockArgument>(pair.value);
  auto expected = dyn_cast<BlockArgument>(pair.expected);
  if (argument || expected)
    return argument && expected &&
                   argument.getArgNumber() == expected.getArgNumber()
               ? success()
               : refuse(pair.user, pair);
  auto result = cast<OpResult>(pair.value);
  auto other = cast<OpResult>(pair.expected);
  if (result.getOwner()->getName() != other.getOwner()->getName() ||
      result.getResultNumber() != other.getResultNumber())
    return refuse(pair.user, pair);
  return compareOps(result.getOwner(), other.getOwner());
}

LogicalResult Comparison::run() {
  if (function.getArgPlaces() != derived.getArgPlaces() ||
      function.getResultPlaces() != derived.getResultPlaces() ||
      function.getFunctionType() != derived.getFunctionType())
    return function.emitOpError(
               "has other arguments or results than the layer's derivation, "
               "which is of type ")
           << derived.getFunctionType()
           << "; run --dyna-differentiate on the layer again";
  Operation *returned = function.getBody().front().getTerminator();
  Operation *expected = derived.getBody().front().getTerminator();
  for (auto [value, other] :
       llvm::zip_equal(returned->getOperands(), expected->getOperands()))
    open.push_back({value, other, returned});
  while (!open.empty())
    if (failed(compare(open.pop_back_val())))
      return failure();
  return success();
}

LogicalResult mlir::dyna::compareFunctions(FunctionOp function,
                                           FunctionOp derived) {
  return Comparison(function, derived).run();
}
