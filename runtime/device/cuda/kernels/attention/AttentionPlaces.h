//===- AttentionPlaces.h - Assigns rows to threads --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For kernels by tensor cores. A block of four warps owns 128 or 64 rows of one head,
// 32 or 16 per warp: queries (out, dq) or keys (dk, dv). Tiles of the other side
// pass through shared memory; a warp passes over those that its rows see nothing
// of.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONPLACES_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONPLACES_H

#include "runtime/device/cuda/kernels/MmaTiles.h"
#include "runtime/device/cuda/kernels/attention/AttentionRows.h"

namespace dyna {
namespace gpu {
namespace mma {

constexpr float kLog2E = 1.4426950408889634f;
constexpr int32_t kNoEnd = INT32_MAX;

/// Returns the head of one operand.
DYNA_GPU const uint16_t *headOf(const void *all, int64_t stride, int64_t row,
                                int32_t head, int32_t headDim) {
  return static_cast<const uint16_t *>(all) + row * stride + head * headDim;
}

/// Begins to copy rows [begin, end) of a head into a tile.
template <bool isAligned, int rows, int width>
DYNA_GPU void loadRows(MmaTile<rows, width> &to, const void *all,
                       int64_t stride, int32_t begin, int32_t end, int32_t head,
                       int32_t headDim) {
  loadTile<isAligned>(to, headOf(all, stride, begin, head, headDim), stride,
                      end - begin, headDim);
}

/// Begins to copy the keys [begin, end) of a tile or of a block.
template <bool isAligned, int rows, int width>
DYNA_GPU void loadKeys(MmaTile<rows, width> &to, const AttentionArguments &args,
                       int32_t begin, int32_t end, int32_t kvHead) {
  const KeyRows from = keyRowsAt(args, begin);
  loadRows<isAligned>(to, from.k, from.kStride, begin, end, kvHead,
                      args.headDim);
}
/// Begins to copy their values.
template <bool isAligned, int rows, int width>
DYNA_GPU void loadValues(MmaTile<rows, width> &to,
                         const AttentionArguments &args, int32_t begin,
                         int32_t end, int32_t kvHead) {
  const KeyRows from = keyRowsAt(args, begin);
  loadRows<isAligned>(to, from.v, from.vStride, begin, end, kvHead,
                      args.headDim);
}

/// Scores in units of log2 per unit of a product. Hidden ones are infinite, and
/// must not meet a 0.
DYNA_GPU float scaleOf(const AttentionArguments &args) {
  return largestOf(static_cast<float>(args.scale) * kLog2E, 1e-37f);
}

/// Rows of a block, and of a thread in it: `row`, `row + 8`, `row + 16`, ...
template <int rows> struct Place {
  static constexpr int warpRows = rows / (kMmaThreads / 32);
  static constexpr int tiles = warpRows / 16; ///< of accumulators
  int32_t head, kvHead;                       ///< of keys: kvHead, twice
  int32_t first, end;                         ///< rows of the block
  int32_t warpRow; ///< first of the warp, in the block
  int32_t row;

  DYNA_GPU Place(int32_t first, int32_t end)
      : first(first), end(end), warpRow(threadIndex() / 32 * warpRows),
        row(first + warpRow + threadIndex() % 32 / 4) {}
};

/// Returns the place of a block of queries. Later queries see more keys, so
/// they start first.
template <int rows>
DYNA_GPU Place<rows> queryPlace(const AttentionArguments &args) {
  const int32_t first =
      (gridSize() / args.heads - 1 - blockIndex() / args.heads) * rows;
  Place<rows> place(first, least(first + rows, args.tq));
  place.head = blockIndex() % args.heads;
  place.kvHead = place.head / args.group;
  return place;
}

template <int rows>
DYNA_GPU Place<rows> keyPlace(const AttentionArguments &args) {
  const KeyRange keys = keysOfBlock<rows>(args, blockIndex() / args.kvHeads);
  Place<rows> place(keys.begin, keys.end);
  place.head = place.kvHead = blockIndex() % args.kvHeads;
  return place;
}

/// The keys of a warp's queries. Callers read them after a barrier.
template <int rows, bool hasWarps> class WarpRanges {
public:
  DYNA_GPU WarpRanges(const AttentionArguments &args, const Place<rows> &place,
                      SeenKeys<rows, hasWarps> &seen)
      : seen(seen) {
    const int lane = threadIndex() % 32, at = place.warpRow + lane;
    KeyRange own = {0, 0};
    if (lane < Place<rows>::warpRows)
      own = seen.ofRow[at] = rangeOf(args, place.first + at);
    // Rows beyond the end see the same keys as the others, and are not stored.
    const bool isRow =
        lane < Place<rows>::warpRows && place.first + at < place.end;
    KeyRange all = isRow ? own : KeyRange{0, kNoEnd};
    KeyRange any = own.begin < own.end ? own : KeyRange{kNoEnd, 0};
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) {
      all.begin = most(all.begin, shuffleXor(all.begin, mask));
      all.end = least(all.end, shuffleXor(all.end, mask));
      any.begin = least(any.begin, shuffleXor(any.begin, mask));
      any.end = most(any.end, shuffleXor(any.end, mask));
    }
    if constexpr (!hasWarps) {
      ownAll = all;
      ownAny = any;
    } else if (lane == 0) {
      seen.all[threadIndex() / 32] = all;
      seen.any[threadIndex() / 32] = any;
    }
  }

  /// Returns true if the warp's queries see all keys of a tile of `size`. Then
  /// all keys are of its run, and no query sees keys after the run's end.
  DYNA_GPU bool seeAll(const Place<rows> &place, const KeyTile &tile,
                       int size) const {
    const KeyRange all = allOfWarp();
    return tile.begin >= all.begin && tile.begin + size <= all.end &&
           tile.firstRow <= place.first && tile.endRow >= place.end;
  }
  /// Returns true if no query of the warp sees any key of the tile. Then the
  /// warp has nothing to do.
  DYNA_GPU bool seeNone(const KeyTile &tile) const {
    const KeyRange any = anyOfWarp();
    return tile.begin >= any.end || tile.end <= any.begin;
  }

  /// Puts `hidden` where a query does not see the key. Columns are keys.
  template <int n>
  DYNA_GPU void hide(float (&scores)[Place<rows>::tiles][n / 8][4],
                     const Place<rows> &place, const KeyTile &tile,
                     float hidden) const {
#pragma unroll
    for (int i = 0; i < 2 * Place<rows>::tiles; ++i) {
      const int32_t row = place.row + 8 * i;
      const KeyRange keys = tile.seenBy(row, seen.ofRow[row - place.first]);
      const int32_t column = tile.begin + 2 * (threadIndex() % 4);
      const int32_t begin = keys.begin - column, end = keys.end - column;
#pragma unroll
      for (int j = 0; j < n / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (8 * j + e < begin || 8 * j + e >= end)
            scores[i / 2][j][i % 2 * 2 + e] = hidden;
    }
  }

private:
  DYNA_GPU KeyRange allOfWarp() const {
    if constexpr (hasWarps)
      return seen.all[threadIndex() / 32];
    else
      return ownAll;
  }
  DYNA_GPU KeyRange anyOfWarp() const {
    if constexpr (hasWarps)
      return seen.any[threadIndex() / 32];
    else
      return ownAny;
  }

  const SeenKeys<rows, hasWarps> &seen;
  KeyRange ownAll, ownAny; ///< unless they are there
};

} // namespace mma
} // namespace gpu
} // namespace dyna

/// A kernel made of function<isAligned, ...>: what rows that are not aligned to 16
/// bytes need is in no register of the others' loops.
#define DYNA_ATTENTION_KERNEL(name, function, ...)                             \
  DYNA_KERNEL(name) {                                                          \
    if (args.isAligned)                                                        \
      dyna::gpu::mma::function<true, __VA_ARGS__>(args, shared);               \
    else                                                                       \
      dyna::gpu::mma::function<false, __VA_ARGS__>(args, shared);              \
  }

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONPLACES_H
