//===- SparseTable.h - Lists sparse kernels ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// SparseKernels.cpp is compiled once per instruction set, as Kernels.cpp is, and each
// copy fills one table. A task is the work of one thread. Results do not depend on how
// work is cut into tasks.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSETABLE_H
#define DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSETABLE_H

#include "runtime/abi/Sparse.h"

namespace dyna {

/// Lines and depths of a product.
struct SparseShape {
  const dyna_sparse_side *side;
  int64_t lines, depths;
  int64_t lineTiles, depthTiles;
};

// Static, since each instruction set has code of its own for it.
static inline SparseShape shapeOf(const dyna_sparse_product &p) {
  const dyna_sparse_weight &w = *p.weight;
  const int64_t lines = p.by_column ? w.columns : w.rows;
  const int64_t depths = p.by_column ? w.rows : w.columns;
  return {p.by_column ? &w.by_column : &w.by_row, lines, depths,
          dyna_sparse_tiles(lines), dyna_sparse_tiles(depths)};
}

/// Returns the number of survivors before a tile of the product's side, in the order of
/// values.
static inline int64_t valuesBefore(const dyna_sparse_product &p,
                                   const SparseShape &shape, int64_t tile) {
  if (p.by_column)
    tile = tile % shape.lineTiles * shape.depthTiles + tile / shape.lineTiles;
  return p.weight->by_row.starts[tile];
}

/// Tokens of one panel and some tiles of lines of a product.
struct SparseProductTask {
  /// In the order of the product's side of the index, and in the type of sums.
  const void *values;
  int64_t firstToken, tokens; ///< at most panelTokens
  int64_t firstTile, tiles;
};

/// Survivors of some tiles of rows and columns, over all tokens.
struct SparseGradientTask {
  int64_t rowTile, rowTiles;
  int64_t columnTile, columnTiles;
};

/// Kernels of one compute type.
struct TypedSparseKernels {
  int64_t panelTokens;
  /// Bytes of scratch per thread, for tasks with up to that many tiles of lines, and of
  /// rows.
  int64_t (*productScratch)(int64_t tiles);
  int64_t (*gradientScratch)(int64_t rowTiles);
  /// Brings the values of one tile into the order of the product's side of the index.
  void (*orderValues)(const dyna_sparse_product &, int64_t tile, void *ordered);
  void (*product)(const dyna_sparse_product &, const SparseProductTask &,
                  void *scratch);
  void (*gradient)(const dyna_sparse_gradient &, const SparseGradientTask &,
                   void *scratch);
};

struct SparseTable {
  TypedSparseKernels f32, f64, bf16;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSETABLE_H
