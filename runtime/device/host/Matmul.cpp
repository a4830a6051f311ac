//===- Matmul.cpp - Runs launches and matrix products -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs products by oneDNN with one thread per call: each worker of the team
// multiplies slices of C. On training shapes this is faster than oneDNN's own
// team, which would be a second one beside the rank's. The epilogue also finds
// its rows in cache.
//
// Slices depend on the shape alone, as long as the team has at most
// kFixedGridThreads workers. Up to there the number of threads changes no bit.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "runtime/device/Arguments.h"
#include "runtime/device/Failure.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/HostKernels.h"
#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/MatmulPrimitives.h"
#include "runtime/device/host/OneThread.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <dnnl.h>

using namespace dyna;

dyna_status host::launch(dyna_context *context, dyna_rows_body body,
                         const void *args, int64_t args_bytes, int64_t rows,
                         int64_t min_rows) {
  if (!body || rows < 0 || args_bytes < 0 || (args_bytes > 0 && !args))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "launch over %d rows with %d bytes of arguments: body and "
                "arguments must be there and sizes not negative",
                rows, args_bytes);
  if (dyna_status status = dyna_progress(context))
    return status;
  int64_t size = dyna_chunk_rows(rows, min_rows);
  HostDevice::of(*context).team().parallelFor(
      dyna_chunk_count(rows, min_rows), [=](int64_t chunk, int) {
        body(args, chunk * size, std::min(rows, (chunk + 1) * size), chunk);
      });
  return DYNA_OK;
}

namespace {

constexpr int kFixedGridThreads = 8;
/// A slice with fewer operations costs more to hand out than to do.
constexpr int64_t kLeastSliceFlops = 1000000;

dyna_status check(dyna_context *context, const dyna_matmul *p,
                  const char *name) {
  if (dyna_status status = checkMatmul(context, p, name))
    return status;
  if (p->described)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with a described epilogue: the host's are code", name);
  return dyna_progress(context);
}

/// Cuts of C into slices of `rows` x `columns`.
struct Grid {
  int64_t m, n; ///< of C
  int64_t rows, columns;
  int64_t across() const { return (n + columns - 1) / columns; }
  int64_t count() const { return (m + rows - 1) / rows * across(); }
  bool wholeRows() const { return columns >= n; }
};

int64_t roundUp(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

/// Cuts C in both dimensions if slices then read fewer rows of A and columns of
/// B. None gets narrower than 128.
void makeSquare(Grid &grid, int64_t count) {
  int64_t least =
      grid.m * grid.across() + grid.n * (grid.count() / grid.across());
  for (int64_t across = 2; across <= count / 2; ++across) {
    int64_t down = count / across;
    if (count % across != 0 || grid.m < 128 * down || grid.n < 128 * across)
      continue;
    if (int64_t read = grid.m * across + grid.n * down; read < least) {
      least = read;
      grid.rows = roundUp((grid.m + down - 1) / down, 16);
      grid.columns = roundUp((grid.n + across - 1) / across, 16);
    }
  }
}

/// Slices of about 256 rows, or columns, at least 4 and at most 16. With an
/// epilogue they have whole `unit`s of rows, since it works on those.
Grid makeGrid(const dyna_matmul &p, int64_t unit, int threads) {
  bool byRows = p.m >= p.n || p.m >= 1024;
  int64_t extent = byRows ? p.m : p.n;
  int64_t count = std::min<int64_t>((extent + 128) / 256, 16);
  if (count < 4)
    count = std::min<int64_t>(4, extent / 64);
  if (threads > kFixedGridThreads)
    count = std::max(count, std::min<int64_t>(2 * threads, extent / 64));
  double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                 static_cast<double>(p.k);
  if (flops < static_cast<double>(count) * kLeastSliceFlops)
    count = static_cast<int64_t>(flops / kLeastSliceFlops);
  count = std::max<int64_t>(count, 1);
  int64_t size = roundUp((extent + count - 1) / count, byRows ? unit : 16);
  Grid grid = {p.m, p.n, byRows ? size : p.m, byRows ? p.n : size};
  if (!p.epilogue)
    makeSquare(grid, count);
  return grid;
}

int64_t epilogueRows(const dyna_matmul &p) {
  return p.epilogue ? dyna_chunk_rows(p.m, p.epilogue_min_rows) : 16;
}

/// Runs the epilogue on rows [begin, end), which start and end at its chunks.
void runEpilogue(const dyna_matmul &p, int64_t begin, int64_t end) {
  int64_t size = epilogueRows(p);
  for (int64_t at = begin; at < end; at += size)
    p.epilogue(p.epilogue_args, at, std::min(at + size, p.m), at / size);
}

dyna_status launchEpilogue(dyna_context *context, const dyna_matmul &p) {
  if (!p.epilogue)
    return DYNA_OK;
  return host::launch(context, p.epilogue, p.epilogue_args,
                      p.epilogue_args_bytes, p.m, p.epilogue_min_rows);
}

/// Runs a product whose C has no elements, or to which nothing is added.
dyna_status runEmpty(dyna_context *context, const dyna_matmul &p,
                     int64_t elementBytes) {
  if (!p.accumulate && p.n > 0)
    for (int64_t row = 0; row < p.m; ++row)
      memset(static_cast<char *>(p.c) + row * p.ldc * elementBytes, 0,
             static_cast<size_t>(p.n * elementBytes));
  return launchEpilogue(context, p);
}

/// A block of a product: C[m0.., n0..] of `m` x `n`, k from k0.
struct Block {
  int64_t m0, m, n0, n, k0, k;
};

/// Return element offsets of a block's operands.
int64_t offsetA(const dyna_matmul &p, const Block &b) {
  return p.transpose_a ? b.k0 * p.lda + b.m0 : b.m0 * p.lda + b.k0;
}
int64_t offsetB(const dyna_matmul &p, const Block &b) {
  return p.transpose_b ? b.n0 * p.ldb + b.k0 : b.k0 * p.ldb + b.n0;
}
int64_t offsetC(const dyna_matmul &p, const Block &b) {
  return b.m0 * p.ldc + b.n0;
}

Block sliceOf(const Grid &grid, int64_t index, int64_t k) {
  int64_t m0 = index / grid.across() * grid.rows;
  int64_t n0 = index % grid.across() * grid.columns;
  return {m0, std::min(grid.rows, grid.m - m0),
          n0, std::min(grid.columns, grid.n - n0),
          0,  k};
}

/// Rows of a transposed A in one call. They are far apart in memory, and more
/// of them at a time would make weight gradients a fifth slower.
constexpr int64_t kTransposedDepth = 512;

/// Returns pieces of about 256 rows each, of two sizes at most. Such a piece of
/// a weight gradient stays in the second-level cache while it is added to. (On
/// Zen 5, 3,142 rows at once run at 258 GFLOP/s a thread in bf16 and 180 in
/// f32, in pieces at 440 and 206.)
std::vector<int64_t> evenPieces(int64_t size) {
  int64_t count = std::max<int64_t>((size + 128) / 256, 1);
  int64_t each = roundUp((size + count - 1) / count, 16);
  std::vector<int64_t> result(static_cast<size_t>(size / each), each);
  if (size % each > 0)
    result.push_back(size % each);
  return result;
}

/// Makes one call of sgemm.
bool multiplyBlock(const dyna_matmul &p, const Block &b, bool accumulate) {
  return dnnl_sgemm(
             p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', b.m, b.n,
             b.k, 1.0f, static_cast<const float *>(p.a) + offsetA(p, b), p.lda,
             static_cast<const float *>(p.b) + offsetB(p, b), p.ldb,
             accumulate || b.k0 > 0 ? 1.0f : 0.0f,
             static_cast<float *>(p.c) + offsetC(p, b), p.ldc) == dnnl_success;
}

/// Computes the product of one slice by sgemm, on this thread.
bool multiply(const dyna_matmul &p, const Block &slice, bool accumulate) {
  OneThread single;
  if (!p.transpose_a)
    return multiplyBlock(p, slice, accumulate);
  Block b = slice;
  for (int64_t m : evenPieces(slice.m)) {
    b.m = m;
    for (b.k0 = 0; b.k0 < slice.k; b.k0 += b.k) {
      b.k = std::min(kTransposedDepth, slice.k - b.k0);
      if (!multiplyBlock(p, b, accumulate))
        return false;
    }
    b.m0 += m;
  }
  return true;
}

using Shape = MatmulPrimitives::Shape;
using Types = MatmulPrimitives::Types;

Shape shapeOf(const dyna_matmul &p, const Block &b, Types types) {
  return {b.m,
          b.n,
          b.k,
          p.lda,
          p.ldb,
          p.ldc,
          p.transpose_a != 0,
          p.transpose_b != 0,
          p.accumulate || b.k0 > 0,
          types};
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

/// Returns true for products with a transposed B. For these sgemm packs both
/// operands in every call, which does not pay for a slice of 256 rows. On Zen 5
/// it reaches 190 GFLOP/s a thread, and the primitive 210. Other products are
/// equally fast with both.
bool prefersPrimitive(const dyna_matmul &p) {
  return !p.transpose_a && p.transpose_b;
}

/// Returns true if the block is too small for its own code.
bool isSmall(const Block &b) {
  return b.m < 32 || 2 * b.m * b.n * b.k < kLeastSliceFlops;
}

/// Makes the code of all slices; false when oneDNN has none.
bool prepareF32(HostDevice &device, const dyna_matmul &p, const Grid &grid) {
  MatmulPrimitives *primitives = device.primitives();
  if (!primitives || !prefersPrimitive(p))
    return false;
  for (int64_t index = 0; index < grid.count(); ++index) {
    Block piece = sliceOf(grid, index, p.k);
    for (int64_t m : pieces(piece.m, 256)) {
      piece.m = m;
      if (!isSmall(piece) &&
          !primitives->prepare(shapeOf(p, piece, Types::F32)))
        return false;
    }
  }
  return device.reserveWorkers(primitives->scratchBytes());
}

/// Computes the product of one slice with the code of prepareF32, on this
/// thread.
bool multiplyPrepared(HostDevice &device, const dyna_matmul &p,
                      const Block &slice, int worker) {
  Block piece = slice;
  for (int64_t m : pieces(slice.m, 256)) {
    piece.m = m;
    if (isSmall(piece)) {
      OneThread single;
      if (!multiplyBlock(p, piece, p.accumulate))
        return false;
    } else if (!device.primitives()->run(
                   shapeOf(p, piece, Types::F32),
                   static_cast<const float *>(p.a) + offsetA(p, piece),
                   static_cast<const float *>(p.b) + offsetB(p, piece),
                   static_cast<float *>(p.c) + offsetC(p, piece),
                   device.workerScratch(worker))) {
      return false;
    }
    piece.m0 += m;
  }
  return true;
}

dyna_status failProduct(dyna_context *context, const dyna_matmul &p) {
  return fail(context, DYNA_DEVICE_ERROR,
              "oneDNN failed on a product of m=%d n=%d k=%d; it takes "
              "memory of its own, which may have run out (ulimit -v)",
              p.m, p.n, p.k);
}

/// Fails if there is no memory for the code of the product. Other code would
/// round differently, so a limit would change results.
dyna_status checkCodeMemory(dyna_context *context, HostDevice &device,
                            const dyna_matmul &p) {
  if (!device.primitives() || !device.primitives()->lacksMemory())
    return DYNA_OK;
  return fail(context, DYNA_RESOURCE_EXHAUSTED,
              "no memory for the code of a product of m=%d n=%d k=%d: "
              "raise the limit of this process (ulimit -v)",
              p.m, p.n, p.k);
}

} // namespace

dyna_status host::matmulF32(dyna_context *context, const dyna_matmul *product) {
  if (dyna_status status = check(context, product, "matmul_f32"))
    return status;
  const dyna_matmul &p = *product;
  context->matrix_flops += 2 * p.m * p.n * p.k;
  if (p.m == 0 || p.n == 0 || p.k == 0)
    return runEmpty(context, p, 4);
  HostDevice &device = HostDevice::of(*context);
  Grid grid = makeGrid(p, epilogueRows(p), device.team().size());
  bool prepared = prepareF32(device, p, grid);
  if (dyna_status status = checkCodeMemory(context, device, p))
    return status;
  std::atomic<bool> failed{false};
  device.team().parallelFor(grid.count(), [&](int64_t index, int worker) {
    Block slice = sliceOf(grid, index, p.k);
    if (!(prepared ? multiplyPrepared(device, p, slice, worker)
                   : multiply(p, slice, p.accumulate)))
      failed = true;
    if (p.epilogue && grid.wholeRows())
      runEpilogue(p, slice.m0, slice.m0 + slice.m);
  });
  if (failed)
    return failProduct(context, p);
  return grid.wholeRows() ? DYNA_OK : launchEpilogue(context, p);
}

//===----------------------------------------------------------------------===//
// bf16 by oneDNN's bf16 product
//===----------------------------------------------------------------------===//

namespace {

/// Calls `body` on the pieces of a slice, which have few sizes. Tokens are the
/// size that varies: k in weight gradients, m elsewhere. A bf16 C is not added
/// up over parts of k, because each addition would round it.
template <typename Body>
void forPieces(const dyna_matmul &p, const Block &slice, Types types,
               Body body) {
  std::vector<int64_t> rows =
      p.transpose_a ? evenPieces(slice.m) : pieces(slice.m, 256);
  std::vector<int64_t> depths{slice.k};
  if (p.transpose_a && types == Types::Bf16ToF32)
    depths = pieces(slice.k, kTransposedDepth);
  Block piece = slice;
  for (int64_t m : rows) {
    piece.m = m;
    piece.k0 = 0;
    for (int64_t k : depths) {
      piece.k = k;
      body(piece);
      piece.k0 += k;
    }
    piece.m0 += m;
  }
}

/// Prepares code for the product. Returns false, and does nothing, if oneDNN
/// has none for a shape.
bool prepareNative(HostDevice &device, const dyna_matmul &p, const Grid &grid,
                   Types types) {
  MatmulPrimitives &products = *device.primitives();
  bool good = true;
  for (int64_t index = 0; index < grid.count(); ++index)
    forPieces(p, sliceOf(grid, index, p.k), types, [&](const Block &piece) {
      good = good && products.prepare(shapeOf(p, piece, types));
    });
  return good && device.reserveWorkers(products.scratchBytes());
}

dyna_status runNative(dyna_context *context, const dyna_matmul &p,
                      const Grid &grid, Types types) {
  HostDevice &device = HostDevice::of(*context);
  const MatmulPrimitives &products = *device.primitives();
  std::atomic<bool> failed{false};
  device.team().parallelFor(grid.count(), [&](int64_t index, int worker) {
    Block slice = sliceOf(grid, index, p.k);
    forPieces(p, slice, types, [&](const Block &piece) {
      const auto *a = static_cast<const uint16_t *>(p.a) + offsetA(p, piece);
      const auto *b = static_cast<const uint16_t *>(p.b) + offsetB(p, piece);
      char *c = static_cast<char *>(p.c) +
                offsetC(p, piece) * (types == Types::Bf16 ? 2 : 4);
      if (!products.run(shapeOf(p, piece, types), a, b, c,
                        device.workerScratch(worker)))
        failed = true;
    });
    if (p.epilogue && grid.wholeRows())
      runEpilogue(p, slice.m0, slice.m0 + slice.m);
  });
  if (failed)
    return failProduct(context, p);
  return grid.wholeRows() ? DYNA_OK : launchEpilogue(context, p);
}

//===----------------------------------------------------------------------===//
// bf16 widened to f32
//===----------------------------------------------------------------------===//

/// Elements of the widened blocks of A and B, and of C where it is bf16.
constexpr int64_t kWidenedOperand = int64_t(2) << 20;
constexpr int64_t kWidenedResult = int64_t(4) << 20;
constexpr int64_t kWidenedDepth = 2048;

/// The f32 blocks of one product.
struct Widened {
  Block size; ///< largest block
  float *a, *b, *c;
};

bool makeWidened(HostDevice &device, const dyna_matmul &p, bool f32,
                 Widened &w) {
  int64_t k = std::min(p.k, kWidenedDepth);
  int64_t n = std::min(p.n, kWidenedOperand / k);
  int64_t m = std::min(p.m, kWidenedOperand / k);
  if (!f32)
    m = std::min(m, std::max<int64_t>(kWidenedResult / n, 1));
  w.size = {0, m, 0, n, 0, k};
  int64_t a = (m * k + 15) / 16 * 16, b = (n * k + 15) / 16 * 16;
  int64_t c = f32 ? 0 : m * n;
  w.a = static_cast<float *>(
      device.scratch(device.sharedSlot(), (a + b + c) * 4));
  w.b = w.a + a;
  w.c = w.b + b;
  return w.a != nullptr;
}

/// Widens the operands of one block, whole team.
void widenOperands(HostDevice &device, const dyna_matmul &p, const Block &b,
                   const Widened &w) {
  constexpr int64_t kRows = 32;
  int64_t rowsA = p.transpose_a ? b.k : b.m,
          columnsA = p.transpose_a ? b.m : b.k;
  int64_t rowsB = p.transpose_b ? b.n : b.k,
          columnsB = p.transpose_b ? b.k : b.n;
  const auto *sourceA = static_cast<const uint16_t *>(p.a) + offsetA(p, b);
  const auto *sourceB = static_cast<const uint16_t *>(p.b) + offsetB(p, b);
  int64_t tasksA = (rowsA + kRows - 1) / kRows;
  int64_t tasksB = (rowsB + kRows - 1) / kRows;
  device.team().parallelFor(tasksA + tasksB, [&](int64_t task, int) {
    bool isA = task < tasksA;
    int64_t first = (isA ? task : task - tasksA) * kRows;
    CopyBlock copy;
    copy.sourceStride = isA ? p.lda : p.ldb;
    copy.source = (isA ? sourceA : sourceB) + first * copy.sourceStride;
    copy.targetStride = copy.columns = isA ? columnsA : columnsB;
    copy.target = (isA ? w.a : w.b) + first * copy.targetStride;
    copy.rows = std::min(kRows, (isA ? rowsA : rowsB) - first);
    device.kernels().bf16.widen(copy);
  });
}

/// Multiplies one widened block and, after the last of k, narrows C.
bool multiplyWidened(HostDevice &device, const dyna_matmul &p, const Block &b,
                     const Widened &w, bool f32) {
  dyna_matmul block = p;
  block.m = b.m, block.n = b.n, block.k = b.k;
  block.a = w.a, block.lda = p.transpose_a ? b.m : b.k;
  block.b = w.b, block.ldb = p.transpose_b ? b.k : b.n;
  if (f32) {
    block.c = static_cast<float *>(p.c) + offsetC(p, b);
  } else {
    block.c = w.c;
    block.ldc = b.n;
  }
  bool accumulate = b.k0 > 0 || (f32 && p.accumulate);
  bool last = b.k0 + b.k == p.k;
  block.epilogue = nullptr; // the caller runs it on the whole product
  Grid grid = makeGrid(block, 16, device.team().size());
  std::atomic<bool> failed{false};
  device.team().parallelFor(grid.count(), [&](int64_t index, int) {
    Block slice = sliceOf(grid, index, b.k);
    if (!multiply(block, slice, accumulate))
      failed = true;
    if (f32 || !last)
      return;
    CopyBlock copy = {w.c + offsetC(block, slice),
                      block.ldc,
                      static_cast<uint16_t *>(p.c) + offsetC(p, b) +
                          slice.m0 * p.ldc + slice.n0,
                      p.ldc,
                      slice.m,
                      slice.n};
    if (p.accumulate)
      device.kernels().addNarrow(copy);
    else
      device.kernels().bf16.narrow(copy);
  });
  return !failed;
}

dyna_status runWidened(dyna_context *context, const dyna_matmul &p, bool f32) {
  HostDevice &device = HostDevice::of(*context);
  Widened w;
  if (!makeWidened(device, p, f32, w))
    return fail(context, DYNA_RESOURCE_EXHAUSTED,
                "no memory for the scratch of a bf16 product of m=%d n=%d "
                "k=%d",
                p.m, p.n, p.k);
  Block b;
  for (b.n0 = 0; b.n0 < p.n; b.n0 += w.size.n)
    for (b.m0 = 0; b.m0 < p.m; b.m0 += w.size.m)
      for (b.k0 = 0; b.k0 < p.k; b.k0 += w.size.k) {
        b.n = std::min(w.size.n, p.n - b.n0);
        b.m = std::min(w.size.m, p.m - b.m0);
        b.k = std::min(w.size.k, p.k - b.k0);
        widenOperands(device, p, b, w);
        if (!multiplyWidened(device, p, b, w, f32))
          return failProduct(context, p);
      }
  return launchEpilogue(context, p);
}

dyna_status runBf16(dyna_context *context, const dyna_matmul *product, bool f32,
                    const char *name) {
  if (dyna_status status = check(context, product, name))
    return status;
  const dyna_matmul &p = *product;
  context->matrix_flops += 2 * p.m * p.n * p.k;
  if (p.m == 0 || p.n == 0 || p.k == 0)
    return runEmpty(context, p, f32 ? 4 : 2);
  HostDevice &device = HostDevice::of(*context);
  if (device.multipliesBf16()) {
    Types types = f32 ? Types::Bf16ToF32 : Types::Bf16;
    Grid grid = makeGrid(p, epilogueRows(p), device.team().size());
    if (prepareNative(device, p, grid, types))
      return runNative(context, p, grid, types);
    if (dyna_status status = checkCodeMemory(context, device, p))
      return status;
  }
  return runWidened(context, p, f32);
}

} // namespace

dyna_status host::matmulBf16(dyna_context *context,
                             const dyna_matmul *product) {
  return runBf16(context, product, false, "matmul_bf16");
}

dyna_status host::matmulBf16F32(dyna_context *context,
                                const dyna_matmul *product) {
  return runBf16(context, product, true, "matmul_bf16_f32");
}
