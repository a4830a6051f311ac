//===- Sparse.h - Describes weights that were pruned --------------*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A sparse weight W [rows, columns] is an array of values, one for each survivor, and
// an index. Gradient, moments and copies of the weight are arrays of the same length and
// order. So whatever works element by element (optimizer, norm, cast, reductions over
// replicas) takes the arrays as they are.
//
// W is cut into tiles of 128 x 128. The index exists twice, by rows and by columns, and
// both lead to the same values:
//
//     by rows       Y[t, i] = sum over j of X[t, j] W[i, j]      lines: i, depth: j
//     by columns    X[t, j] = sum over i of Y[t, i] W[i, j]      lines: j, depth: i
//
// A side of the index lists its tiles depth by depth. First come all tiles of the first
// 128 depths, one for each 128 lines. Activations of 128 depths and 64 tokens
// stay in the first-level cache meanwhile. In a tile the lines with most survivors come
// first: neighbours then have equal counts, which a processor predicts. The survivors of
// a line come in the order of their depth. Values have the order of the index by rows.
//
//     W, one tile   . 7 .     by rows     lines 1 0 2     counts 2 1 0
//                   4 . 5                 depths 0 2 1    values 4 5 7
//                   . . .     by columns  lines 0 1 2     counts 1 1 1
//                                         depths 1 0 1    places 0 2 1
//
// One survivor has 1 + 1 + 2 bytes of index. A tile has 528 bytes, 0.03 for each weight.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_SPARSE_H
#define DYNA_RUNTIME_ABI_SPARSE_H

#include "runtime/abi/Abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Lines, and depths, of a tile. A number of one fits into 8 bits, and the place of a
/// survivor in its tile into 16.
#define DYNA_SPARSE_TILE 128

static inline int64_t dyna_sparse_tiles(int64_t size) {
  return (size + DYNA_SPARSE_TILE - 1) / DYNA_SPARSE_TILE;
}

/// The index by rows, or by columns. Tile (d, l) has number d * tiles of lines + l.
typedef struct dyna_sparse_side {
  const int64_t *starts; ///< [tiles + 1]; survivors before a tile
  const uint8_t *lines;  ///< [tiles, 128]; lines in the order of the tile
  const uint8_t *counts; ///< [tiles, 128]; survivors of these lines, falling
  const uint8_t *depths; ///< [survivors]; within the tile
  const uint16_t
      *places; ///< [survivors]; of the value in its tile; null by rows
} dyna_sparse_side;

typedef struct dyna_sparse_weight {
  int64_t rows, columns;
  int64_t survivors;
  dyna_sparse_side by_row, by_column;
} dyna_sparse_weight;

/// Y[tokens, rows] = X[tokens, columns] * W^T. With `by_column` not 0, the gradient
/// of that: Y[tokens, columns] = X[tokens, rows] * W. With `accumulate` not 0, Y += that.
/// X, Y and values have the compute type; sums of bf16 are f32 and are rounded once.
typedef struct dyna_sparse_product {
  const dyna_sparse_weight *weight;
  const void *values; ///< [survivors]
  int64_t tokens;
  const void *x;
  int64_t ldx;
  void *y;
  int64_t ldy;
  int32_t by_column; ///< not 0: the product with W instead of W^T
  int32_t accumulate;
} dyna_sparse_product;

/// dW[i, j] = sum over t of dY[t, i] X[t, j], for survivors alone; or dW += that.
typedef struct dyna_sparse_gradient {
  const dyna_sparse_weight *weight;
  void *gradient; ///< [survivors], f32 (f64 under f64)
  int64_t tokens;
  const void *x; ///< [tokens, columns]
  int64_t ldx;
  const void *dy; ///< [tokens, rows]
  int64_t lddy;
  int32_t accumulate;
  int32_t reserved;
} dyna_sparse_gradient;

/// The sparse form of a weight, or of a rank's box of it: its index, and the values of
/// survivors. Values have the compute type, and the order of the index by rows.
///
/// Layer functions compiled with `dynac --sparse` accept it for the parameters that the
/// manifest lists (`sparse_parameters`). Of such a kind `params` of evaluate, forward,
/// recompute and backward has two entries for each parameter. The dense tensors of all
/// parameters come first, and their forms follow. `data` of a form points to a
/// dyna_sparse_form, or is null if this weight is dense. Products with a form do not
/// read the dense weight, and write its gradient at survivors alone.
typedef struct dyna_sparse_form {
  dyna_sparse_weight weight;
  void *values; ///< [survivors]
} dyna_sparse_form;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_RUNTIME_ABI_SPARSE_H
