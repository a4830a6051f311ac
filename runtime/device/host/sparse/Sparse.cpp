//===- Sparse.cpp - Multiplies with sparse weights ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Divides work among the threads of the team. Every element of a result is summed up by
// one task, in the order of the index or of tokens. So the cut changes no bit.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/sparse/Sparse.h"

#include "runtime/abi/Collectives.h"
#include "runtime/device/CheckSparse.h"
#include "runtime/device/Failure.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/sparse/SparseTable.h"

#include <algorithm>
#include <cstring>

using namespace dyna;

namespace {

/// Most tiles of lines of a task: a panel of 24 takes 768 KB of the second-level cache.
constexpr int64_t kMostTiles = 24;
/// Fewest tiles of lines of a task, if there are as many: each task packs its input.
constexpr int64_t kFewestTiles = 4;

int64_t divideUp(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit;
}

/// Tiles cut into parts of equal size, but for the last one.
struct Parts {
  int64_t tiles, size;
  Parts(int64_t allTiles, int64_t count)
      : tiles(allTiles), size(divideUp(allTiles, count)) {}
  int64_t count() const { return divideUp(tiles, size); }
  int64_t first(int64_t part) const { return part * size; }
  int64_t sizeOf(int64_t part) const {
    return std::min(size, tiles - part * size);
  }
};

/// Parts of a product's lines: as few as panels are enough for all threads.
Parts partsOfLines(int64_t tiles, int64_t panels, int threads) {
  int64_t count = divideUp(tiles, kMostTiles);
  if (threads > 1 && panels * count < 4 * threads)
    count = std::max(
        count, std::min(divideUp(4 * threads, panels), tiles / kFewestTiles));
  return Parts(tiles, count);
}

/// A gradient cut into parts of rows and of columns, which are nearly square: a task packs
/// both inputs.
struct GradientParts {
  Parts rows, columns;
};

GradientParts partsOfGradient(const dyna_sparse_weight &w, int threads) {
  const int64_t rowTiles = dyna_sparse_tiles(w.rows);
  const int64_t columnTiles = dyna_sparse_tiles(w.columns);
  int64_t rows = divideUp(rowTiles, kMostTiles), columns = 1;
  while (threads > 1 && rows * columns < 2 * threads &&
         rows * columns < rowTiles * columnTiles)
    ++(rowTiles * columns >= columnTiles * rows ? rows : columns);
  return {Parts(rowTiles, rows), Parts(columnTiles, columns)};
}

using Typed = TypedSparseKernels SparseTable::*;

dyna_status failScratch(dyna_context *context, const char *name) {
  return fail(context, DYNA_RESOURCE_EXHAUSTED,
              "no memory for the scratch of %s", name);
}

/// Values in the order of the product's side of the index, in the type of sums; null if
/// there is no memory. O(survivors).
template <typename Sum>
const void *orderedValues(HostDevice &device, const TypedSparseKernels &kernels,
                          const dyna_sparse_product &p, bool isNarrow) {
  if (!p.by_column && !isNarrow)
    return p.values;
  const SparseShape shape = shapeOf(p);
  void *ordered =
      device.scratch(device.sharedSlot(),
                     p.weight->survivors * static_cast<int64_t>(sizeof(Sum)));
  if (!ordered)
    return nullptr;
  const int64_t tiles = shape.lineTiles * shape.depthTiles;
  const Parts parts(tiles, std::min<int64_t>(tiles, 16 * device.team().size()));
  device.team().parallelFor(parts.count(), [&](int64_t part, int) {
    for (int64_t i = 0; i < parts.sizeOf(part); ++i)
      kernels.orderValues(p, parts.first(part) + i, ordered);
  });
  return ordered;
}

template <typename Sum>
dyna_status runProduct(dyna_context *context,
                       const dyna_sparse_product *product, Typed type,
                       bool isNarrow, const char *name) {
  if (dyna_status status = checkSparseProduct(context, product, name))
    return status;
  if (dyna_status status = dyna_progress(context))
    return status;
  const dyna_sparse_product &p = *product;
  context->matrix_flops += 2 * p.tokens * p.weight->survivors;
  if (p.tokens == 0)
    return DYNA_OK;
  HostDevice &device = HostDevice::of(*context);
  const TypedSparseKernels &kernels = device.kernels().sparse->*type;
  const int64_t panels = divideUp(p.tokens, kernels.panelTokens);
  const Parts parts =
      partsOfLines(shapeOf(p).lineTiles, panels, device.team().size());
  const void *values = orderedValues<Sum>(device, kernels, p, isNarrow);
  if ((!values && p.weight->survivors > 0) ||
      !device.reserveWorkers(kernels.productScratch(parts.size)))
    return failScratch(context, name);
  // Tasks that read the same tokens follow each other.
  device.team().parallelFor(
      panels * parts.count(), [&](int64_t task, int worker) {
        const int64_t first = task / parts.count() * kernels.panelTokens;
        const int64_t part = task % parts.count();
        kernels.product(p,
                        {values, first,
                         std::min(kernels.panelTokens, p.tokens - first),
                         parts.first(part), parts.sizeOf(part)},
                        device.workerScratch(worker));
      });
  return DYNA_OK;
}

dyna_status runGradient(dyna_context *context,
                        const dyna_sparse_gradient *gradient, Typed type,
                        int64_t sumBytes, const char *name) {
  if (dyna_status status = checkSparseGradient(context, gradient, name))
    return status;
  if (dyna_status status = dyna_progress(context))
    return status;
  const dyna_sparse_gradient &p = *gradient;
  const dyna_sparse_weight &w = *p.weight;
  context->matrix_flops += 2 * p.tokens * w.survivors;
  if (w.survivors == 0)
    return DYNA_OK;
  if (p.tokens == 0) {
    if (!p.accumulate)
      std::memset(p.gradient, 0, static_cast<size_t>(w.survivors * sumBytes));
    return DYNA_OK;
  }
  HostDevice &device = HostDevice::of(*context);
  const TypedSparseKernels &kernels = device.kernels().sparse->*type;
  const GradientParts parts = partsOfGradient(w, device.team().size());
  if (!device.reserveWorkers(kernels.gradientScratch(parts.rows.size)))
    return failScratch(context, name);
  device.team().parallelFor(parts.rows.count() * parts.columns.count(),
                            [&](int64_t task, int worker) {
                              const int64_t row = task % parts.rows.count();
                              const int64_t column = task / parts.rows.count();
                              kernels.gradient(p,
                                               {parts.rows.first(row),
                                                parts.rows.sizeOf(row),
                                                parts.columns.first(column),
                                                parts.columns.sizeOf(column)},
                                               device.workerScratch(worker));
                            });
  return DYNA_OK;
}

} // namespace

dyna_status host::sparseProductF32(dyna_context *context,
                                   const dyna_sparse_product *p) {
  return runProduct<float>(context, p, &SparseTable::f32, false,
                           "sparse_product_f32");
}
dyna_status host::sparseProductF64(dyna_context *context,
                                   const dyna_sparse_product *p) {
  return runProduct<double>(context, p, &SparseTable::f64, false,
                            "sparse_product_f64");
}
dyna_status host::sparseProductBf16(dyna_context *context,
                                    const dyna_sparse_product *p) {
  return runProduct<float>(context, p, &SparseTable::bf16, true,
                           "sparse_product_bf16");
}
dyna_status host::sparseGradientF32(dyna_context *context,
                                    const dyna_sparse_gradient *p) {
  return runGradient(context, p, &SparseTable::f32, 4, "sparse_gradient_f32");
}
dyna_status host::sparseGradientF64(dyna_context *context,
                                    const dyna_sparse_gradient *p) {
  return runGradient(context, p, &SparseTable::f64, 8, "sparse_gradient_f64");
}
dyna_status host::sparseGradientBf16(dyna_context *context,
                                     const dyna_sparse_gradient *p) {
  return runGradient(context, p, &SparseTable::bf16, 4, "sparse_gradient_bf16");
}
