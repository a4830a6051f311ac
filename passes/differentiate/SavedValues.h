//===- SavedValues.h - What forward keeps for backward -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decision of the differentiate phase, apart from any rewriting.
//
// Example, the feed-forward half of a GPT-2 block:
//   r = add(x, p); n = layer_norm(r); h = linear(n); a = gelu(h);
//   m = linear(a); z = add(r, m)
// Backward reads n and a (gradients of the weights), h (gelu) and r (norm):
//   products     r, h   r adds a product that nobody keeps; h is a product
//   elementwise  n, a   follow from r and h by cheap ops
// Under selective recomputation n and a are not kept but made again.
//
// Where one sweep over rows is all that reads a cheap value (silu(g) in the
// backward of silu(g) * u), backward makes it again from what the sweep reads
// anyway, and it is in no tier.
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
  /// What parameters, segments, the primary input and `products` give without
  /// another product.
  SmallVector<Value> elementwise;
  /// Gradients that the weight half of backward needs from the input half.
  SmallVector<Value> deferred;
  /// In no tier: what sweeps of backward make again.
  SmallVector<Value> repeated;
};

/// Quadratic in the number of saved values at worst, which is small.
SavedValues chooseSavedValues(JointLayer &joint);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_SAVEDVALUES_H
