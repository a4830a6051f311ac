//===- DynaCanonicalize.cpp - Folders and canonicalisation of dyna ops -*- C++
//-*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"

using namespace mlir;
using namespace mlir::dyna;

/// Dropout with probability 0 is the identity.
OpFoldResult DropoutOp::fold(FoldAdaptor) {
  return getProbability().isZero() ? OpFoldResult(getX()) : OpFoldResult();
}
