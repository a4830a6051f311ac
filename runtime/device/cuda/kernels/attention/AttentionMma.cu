//===- AttentionMma.cu - Computes attention in bf16 -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Places and tiles are those of AttentionPlaces.h. What is next is copied while there
// is work with what is there. Scores, weights and sums are f32 in registers. Heads
// are widened to 64, 128 or 256 columns by zeros.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/attention/AttentionPlaces.h"

#include <cmath>

namespace dyna {
namespace gpu {
namespace mma {

constexpr float kLn2 = 0.6931471805599453f;

/// The running softmax of a thread's rows.
template <int m> struct Softmax {
  float largest[2 * m]; ///< score, before it is scaled
  float total[2 * m];   ///< of this thread's columns

  DYNA_GPU Softmax() {
#pragma unroll
    for (int i = 0; i < 2 * m; ++i)
      largest[i] = -INFINITY, total[i] = 0;
  }

  /// Scores become weights: 2 to the power of `scale` times what they are below the
  /// largest. Earlier sums of values become what they are with that.
  template <int n, int width>
  DYNA_GPU void update(float (&scores)[m][n / 8][4], float scale,
                       float (&sums)[m][width / 8][4]) {
#pragma unroll
    for (int i = 0; i < 2 * m; ++i) {
      float now = largest[i];
#pragma unroll
      for (int j = 0; j < n / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          now = largestOf(now, scores[i / 2][j][i % 2 * 2 + e]);
      now = largestOf(now, shuffleXor(now, 1));
      now = largestOf(now, shuffleXor(now, 2));
      // For rows that have seen no key yet, any finite base is right.
      const float base = now == -INFINITY ? 0.0f : now * scale;
      const float factor = exp2(largest[i] * scale - base);
      largest[i] = now;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < n / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &score = scores[i / 2][j][i % 2 * 2 + e];
          sum += score = exp2(score * scale - base);
        }
      total[i] = total[i] * factor + sum;
#pragma unroll
      for (int j = 0; j < width / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          sums[i / 2][j][i % 2 * 2 + e] *= factor;
    }
  }
};

/// Stores what the warp has: sums over their totals, and the logarithms of these.
template <bool isAligned, int width, int rows>
DYNA_GPU void
storeForward(const AttentionArguments &args, const Place<rows> &place,
             const Softmax<Place<rows>::tiles> &softmax,
             const float (&sums)[Place<rows>::tiles][width / 8][4]) {
  constexpr int m = Place<rows>::tiles;
  float factors[2 * m];
#pragma unroll
  for (int i = 0; i < 2 * m; ++i) {
    float total = softmax.total[i];
    total += shuffleXor(total, 1);
    total += shuffleXor(total, 2);
    factors[i] = total == 0 ? 0.0f : 1 / total;
    const int64_t row = place.row + 8 * i;
    if (args.lse && threadIndex() % 4 == 0 && row < place.end)
      static_cast<float *>(args.lse)[row * args.heads + place.head] =
          total == 0
              ? -INFINITY
              : (softmax.largest[i] * scaleOf(args) + log2(total)) * kLn2;
  }
  storeRows<isAligned, m, width>(static_cast<uint16_t *>(args.out) +
                                     place.head * args.headDim,
                                 args.outStride, place.first + place.warpRow,
                                 place.end, args.headDim, sums, factors);
}

template <bool isAligned, int width>
DYNA_GPU void forward(const AttentionArguments &args,
                      MmaForwardShared<width> &shared) {
  constexpr int rows = kQueryRows<width>, keys = kForwardKeys<width>;
  constexpr int stages = kForwardStages<width>, m = Place<rows>::tiles;
  const Place<rows> place = queryPlace<rows>(args);
  auto keysTo = [&](int stage, const KeyTile &tile) {
    loadKeys<isAligned>(shared.k[stage], args, tile.begin, tile.end,
                        place.kvHead);
  };
  auto valuesTo = [&](int stage, const KeyTile &tile) {
    loadValues<isAligned>(shared.v[stage], args, tile.begin, tile.end,
                          place.kvHead);
  };
  loadRows<isAligned>(shared.q, args.q, args.qStride, place.first, place.end,
                      place.head, args.headDim);
  KeyTiles<keys> tiles(args, place.first, place.end);
  if (tiles.find()) {
    keysTo(0, tiles.tile());
    if (stages == 2)
      valuesTo(0, tiles.tile());
  }
  commitCopies();
  const WarpRanges ranges(args, place, shared.seen);

  float sums[m][width / 8][4];
  clear(sums);
  Softmax<m> softmax;
  for (int stage = 0; tiles.isThere();) {
    const KeyTile tile = tiles.tile();
    // Find the tile again after the products, because their sums need the
    // registers.
    KeyTiles<keys> ahead = tiles;
    ahead.advance();
    awaitCopies<0>();
    barrier(); // this tile has come, and the one before has been read
    if (stages == 1) {
      valuesTo(0, tile);
    } else if (ahead.isThere()) {
      keysTo(1 - stage, ahead.tile());
      valuesTo(1 - stage, ahead.tile());
    }
    commitCopies();
    const bool isSeen = !ranges.seeNone(tile);
    float scores[m][keys / 8][4];
    if (isSeen)
      multiplyRows(scores, shared.q, place.warpRow, shared.k[stage]);
    if (stages == 1) {
      awaitCopies<0>();
      barrier(); // the values have come, and the keys have been read
      if (ahead.isThere())
        keysTo(0, ahead.tile());
      commitCopies();
    }
    if (isSeen) {
      if (!ranges.seeAll(place, tile, keys))
        ranges.template hide<keys>(scores, place, tile, -INFINITY);
      softmax.template update<keys, width>(scores, scaleOf(args), sums);
      addWeighted<m, keys>(sums, scores, shared.v[stage]);
    }
    tiles.advance();
    stage = stages == 1 ? 0 : 1 - stage;
  }
  awaitCopies<0>(); // the copies for queries that see no key
  storeForward<isAligned, width>(args, place, softmax, sums);
}

} // namespace mma
} // namespace gpu
} // namespace dyna

DYNA_ATTENTION_KERNEL(attention_bf16_64, forward, 64)
DYNA_ATTENTION_KERNEL(attention_bf16_128, forward, 128)
DYNA_ATTENTION_KERNEL(attention_bf16_256, forward, 256)
