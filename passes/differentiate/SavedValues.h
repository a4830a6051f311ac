//===- SavedValues.h - Chooses what forward keeps for backward --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides in the differentiate phase which values are saved, apart from any
// rewriting.
//
// Example, the feed-forward half of a GPT-2 block:
//
//     r = add(x, p); n = layer_norm(r); h = linear(n); a = gelu(h);
//     m = linear(a); z = add(r, m)
//
// Backward reads n and a (gradients of the weights), h (gelu) and r (norm):
//
//     products     r, h   r adds a product that is not kept; h is a product
//     elementwise  n, a   follow from r and h by cheap ops
//
// Under selective recomputation n and a are not kept but computed again.
//
// A cheap value may be read by sweeps over rows alone, such as silu(g) in the
// backward of silu(g) * u. Then backward computes it again from other operands
// of the sweep, and it is in no tier.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_SAVEDVALUES_H
#define DYNA_PASSES_DIFFERENTIATE_SAVEDVALUES_H

#include "passes/differentiate/JointLayer.h"

namespace mlir::dyna {

/// Values of the joint block, each list in block order.
struct SavedValues {
  /// Kept unless everything is recomputed.
  SmallVector<Value> products;
  /// Values that follow from parameters, segments, the primary input and
  /// `products` without another product.
  SmallVector<Value> elementwise;
  /// Gradients that the weight half of backward needs from the input half.
  SmallVector<Value> deferred;
  /// Values in no tier, which sweeps of backward compute again.
  SmallVector<Value> repeated;
};

/// Chooses the saved values. At worst quadratic in their number, which is
/// small.
SavedValues chooseSavedValues(JointLayer &joint);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_SAVEDVALUES_H
