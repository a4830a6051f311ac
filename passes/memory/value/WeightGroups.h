//===- WeightGroups.h - Finds heads and channels of a layer -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Weights of a layer that can be pruned together, because each group computes features that
// no other one reads.
//
// A head is a group of an attention whose query, key and value come from products, and
// whose result only products read. It has one head of keys and values, with its query
// heads. A channel is a feature between products: only element-wise ops compute it, and
// only one product reads it. Products that follow each other directly, as those of
// low-rank adapters, have no channels.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUE_WEIGHTGROUPS_H
#define DYNA_PASSES_MEMORY_VALUE_WEIGHTGROUPS_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

struct WeightGroups {
  bool areHeads = false; ///< else channels
  int64_t count = 0;
  struct Part {
    int64_t parameter; ///< of the layer, a matrix
    int dimension;     ///< groups are ranges of its rows (0) or columns (1)
  };
  /// Each group has equally many rows or columns of a part, in order.
  SmallVector<Part> parts;
};

/// Returns the groups of a layer in its logical form. A matrix that would be in two lists
/// of the same kind is left out with both. O(ops^2).
SmallVector<WeightGroups> weightGroupsOf(LayerOp layer);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUE_WEIGHTGROUPS_H
