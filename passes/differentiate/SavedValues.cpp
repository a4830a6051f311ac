//===- SavedValues.cpp - Chooses what forward keeps for backward ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/SavedValues.h"

#include "passes/differentiate/BlockSlice.h"

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// One layer's forward and backward ops, and what passes between them.
class SavedValuesChooser {
public:
  explicit SavedValuesChooser(JointLayer &joint) : joint(joint) {
    splitForwardBackward();
  }

  SavedValues choose() {
    collectUsedByBackward();
    dropWhatSweepsRepeat();
    sortIntoTiers();
    collectDeferred();
    return std::move(saved);
  }

private:
  void splitForwardBackward();
  void collectUsedByBackward();
  void dropWhatSweepsRepeat();
  void sortIntoTiers();
  void collectDeferred();

  bool isForwardResult(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && forward.contains(op) && !forwardAccumulators.contains(value);
  }
  /// Returns true if every layer function except forward and evaluate can read
  /// `value`.
  bool isLayerArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument &&
           (value == joint.getPrimaryInput() || value == joint.getSegments() ||
            argument.getArgNumber() < joint.getParameters().size());
  }
  bool isRepeatedBySweep(Value value);

  JointLayer &joint;
  BlockSlice forward, backward;
  llvm::DenseSet<Value> forwardAccumulators;
  /// Forward values that backward reads from the saved tiers, in block order.
  SmallVector<Value> used;
  SavedValues saved;
};

} // namespace

void SavedValuesChooser::splitForwardBackward() {
  SmallVector<Value> forwardRoots = joint.getForwardAccumulators();
  forwardAccumulators.insert_range(forwardRoots);
  llvm::append_range(forwardRoots, joint.getOutputs());
  forward = computeSlice(joint.getBlock(), forwardRoots,
                         [](Value value) { return isa<BlockArgument>(value); });

  SmallVector<Value> backwardRoots = joint.getFinalAccumulators();
  if (Value inputGradient = joint.getInputGradient())
    backwardRoots.push_back(inputGradient);
  backward = computeSlice(joint.getBlock(), backwardRoots, [&](Value value) {
    Operation *op = value.getDefiningOp();
    return !op || forward.contains(op);
  });
}

void SavedValuesChooser::collectUsedByBackward() {
  llvm::DenseSet<Value> read;
  for (Operation *op : backward.ops)
    read.insert_range(op->getOperands());
  // A head without a norm passes on the gradient that forward computed.
  if (Value inputGradient = joint.getInputGradient())
    read.insert(inputGradient);
  for (Operation *op : forward.ops)
    for (Value result : op->getResults())
      if (read.contains(result) && isForwardResult(result))
        used.push_back(result);
}

/// Returns true if a sweep repeats the op at less cost than reading its result.
/// Norms need a pass of their own over the row. Ops that read segments, such as
/// a dropout for its random numbers, need more than the row.
static bool isCheapInSweep(Operation *op) {
  return op->hasTrait<mlir::dyna::OpTrait::Elementwise>() &&
         llvm::none_of(op->getOperandTypes(), llvm::IsaPred<SegmentsType>);
}

bool SavedValuesChooser::isRepeatedBySweep(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isCheapInSweep(op))
    return false;
  auto isSweepOfBackward = [&](Operation *user) {
    return backward.contains(user) &&
           user->hasTrait<mlir::dyna::OpTrait::RowWise>();
  };
  auto isReadAnyway = [&](Value operand) {
    if (llvm::is_contained(joint.getParameters(), operand))
      return true;
    return (isLayerArgument(operand) || llvm::is_contained(used, operand)) &&
           llvm::any_of(operand.getUsers(), isSweepOfBackward);
  };
  return value != joint.getInputGradient() &&
         llvm::all_of(op->getOperands(), isReadAnyway) &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return !backward.contains(user) || isSweepOfBackward(user);
         });
}

void SavedValuesChooser::dropWhatSweepsRepeat() {
  // Operands of a repeated value must be read, so they are not repeated.
  llvm::DenseSet<Value> fixed;
  for (Value value : llvm::to_vector(llvm::reverse(used))) {
    if (fixed.contains(value) || !isRepeatedBySweep(value))
      continue;
    fixed.insert_range(value.getDefiningOp()->getOperands());
    llvm::erase(used, value);
    saved.repeated.push_back(value);
  }
}

void SavedValuesChooser::sortIntoTiers() {
  // In the order of the block, operands are decided before their users.
  llvm::DenseSet<Value> products;
  for (Value value : used) {
    BlockSlice slice =
        computeSlice(joint.getBlock(), value, [&](Value operand) {
          return isLayerArgument(operand) || products.contains(operand);
        });
    if (slice.missing.empty() && llvm::none_of(slice.ops, isProduct)) {
      saved.elementwise.push_back(value);
      continue;
    }
    products.insert(value);
    saved.products.push_back(value);
  }
}

void SavedValuesChooser::collectDeferred() {
  // Ops that depend on an accumulator accumulate.
  llvm::DenseSet<Value> accumulators = forwardAccumulators;
  llvm::DenseSet<Value> deferred;
  auto isAccumulator = [&](Value value) {
    return accumulators.contains(value);
  };
  for (Operation *op : backward.ops) {
    if (llvm::none_of(op->getOperands(), isAccumulator))
      continue;
    accumulators.insert_range(op->getResults());
    for (Value operand : op->getOperands())
      if (!isAccumulator(operand) && !isLayerArgument(operand) &&
          !isForwardResult(operand))
        deferred.insert(operand);
  }
  if (Value outputGradient = joint.getOutputGradient())
    if (deferred.contains(outputGradient))
      saved.deferred.push_back(outputGradient);
  for (Operation *op : backward.ops)
    for (Value result : op->getResults())
      if (deferred.contains(result))
        saved.deferred.push_back(result);
}

SavedValues mlir::dyna::chooseSavedValues(JointLayer &joint) {
  return SavedValuesChooser(joint).choose();
}
