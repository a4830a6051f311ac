//===- AttentionFma.cu - Computes attention in f32 and f64 ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block owns 32 rows of one head: queries (out, dq) or keys (dk, dv). It
// visits tiles of 32 rows of the other side. In a tile of 32 x 32 weights a
// thread has two rows, 16 apart, and four columns, 8 apart. In the block's
// result it has the same rows and columns of each 32. Heads are processed 32
// columns at a time. Every result is added up by one thread, in order. So there
// are no atomics, and results are reproducible.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/attention/AttentionRows.h"

#include <cmath>

namespace dyna {
namespace gpu {
namespace fma {

constexpr int kTile = kFmaTile;
constexpr int kChunk = kFmaChunk;
constexpr int kChunks = kMaxHeadDim / kChunk;
constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;

/// Rows of one head of an operand.
template <typename T> struct Operand {
  const T *data; ///< its first row, at the head
  int64_t stride;
  int32_t rows; ///< existing rows; later ones count as zeros

  DYNA_GPU Operand(const void *all, int64_t stride, int64_t row, int32_t end,
                   int64_t head, int32_t headDim)
      : data(static_cast<const T *>(all) + row * stride + head * headDim),
        stride(stride), rows(static_cast<int32_t>(end - row)) {}
};

template <typename T> struct Block {
  using Shared = FmaShared<T>;
  const AttentionArguments &args;
  Shared &shared;
  const int ty = threadIndex() / 8, tx = threadIndex() % 8;

  DYNA_GPU Block(const AttentionArguments &args, Shared &shared)
      : args(args), shared(shared) {}

  DYNA_GPU void load(T (&to)[kTile][kChunk + 1], const Operand<T> &from,
                     int first) {
    for (int i = threadIndex(); i < kTile * kChunk; i += kFmaThreads) {
      int row = i / kChunk, column = i % kChunk;
      bool isThere = row < from.rows && first + column < args.headDim;
      to[row][column] =
          isThere ? from.data[row * from.stride + first + column] : T(0);
    }
  }

  /// Adds the products of all rows of the two operands.
  DYNA_GPU void multiply(T (&sums)[2][4], const Operand<T> &rows,
                         const Operand<T> &columns) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        sums[i][j] = 0;
    for (int first = 0; first < args.headDim; first += kChunk) {
      barrier();
      load(shared.rows, rows, first);
      load(shared.columns, columns, first);
      barrier();
#pragma unroll 8
      for (int d = 0; d < kChunk; ++d)
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            sums[i][j] +=
                shared.rows[ty + 16 * i][d] * shared.columns[tx + 8 * j][d];
    }
  }

  DYNA_GPU void putWeights(const T (&weights)[2][4]) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        shared.weights[ty + 16 * i][tx + 8 * j] = weights[i][j];
  }

  /// Adds the products of the weights with the operand.
  DYNA_GPU void addWeighted(T (&result)[kChunks][2][4],
                            const Operand<T> &operand) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
      if (chunk * kChunk < args.headDim) {
        barrier();
        load(shared.columns, operand, chunk * kChunk);
        barrier();
#pragma unroll 8
        for (int k = 0; k < kTile; ++k)
#pragma unroll
          for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
              result[chunk][i][j] += shared.weights[ty + 16 * i][k] *
                                     shared.columns[k][tx + 8 * j];
      }
  }

  /// Keys [begin, end) of a tile or of the block, and their values.
  DYNA_GPU Operand<T> keys(int32_t begin, int32_t end, int64_t kvHead) {
    const KeyRows from = keyRowsAt(args, begin);
    return {from.k, from.kStride, begin, end, kvHead, args.headDim};
  }
  DYNA_GPU Operand<T> values(int32_t begin, int32_t end, int64_t kvHead) {
    const KeyRows from = keyRowsAt(args, begin);
    return {from.v, from.vStride, begin, end, kvHead, args.headDim};
  }

  /// Writes the rows below `end`, each times its factor.
  DYNA_GPU void store(void *all, int64_t stride, int64_t row, int32_t end,
                      int64_t head, const T (&result)[kChunks][2][4],
                      const T (&factors)[2]) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          int column = chunk * kChunk + tx + 8 * j;
          int64_t at = row + ty + 16 * i;
          if (at < end && column < args.headDim)
            static_cast<T *>(all)[at * stride + head * args.headDim + column] =
                result[chunk][i][j] * factors[i];
        }
  }

  /// Adds rows of the keys [first, end), each times `factor`, to sums of the store. Rows
  /// of no segment of these queries are left alone.
  DYNA_GPU void add(void *all, int32_t first, int32_t end, KeyRange queries,
                    int64_t head, const T (&result)[kChunks][2][4], T factor) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int32_t key = first + ty + 16 * i;
      if (key >= end || !isOfSegment(args, key, queries))
        continue;
      T *to = static_cast<T *>(all) + int64_t(key) * args.store.sumStride +
              head * args.store.sumHeadDim;
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (int column = chunk * kChunk + tx + 8 * j; column < args.headDim)
            to[column] += result[chunk][i][j] * factor;
    }
  }
};

template <typename T> DYNA_GPU void clear(T (&result)[kChunks][2][4]) {
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        result[chunk][i][j] = 0;
}

/// Reduce over the eight threads that have a row.
template <typename T> DYNA_GPU T mostOfRow(T value) {
#pragma unroll
  for (int mask = 1; mask < 8; mask *= 2)
    value = most(value, shuffleXor(value, mask));
  return value;
}
template <typename T> DYNA_GPU T sumOfRow(T value) {
#pragma unroll
  for (int mask = 1; mask < 8; mask *= 2)
    value += shuffleXor(value, mask);
  return value;
}

template <typename T>
DYNA_GPU void forward(const AttentionArguments &args, FmaShared<T> &shared) {
  Block<T> block(args, shared);
  // Later queries see more keys, so their blocks begin first.
  const int64_t head = blockIndex() % args.heads;
  const int64_t kvHead = head / (args.heads / args.kvHeads);
  const int32_t first =
      (gridSize() / args.heads - 1 - blockIndex() / args.heads) * kTile;
  const int32_t end = least(first + kTile, args.tq);
  const T scale = static_cast<T>(args.scale * kLog2E);
  KeyRange ranges[2];
  T largest[2], total[2] = {0, 0}, result[kChunks][2][4];
  clear(result);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    ranges[i] = rangeOf(args, first + block.ty + 16 * i);
    largest[i] = -static_cast<T>(INFINITY);
  }
  const Operand<T> q(args.q, args.qStride, first, end, head, args.headDim);
  KeyTiles<kTile> tiles(args, first, end);
  while (tiles.nextRun())
    for (KeyTile tile; tiles.nextOfRun(tile);) {
      T weights[2][4];
      block.multiply(weights, q, block.keys(tile.begin, tile.end, kvHead));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        KeyRange seen = tile.seenBy(first + block.ty + 16 * i, ranges[i]);
        T now = largest[i];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          int32_t key = tile.begin + block.tx + 8 * j;
          bool isSeen = key >= seen.begin && key < seen.end;
          weights[i][j] =
              isSeen ? weights[i][j] * scale : -static_cast<T>(INFINITY);
          now = most(now, weights[i][j]);
        }
        now = mostOfRow(now);
        // For rows that have seen no key yet, any finite base is right.
        T base = now == -static_cast<T>(INFINITY) ? T(0) : now;
        T factor = exp2(largest[i] - base);
        largest[i] = now;
        total[i] *= factor;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          weights[i][j] = exp2(weights[i][j] - base);
          total[i] += weights[i][j];
        }
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            result[chunk][i][j] *= factor;
      }
      block.putWeights(weights);
      block.addWeighted(result, block.values(tile.begin, tile.end, kvHead));
    }
  T factors[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    T sum = sumOfRow(total[i]);
    factors[i] = sum == 0 ? T(0) : T(1) / sum;
    int64_t row = first + block.ty + 16 * i;
    if (args.lse && block.tx == 0 && row < end)
      static_cast<T *>(args.lse)[row * args.heads + head] =
          sum == 0 ? -static_cast<T>(INFINITY)
                   : (largest[i] + log2(sum)) * static_cast<T>(kLn2);
  }
  block.store(args.out, args.outStride, first, end, head, result, factors);
}

/// Returns a query's weight of a key that it sees: 2^(scaled score - its lse).
template <typename T>
DYNA_GPU T weightOf(bool isSeen, T score, T scale, T lse) {
  return isSeen ? exp2(score * scale - lse) : T(0);
}

template <typename T>
DYNA_GPU void queryGrad(const AttentionArguments &args, FmaShared<T> &shared) {
  Block<T> block(args, shared);
  const int64_t head = blockIndex() % args.heads;
  const int64_t kvHead = head / (args.heads / args.kvHeads);
  const int32_t first =
      (gridSize() / args.heads - 1 - blockIndex() / args.heads) * kTile;
  const int32_t end = least(first + kTile, args.tq);
  const T scale = static_cast<T>(args.scale * kLog2E);
  KeyRange ranges[2];
  T lse[2] = {0, 0}, delta[2] = {0, 0}, result[kChunks][2][4];
  clear(result);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int64_t row = first + block.ty + 16 * i;
    ranges[i] = rangeOf(args, row);
    if (row < end) {
      int64_t at = row * args.heads + head;
      lse[i] = static_cast<const T *>(args.lse)[at] * static_cast<T>(kLog2E);
      delta[i] = static_cast<const T *>(args.delta)[at];
    }
  }
  const Operand<T> q(args.q, args.qStride, first, end, head, args.headDim);
  const Operand<T> dout(args.dout, args.outStride, first, end, head,
                        args.headDim);
  KeyTiles<kTile> tiles(args, first, end);
  while (tiles.nextRun())
    for (KeyTile tile; tiles.nextOfRun(tile);) {
      T scores[2][4], weights[2][4];
      const Operand<T> k = block.keys(tile.begin, tile.end, kvHead);
      block.multiply(scores, q, k);
      block.multiply(weights, dout, block.values(tile.begin, tile.end, kvHead));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        KeyRange seen = tile.seenBy(first + block.ty + 16 * i, ranges[i]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          int32_t key = tile.begin + block.tx + 8 * j;
          bool isSeen = key >= seen.begin && key < seen.end;
          weights[i][j] = weightOf(isSeen, scores[i][j], scale, lse[i]) *
                          (weights[i][j] - delta[i]);
        }
      }
      block.putWeights(weights);
      block.addWeighted(result, k);
    }
  const T factors[2] = {static_cast<T>(args.scale), static_cast<T>(args.scale)};
  block.store(args.dq, args.dqStride, first, end, head, result, factors);
}

/// Computes dk, or dv: all queries of all heads that see the block's keys, in
/// order.
template <typename T, bool isKey>
DYNA_GPU void keyGrad(const AttentionArguments &args, FmaShared<T> &shared) {
  Block<T> block(args, shared);
  const int64_t kvHead = blockIndex() % args.kvHeads;
  const int32_t group = args.heads / args.kvHeads;
  const KeyRange own = keysOfBlock<kTile>(args, blockIndex() / args.kvHeads);
  const int32_t first = own.begin, end = own.end;
  const T scale = static_cast<T>(args.scale * kLog2E);
  T result[kChunks][2][4];
  clear(result);
  const Operand<T> k = block.keys(first, end, kvHead);
  const Operand<T> v = block.values(first, end, kvHead);
  const KeyRange queries =
      queriesOf<kFmaThreads>(args, first, end, shared.bounds);
  if (first >= args.tkv && queries.begin >= queries.end)
    return; // no query sees these rows of the store
  for (int32_t row = queries.begin; row < queries.end; row += kTile)
    for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) {
      const int32_t endRow = least(row + kTile, queries.end);
      // Barriers inside the products order these writes before and after their
      // reads.
      if (int i = threadIndex(); i < kTile) {
        int64_t at = (row + i) * int64_t(args.heads) + head;
        bool isThere = row + i < endRow;
        shared.ranges[i] = isThere ? rangeOf(args, row + i) : KeyRange{0, 0};
        shared.lse[i] = isThere ? static_cast<const T *>(args.lse)[at] *
                                      static_cast<T>(kLog2E)
                                : T(0);
        shared.delta[i] =
            isThere ? static_cast<const T *>(args.delta)[at] : T(0);
      }
      const Operand<T> q(args.q, args.qStride, row, endRow, head, args.headDim);
      const Operand<T> dout(args.dout, args.outStride, row, endRow, head,
                            args.headDim);
      T scores[2][4], weights[2][4];
      block.multiply(scores, k, q);
      if constexpr (isKey)
        block.multiply(weights, v, dout);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        int query = block.tx + 8 * j;
        KeyRange seen = shared.ranges[query];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          int32_t key = first + block.ty + 16 * i;
          bool isSeen = key >= seen.begin && key < seen.end;
          T weight = weightOf(isSeen, scores[i][j], scale, shared.lse[query]);
          weights[i][j] =
              isKey ? weight * (weights[i][j] - shared.delta[query]) : weight;
        }
      }
      block.putWeights(weights);
      block.addWeighted(result, isKey ? q : dout);
    }
  const T factor = isKey ? static_cast<T>(args.scale) : T(1);
  const T factors[2] = {factor, factor};
  if (first < args.tkv)
    block.store(isKey ? args.dk : args.dv,
                isKey ? args.dkStride : args.dvStride, first, end, kvHead,
                result, factors);
  else
    block.add(isKey ? args.store.dk : args.store.dv, first, end, queries,
              kvHead, result, factor);
}

/// Computes delta, with a warp per query and head.
template <typename T> DYNA_GPU void delta(const AttentionArguments &args) {
  int64_t i = int64_t(blockIndex()) * (blockSize() / 32) + threadIndex() / 32;
  if (i >= int64_t(args.tq) * args.heads)
    return;
  int64_t at = i / args.heads * args.outStride + i % args.heads * args.headDim;
  const T *out = static_cast<const T *>(args.out) + at;
  const T *dout = static_cast<const T *>(args.dout) + at;
  T sum = 0;
  for (int column = threadIndex() % 32; column < args.headDim; column += 32)
    sum += out[column] * dout[column];
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    sum += shuffleXor(sum, mask);
  if (threadIndex() % 32 == 0)
    static_cast<T *>(args.delta)[i] = sum;
}

} // namespace fma
} // namespace gpu
} // namespace dyna

using namespace dyna::gpu;

DYNA_KERNEL(attention_f32) { fma::forward<float>(args, shared); }
DYNA_KERNEL(attention_f64) { fma::forward<double>(args, shared); }
DYNA_KERNEL(attention_dq_f32) { fma::queryGrad<float>(args, shared); }
DYNA_KERNEL(attention_dq_f64) { fma::queryGrad<double>(args, shared); }
DYNA_KERNEL(attention_dk_f32) { fma::keyGrad<float, true>(args, shared); }
DYNA_KERNEL(attention_dk_f64) { fma::keyGrad<double, true>(args, shared); }
DYNA_KERNEL(attention_dv_f32) { fma::keyGrad<float, false>(args, shared); }
DYNA_KERNEL(attention_dv_f64) { fma::keyGrad<double, false>(args, shared); }
DYNA_KERNEL(attention_delta_f32) { fma::delta<float>(args); }
DYNA_KERNEL(attention_delta_f64) { fma::delta<double>(args); }
