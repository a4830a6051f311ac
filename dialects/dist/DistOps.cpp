//===- DistOps.cpp - Verifies and folds the dist ops ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"

using namespace mlir;
using namespace mlir::dist;

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

LogicalResult ReshardOp::verify() {
  RankedTensorType type = getX().getType();
  ::dyna::Layout from = getFrom().getLayout(), to = getTo().getLayout();
  // RESHARD1
  if (getFrom().getMesh() != getTo().getMesh())
    return emitOpError() << "expects layouts on one mesh, but got "
                         << getFrom().getMesh() << " and " << getTo().getMesh();
  for (const ::dyna::Layout &layout : {from, to})
    if (layout.dims.size() != size_t(type.getRank()))
      return emitOpError() << "expects layouts of " << type.getRank()
                           << " dimensions, but got " << layout.dims.size();
  // RESHARD2
  auto plan = ::dyna::planReshard(getTo().getMesh().getMesh(), from, to,
                                  ::dyna::Shape(type.getShape()));
  if (!plan.isOk())
    return emitOpError() << plan.status().message();
  return success();
}

/// Verifies TAG1 of every op that changes shapes: `dims` exist in both tensors.
static LogicalResult verifyDims(Operation *op, RankedTensorType x,
                                RankedTensorType result,
                                ArrayRef<int64_t> dims) {
  if (x.getRank() != result.getRank() ||
      x.getElementType() != result.getElementType())
    return op->emitOpError()
           << "expects operand and result of one rank and element type, but "
              "got "
           << x << " and " << result;
  for (int64_t dim : dims)
    if (dim < 0 || dim >= x.getRank())
      return op->emitOpError() << "expects a dimension of " << x << ", 0 to "
                               << x.getRank() - 1 << ", but got " << dim;
  return success();
}

/// Verifies TAG2: sizes outside of `dims` are equal.
static LogicalResult verifyOtherSizes(Operation *op, RankedTensorType x,
                                      RankedTensorType result,
                                      ArrayRef<int64_t> dims) {
  for (int64_t dim = 0; dim < x.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim) &&
        x.getDimSize(dim) != result.getDimSize(dim))
      return op->emitOpError()
             << "expects the sizes of dimension " << dim
             << " to be equal, but got " << x << " and " << result;
  return success();
}

/// Verifies TAG3: along `dim`, `whole` is `part` times the ranks of the group.
static LogicalResult verifyPart(Operation *op, int64_t dim, GroupAttr group,
                                RankedTensorType whole, RankedTensorType part) {
  if (whole.isDynamicDim(dim) && part.isDynamicDim(dim))
    return success();
  if (!whole.isDynamicDim(dim) && !part.isDynamicDim(dim) &&
      whole.getDimSize(dim) == group.getSize() * part.getDimSize(dim))
    return success();
  return op->emitOpError() << "expects dimension " << dim << " of " << whole
                           << " to be " << group.getSize() << " times that of "
                           << part << ", one part for each rank of the group";
}

static LogicalResult verifyPartOp(Operation *op, int64_t dim, GroupAttr group,
                                  RankedTensorType whole,
                                  RankedTensorType part) {
  return success(succeeded(verifyDims(op, whole, part, dim)) &&
                 succeeded(verifyOtherSizes(op, whole, part, dim)) &&
                 succeeded(verifyPart(op, dim, group, whole, part)));
}

LogicalResult AllGatherOp::verify() {
  // GATHER1 to GATHER3
  return verifyPartOp(*this, getDim(), getGroup(), getResult().getType(),
                      getX().getType());
}

LogicalResult ReduceScatterOp::verify() {
  // SCATTER1 to SCATTER3
  return verifyPartOp(*this, getDim(), getGroup(), getX().getType(),
                      getResult().getType());
}

LogicalResult SliceOp::verify() {
  // SLICE1 to SLICE3
  return verifyPartOp(*this, getDim(), getGroup(), getX().getType(),
                      getResult().getType());
}

LogicalResult AllToAllOp::verify() {
  int64_t dim = getDim(), to = getTo();
  RankedTensorType x = getX().getType(), result = getResult().getType();
  // TOALL1
  if (failed(verifyDims(*this, x, result, {dim, to})))
    return failure();
  if (dim == to)
    return emitOpError() << "expects two dimensions, but got " << dim
                         << " twice";
  // TOALL2
  if (failed(verifyOtherSizes(*this, x, result, {dim, to})))
    return failure();
  // TOALL3
  return success(succeeded(verifyPart(*this, dim, getGroup(), result, x)) &&
                 succeeded(verifyPart(*this, to, getGroup(), x, result)));
}

SmallVector<CollectiveOpInterface> ExchangeOp::getCollectives() {
  return llvm::to_vector(getBody().front().getOps<CollectiveOpInterface>());
}

GroupAttr ExchangeOp::getGroup() { return getCollectives().front().getGroup(); }

LogicalResult ExchangeOp::verifyRegions() {
  // EXCHANGE1
  Block &body = getBody().front();
  if (body.without_terminator().empty())
    return emitOpError("expects at least one collective");
  for (Operation &op : body.without_terminator()) {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective || !collective.isExchange())
      return op.emitOpError("stands in 'dist.exchange', which holds only "
                            "collectives that move data: all_reduce, "
                            "all_gather, reduce_scatter and all_to_all");
    if (dyna::placesOf(&op))
      return op.emitOpError("has places of its own; those of its result are "
                            "in the 'places' of the 'dist.exchange'");
  }
  SmallVector<CollectiveOpInterface> collectives = getCollectives();
  for (CollectiveOpInterface op : collectives) {
    // EXCHANGE2
    if (op.getGroup() != getGroup())
      return op->emitOpError()
             << "is over " << op.getGroup()
             << ", but the first collective is over " << getGroup();
    // EXCHANGE3
    if (Operation *maker = op.getX().getDefiningOp();
        maker && maker->getBlock() == op->getBlock())
      return op->emitOpError("reads what another collective of the same "
                             "'dist.exchange' gives: they cannot be one");
  }
  // EXCHANGE4
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != collectives.size())
    return yield->emitOpError()
           << "expects the results of " << collectives.size()
           << " collectives, but got " << yield->getNumOperands() << " values";
  for (auto [index, op] : llvm::enumerate(collectives))
    if (yield->getOperand(index) != op->getResult(0))
      return yield->emitOpError()
             << "expects value " << index << " to be the result of collective "
             << index << ": all of them, in order";
  if (yield->getOperandTypes() != getResultTypes())
    return emitOpError() << "expects results of the types that are yielded, "
                         << yield->getOperandTypes() << ", but got "
                         << getResultTypes();
  return success();
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//
//
// An op with `places` stays: its result has to be where the place says.

/// Folds a reshard to an equal layout, and one that undoes another. A sum
/// cannot be undone: the verifier refuses that.
OpFoldResult ReshardOp::fold(FoldAdaptor) {
  if (getFrom().isEquivalentTo(getTo()))
    return getX();
  auto inner = getX().getDefiningOp<ReshardOp>();
  if (inner && inner.getFrom().isEquivalentTo(getTo()) &&
      inner.getTo().isEquivalentTo(getFrom()))
    return inner.getX();
  return {};
}

/// Returns true for a group of one rank, which exchanges nothing.
template <typename Op> static bool isIdentity(Op op) {
  return !op.getPlacesAttr() && op.getGroup().getSize() == 1 &&
         op.getX().getType() == op.getResult().getType();
}

/// Returns the operand of `Inverse`, if `op` undoes it.
template <typename Inverse, typename Op> static Value undoes(Op op) {
  auto inner = op.getX().template getDefiningOp<Inverse>();
  if (!inner || op.getPlacesAttr() || inner.getPlacesAttr() ||
      inner.getGroup() != op.getGroup() || inner.getDim() != op.getDim() ||
      inner.getX().getType() != op.getResult().getType())
    return nullptr;
  return inner.getX();
}

OpFoldResult AllReduceOp::fold(FoldAdaptor) {
  return isIdentity(*this) ? OpFoldResult(getX()) : OpFoldResult();
}

OpFoldResult ReduceScatterOp::fold(FoldAdaptor) {
  return isIdentity(*this) ? OpFoldResult(getX()) : OpFoldResult();
}

OpFoldResult AllGatherOp::fold(FoldAdaptor) {
  if (isIdentity(*this))
    return getX();
  return undoes<SliceOp>(*this);
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (isIdentity(*this))
    return getX();
  return undoes<AllGatherOp>(*this);
}

/// Folds an exchange that undoes one in the other direction.
OpFoldResult AllToAllOp::fold(FoldAdaptor) {
  if (isIdentity(*this))
    return getX();
  auto inner = getX().getDefiningOp<AllToAllOp>();
  if (!inner || getPlacesAttr() || inner.getPlacesAttr() ||
      inner.getGroup() != getGroup() || inner.getDim() != getTo() ||
      inner.getTo() != getDim())
    return {};
  return inner.getX();
}

#define GET_OP_CLASSES
#include "dialects/dist/Dist.cpp.inc"
