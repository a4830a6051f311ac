//===- SparseMatmul.cpp - Runs sparse products of layers ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From dyna_sparse_matmul to the kernels of Sparse.h. The gradient of a weight is summed
// up for survivors in scratch of the device, and then put into the dense gradient. So
// what is added to bf16 is rounded once. Tasks have a row of tiles each: they write rows
// of their own.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/CheckSparse.h"
#include "runtime/device/Failure.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/HostKernels.h"
#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/sparse/Sparse.h"

#include <algorithm>

using namespace dyna;

namespace {

/// Calls `body` with row, column and place in the array of values of each survivor whose
/// row is in a row of tiles. O(survivors and tiles there).
template <typename Body>
void forSurvivors(const dyna_sparse_weight &w, int64_t rowTile, Body body) {
  const dyna_sparse_side &side = w.by_row;
  const int64_t rowTiles = dyna_sparse_tiles(w.rows);
  for (int64_t c = 0; c < dyna_sparse_tiles(w.columns); ++c) {
    const int64_t tile = c * rowTiles + rowTile;
    int64_t at = side.starts[tile];
    const int64_t end = side.starts[tile + 1];
    for (int64_t slot = 0; at < end; ++slot) {
      const int64_t line = tile * DYNA_SPARSE_TILE + slot;
      const int64_t row = rowTile * DYNA_SPARSE_TILE + side.lines[line];
      for (int64_t i = 0; i < side.counts[line]; ++i, ++at)
        body(row, c * DYNA_SPARSE_TILE + side.depths[at], at);
    }
  }
}

/// Adds a sum to an element of a gradient.
void addSum(const HostDevice &, float sum, float *to) { *to += sum; }
void addSum(const HostDevice &, double sum, double *to) { *to += sum; }
void addSum(const HostDevice &device, float sum, uint16_t *to) {
  device.kernels().addNarrow({&sum, 1, to, 1, 1, 1});
}

/// Writes a gradient. `Stored` is the type of C.
template <typename Stored, typename Sum>
void putGradient(HostDevice &device, const dyna_sparse_weight &w,
                 const Sum *sums, const dyna_matmul &p) {
  auto *dense = static_cast<Stored *>(p.c);
  device.team().parallelFor(
      dyna_sparse_tiles(w.rows), [&](int64_t rowTile, int) {
        const int64_t first = rowTile * DYNA_SPARSE_TILE;
        const int64_t last = std::min(w.rows, first + DYNA_SPARSE_TILE);
        for (int64_t row = first; !p.accumulate && row < last; ++row)
          std::fill_n(dense + row * p.ldc, w.columns, Stored());
        forSurvivors(w, rowTile, [&](int64_t row, int64_t column, int64_t at) {
          addSum(device, sums[at], dense + row * p.ldc + column);
        });
      });
}

using Product = dyna_status (*)(dyna_context *, const dyna_sparse_product *);
using Gradient = dyna_status (*)(dyna_context *, const dyna_sparse_gradient *);

dyna_status runProduct(dyna_context *context, const dyna_sparse_matmul &p,
                       Product kernel) {
  const dyna_matmul &dense = p.product;
  dyna_sparse_product product = {};
  product.weight = &p.form->weight;
  product.values = p.form->values;
  product.tokens = dense.m;
  product.x = dense.a;
  product.ldx = dense.lda;
  product.y = dense.c;
  product.ldy = dense.ldc;
  product.by_column = dense.transpose_b == 0;
  product.accumulate = dense.accumulate;
  if (dyna_status status = kernel(context, &product))
    return status;
  if (!dense.epilogue)
    return DYNA_OK;
  return host::launch(context, dense.epilogue, dense.epilogue_args,
                      dense.epilogue_args_bytes, dense.m,
                      dense.epilogue_min_rows);
}

template <typename Stored, typename Sum>
dyna_status runGradient(dyna_context *context, const dyna_sparse_matmul &p,
                        Gradient kernel, const char *name) {
  const dyna_matmul &dense = p.product;
  const dyna_sparse_weight &w = p.form->weight;
  HostDevice &device = HostDevice::of(*context);
  void *sums = device.scratch(device.sharedSlot(),
                              std::max<int64_t>(w.survivors, 1) *
                                  static_cast<int64_t>(sizeof(Sum)));
  if (!sums)
    return fail(context, DYNA_RESOURCE_EXHAUSTED,
                "no memory for the scratch of %s", name);
  dyna_sparse_gradient gradient = {};
  gradient.weight = &w;
  gradient.gradient = sums;
  gradient.tokens = dense.k;
  gradient.x = dense.b;
  gradient.ldx = dense.ldb;
  gradient.dy = dense.a;
  gradient.lddy = dense.lda;
  if (dyna_status status = kernel(context, &gradient))
    return status;
  putGradient<Stored>(device, w, static_cast<const Sum *>(sums), dense);
  return DYNA_OK;
}

template <typename Stored, typename Sum>
dyna_status run(dyna_context *context, const dyna_sparse_matmul *p,
                Product product, Gradient gradient, const char *name) {
  if (dyna_status status = checkSparseMatmul(context, p, name))
    return status;
  if (p->product.transpose_a)
    return runGradient<Stored, Sum>(context, *p, gradient, name);
  if (product)
    return runProduct(context, *p, product);
  return fail(context, DYNA_INVALID_ARGUMENT,
              "%s makes gradients of weights alone, and transpose_a is 0",
              name);
}

template <typename Element>
void takeValues(HostDevice &device, const dyna_sparse_values &p) {
  const dyna_sparse_weight &w = p.form->weight;
  const auto *dense = static_cast<const Element *>(p.dense);
  auto *values = static_cast<Element *>(p.form->values);
  device.team().parallelFor(
      dyna_sparse_tiles(w.rows), [&](int64_t rowTile, int) {
        forSurvivors(w, rowTile, [&](int64_t row, int64_t column, int64_t at) {
          values[at] = dense[row * p.stride + column];
        });
      });
}

} // namespace

dyna_status host::sparseMatmulF32(dyna_context *context,
                                  const dyna_sparse_matmul *p) {
  return run<float, float>(context, p, sparseProductF32, sparseGradientF32,
                           "sparse_matmul_f32");
}
dyna_status host::sparseMatmulF64(dyna_context *context,
                                  const dyna_sparse_matmul *p) {
  return run<double, double>(context, p, sparseProductF64, sparseGradientF64,
                             "sparse_matmul_f64");
}
dyna_status host::sparseMatmulBf16(dyna_context *context,
                                   const dyna_sparse_matmul *p) {
  return run<uint16_t, float>(context, p, sparseProductBf16, sparseGradientBf16,
                              "sparse_matmul_bf16");
}
dyna_status host::sparseMatmulBf16F32(dyna_context *context,
                                      const dyna_sparse_matmul *p) {
  return run<float, float>(context, p, nullptr, sparseGradientBf16,
                           "sparse_matmul_bf16_f32");
}

dyna_status host::takeSparseValues(dyna_context *context,
                                   const dyna_sparse_values *p) {
  if (dyna_status status = checkSparseValues(context, p, "take_sparse_values"))
    return status;
  HostDevice &device = HostDevice::of(*context);
  if (p->element_bytes == 8)
    takeValues<uint64_t>(device, *p);
  else if (p->element_bytes == 4)
    takeValues<uint32_t>(device, *p);
  else
    takeValues<uint16_t>(device, *p);
  return DYNA_OK;
}
