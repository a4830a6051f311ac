//===- DynaCanonicalize.cpp - Folds dyna ops --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An op with `places` is never folded: after the memory phase its result has to
// be where the place says.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace mlir::dyna;

/// Folds dropout with probability 0, which is the identity.
OpFoldResult DropoutOp::fold(FoldAdaptor) {
  if (getPlacesAttr() || !getProbability().isZero())
    return {};
  return getX();
}

/// Folds a rotation and its inverse.
OpFoldResult RotaryOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<RotaryOp>();
  if (getPlacesAttr() || !inner || inner.getPlacesAttr() ||
      inner.getInverse() == getInverse() ||
      inner.getSegments() != getSegments() ||
      inner.getHeadDim() != getHeadDim() || inner.getTheta() != getTheta() ||
      inner.getScalingAttr() != getScalingAttr())
    return {};
  return inner.getX();
}

/// Folds `relu(relu(x))` to `relu(x)`.
OpFoldResult ReluOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<ReluOp>();
  if (getPlacesAttr() || !inner)
    return {};
  return inner.getResult();
}

/// Returns true if every value of `from` has an equal one in `to`.
static bool isLossless(Type from, Type to) {
  const llvm::fltSemantics &narrow = cast<FloatType>(from).getFloatSemantics();
  const llvm::fltSemantics &wide = cast<FloatType>(to).getFloatSemantics();
  return APFloat::isRepresentableBy(narrow, wide);
}

/// Folds a cast to the same type, and a cast after a lossless one. It does not
/// fold a cast after a lossy one, because rounding twice differs.
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getPlacesAttr())
    return {};
  if (getX().getType() == getResult().getType())
    return getX();
  auto inner = getX().getDefiningOp<CastOp>();
  if (!inner || inner.getPlacesAttr() ||
      !isLossless(inner.getX().getType().getElementType(),
                  getX().getType().getElementType()))
    return {};
  if (inner.getX().getType() == getResult().getType())
    return inner.getX();
  getXMutable().assign(inner.getX());
  return getResult();
}
