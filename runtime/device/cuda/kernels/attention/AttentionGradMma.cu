//===- AttentionGradMma.cu - Computes gradients in bf16 ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes gradients of attention, with blocks and tiles as in the forward
// kernel (AttentionMma.cu). Every result is added up by one warp, in order. So
// there are no atomics, and results are reproducible. The price is more
// products for dq, dk and dv: seven instead of five, or eight if dk and dv have
// separate kernels.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/attention/AttentionPlaces.h"

namespace dyna {
namespace gpu {
namespace mma {

//===----------------------------------------------------------------------===//
// Gradients of queries
//===----------------------------------------------------------------------===//

/// Scores become their gradients, by what dout times the values is.
template <int rows, int n>
DYNA_GPU void scoreGrad(float (&scores)[Place<rows>::tiles][n / 8][4],
                        const float (&products)[Place<rows>::tiles][n / 8][4],
                        float scale, const Place<rows> &place,
                        const float (&lses)[rows],
                        const float (&deltas)[rows]) {
#pragma unroll
  for (int i = 0; i < 2 * Place<rows>::tiles; ++i) {
    const int row = place.row - place.first + 8 * i;
    const float lse = lses[row], delta = deltas[row];
#pragma unroll
    for (int j = 0; j < n / 8; ++j)
#pragma unroll
      for (int e = i % 2 * 2; e < i % 2 * 2 + 2; ++e) {
        float &score = scores[i / 2][j][e];
        score = exp2(score * scale - lse) * (products[i / 2][j][e] - delta);
      }
  }
}

/// Stores the warp's rows of a head, each times `factor`.
template <bool isAligned, int width, int rows>
DYNA_GPU void storeScaled(void *all, int64_t stride, const Place<rows> &place,
                          int32_t head, int32_t headDim,
                          const float (&sums)[Place<rows>::tiles][width / 8][4],
                          float factor) {
  float factors[2 * Place<rows>::tiles];
#pragma unroll
  for (float &one : factors)
    one = factor;
  storeRows<isAligned, Place<rows>::tiles, width>(
      static_cast<uint16_t *>(all) + head * headDim, stride,
      place.first + place.warpRow, place.end, headDim, sums, factors);
}

/// Loads the statistics of a block's queries, or of a tile's: lse in units of
/// log2, and delta.
template <int count>
DYNA_GPU void loadStatistics(float (&lse)[count], float (&delta)[count],
                             const AttentionArguments &args, int32_t begin,
                             int32_t end, int32_t head) {
  if (int i = threadIndex(); i < count) {
    const int64_t row = begin + i, entry = row * args.heads + head;
    const bool isRow = row < end;
    lse[i] = isRow ? static_cast<const float *>(args.lse)[entry] * kLog2E : 0;
    delta[i] = isRow ? static_cast<const float *>(args.delta)[entry] : 0;
  }
}

template <bool isAligned, int width>
DYNA_GPU void queryGrad(const AttentionArguments &args,
                        MmaQueryGradShared<width> &shared) {
  constexpr int rows = kQueryRows<width>, m = Place<rows>::tiles;
  constexpr int keys = kQueryGradKeys<width>, stages = kGradStages<width>;
  const Place<rows> place = queryPlace<rows>(args);
  auto load = [&](int stage, const KeyTile &tile) {
    loadKeys<isAligned>(shared.k[stage], args, tile.begin, tile.end,
                        place.kvHead);
    loadValues<isAligned>(shared.v[stage], args, tile.begin, tile.end,
                          place.kvHead);
  };
  loadRows<isAligned>(shared.q, args.q, args.qStride, place.first, place.end,
                      place.head, args.headDim);
  loadRows<isAligned>(shared.dout, args.dout, args.outStride, place.first,
                      place.end, place.head, args.headDim);
  KeyTiles<keys> tiles(args, place.first, place.end);
  if (tiles.find())
    load(0, tiles.tile());
  commitCopies();
  loadStatistics(shared.lse, shared.delta, args, place.first, place.end,
                 place.head);
  const WarpRanges ranges(args, place, shared.seen);

  float sums[m][width / 8][4];
  clear(sums);
  for (int stage = 0; tiles.isThere();) {
    const KeyTile tile = tiles.tile();
    // The products need all registers, so find this place again.
    KeyTiles<keys> ahead = tiles;
    ahead.advance();
    awaitCopies<0>();
    barrier(); // this tile has come, and the one before has been read
    if (stages == 2 && ahead.isThere())
      load(1 - stage, ahead.tile());
    commitCopies();
    if (!ranges.seeNone(tile)) {
      float scores[m][keys / 8][4], products[m][keys / 8][4];
      multiplyRows(scores, shared.q, place.warpRow, shared.k[stage]);
      multiplyRows(products, shared.dout, place.warpRow, shared.v[stage]);
      scoreGrad<rows, keys>(scores, products, scaleOf(args), place, shared.lse,
                            shared.delta);
      if (!ranges.seeAll(place, tile, keys))
        ranges.template hide<keys>(scores, place, tile, 0);
      addWeighted<m, keys>(sums, scores, shared.k[stage]);
    }
    if (stages == 1) {
      barrier(); // the tile has been read
      if (ahead.isThere())
        load(0, ahead.tile());
      commitCopies();
    }
    tiles.advance();
    stage = stages == 1 ? 0 : 1 - stage;
  }
  awaitCopies<0>();
  storeScaled<isAligned, width>(args.dq, args.dqStride, place, place.head,
                                args.headDim, sums,
                                static_cast<float>(args.scale));
}

//===----------------------------------------------------------------------===//
// Gradients of keys and values
//===----------------------------------------------------------------------===//

/// The tiles of queries that see some of a block's keys, each for all heads that
/// share these. Registers are what sums need: all that a tile does not change is
/// asked anew.
template <int size, int rows> class QueryTiles {
public:
  /// `bounds` are those of queriesOf, in shared memory.
  DYNA_GPU QueryTiles(const AttentionArguments &args, const Place<rows> &place,
                      const int32_t (&bounds)[2 * kMmaThreads])
      : args(args), place(place), bounds(bounds), begin(bounds[0] - size),
        headOfGroup(args.group - 1) {}

  DYNA_GPU bool next() {
    if (++headOfGroup == args.group) {
      headOfGroup = 0;
      do {
        begin += size;
        if (begin >= end())
          return false;
        look();
      } while (!(flags & kSeen));
    }
    return true;
  }
  /// Begins to copy the tile.
  template <bool isAligned, typename Stage>
  DYNA_GPU void load(Stage &stage) const {
    const int32_t last = least(begin + size, end());
    const int32_t head = place.kvHead * args.group + headOfGroup;
    loadRows<isAligned>(stage.q, args.q, args.qStride, begin, last, head,
                        args.headDim);
    loadRows<isAligned>(stage.dout, args.dout, args.outStride, begin, last,
                        head, args.headDim);
    loadStatistics(stage.lse, stage.delta, args, begin, last, head);
    if (int i = threadIndex(); i < size)
      stage.ranges[i] =
          begin + i < last ? args.ranges[begin + i] : KeyRange{0, 0};
  }

  static constexpr int kSeen = 1; ///< some query sees some key of the block
  static constexpr int kSeenOfWarp = 2; ///< some query sees some of the warp's
  static constexpr int kPartly = 4; ///< some query does not see all of these
  int flags = 0;

private:
  DYNA_GPU int32_t end() const { return bounds[kMmaThreads]; }

  /// Finds the visible range of the tile. Every warp reads the whole tile, and
  /// finds the same end.
  DYNA_GPU void look() {
    const int32_t first = place.first + place.warpRow;
    const int32_t last = least(first + Place<rows>::warpRows, place.end);
    flags = 0;
    for (int i = threadIndex() % 32; i < size; i += 32) {
      const int32_t row = begin + i;
      KeyRange range = row < end() ? args.ranges[row] : KeyRange{0, 0};
      flags |= range.begin < place.end && range.end > place.first ? kSeen : 0;
      flags |= range.begin < last && range.end > first ? kSeenOfWarp : 0;
      flags |= range.begin <= first && range.end >= last ? 0 : kPartly;
    }
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2)
      flags |= shuffleXor(flags, mask);
  }

  const AttentionArguments &args;
  const Place<rows> &place;
  const int32_t (&bounds)[2 * kMmaThreads];
  int32_t begin;
  int32_t headOfGroup;
};

/// Products of keys and queries become weights, 0 where a query does not see a key.
/// Rows are keys.
template <int rows, typename Stage, int n>
DYNA_GPU void keyWeights(float (&weights)[Place<rows>::tiles][n][4],
                         float scale, const Place<rows> &place,
                         const Stage &tile, bool isPartly) {
#pragma unroll
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int query = 8 * j + 2 * (threadIndex() % 4) + e;
      const float lse = tile.lse[query];
#pragma unroll
      for (int i = 0; i < 2 * Place<rows>::tiles; ++i) {
        float &weight = weights[i / 2][j][i % 2 * 2 + e];
        weight = exp2(weight * scale - lse);
      }
      if (!isPartly)
        continue;
      const KeyRange seen = tile.ranges[query];
#pragma unroll
      for (int i = 0; i < 2 * Place<rows>::tiles; ++i) {
        const int32_t key = place.row + 8 * i;
        if (key < seen.begin || key >= seen.end)
          weights[i / 2][j][i % 2 * 2 + e] = 0;
      }
    }
}

/// Weights become gradients of scores, by what values times dout is.
template <int m, int n, int queries>
DYNA_GPU void keyScoreGrad(float (&weights)[m][n][4],
                           const float (&products)[m][n][4],
                           const float (&deltas)[queries]) {
#pragma unroll
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float delta = deltas[8 * j + 2 * (threadIndex() % 4) + e];
#pragma unroll
      for (int i = 0; i < 2 * m; ++i) {
        const int at = i % 2 * 2 + e;
        weights[i / 2][j][at] *= products[i / 2][j][at] - delta;
      }
    }
}

/// Adds the warp's rows of a head, each times `factor`, to sums of the store. Rows of
/// no segment of these queries are left alone.
template <bool isAligned, int width, int rows>
DYNA_GPU void addScaled(const AttentionArguments &args,
                        const Place<rows> &place, KeyRange queries, void *all,
                        const float (&sums)[Place<rows>::tiles][width / 8][4],
                        float factor) {
  constexpr int pair = isAligned ? 2 : 1; // elements at once
  using Elements = Piece<float, pair>;
#pragma unroll
  for (int i = 0; i < 2 * Place<rows>::tiles; ++i) {
    const int32_t key = place.row + 8 * i;
    if (key >= place.end || !isOfSegment(args, key, queries))
      continue;
    float *to = static_cast<float *>(all) +
                int64_t(key) * args.store.sumStride +
                place.kvHead * args.store.sumHeadDim;
#pragma unroll
    for (int n = 0; n < width / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; e += pair) {
        const int column = 8 * n + 2 * (threadIndex() % 4) + e;
        if (column >= args.headDim)
          continue;
        auto *target =
            reinterpret_cast<Elements *>(aligned<4 * pair>(to + column));
        Elements now = *target;
#pragma unroll
        for (int one = 0; one < pair; ++one)
          now.values[one] += sums[i / 2][n][i % 2 * 2 + e + one] * factor;
        *target = now;
      }
  }
}

/// Stores the warp's rows of a gradient of keys, or adds them to sums of the store.
template <bool isAligned, int width, int rows>
DYNA_GPU void
putKeyGrad(const AttentionArguments &args, const Place<rows> &place,
           const int32_t (&bounds)[2 * kMmaThreads], bool isKey,
           const float (&sums)[Place<rows>::tiles][width / 8][4]) {
  const float factor = isKey ? static_cast<float>(args.scale) : 1;
  if (place.first < args.tkv)
    storeScaled<isAligned, width>(isKey ? args.dk : args.dv,
                                  isKey ? args.dkStride : args.dvStride, place,
                                  place.kvHead, args.headDim, sums, factor);
  else
    addScaled<isAligned, width>(args, place, {bounds[0], bounds[kMmaThreads]},
                                isKey ? args.store.dk : args.store.dv, sums,
                                factor);
}

template <bool isAligned, int width, bool withKeys, bool withValues>
DYNA_GPU void keyGrad(const AttentionArguments &args,
                      MmaKeysGradShared<width, withKeys> &shared) {
  constexpr int rows = kKeyRows<width>, m = Place<rows>::tiles;
  constexpr int queries = kKeyGradQueries<width>, stages = kGradStages<width>;
  const Place<rows> place = keyPlace<rows>(args);
  // Rows of the store that no query sees are not read.
  if (place.first >= args.tkv &&
      !areSeen<kMmaThreads>(args, place.first, place.end, shared.bounds))
    return;
  loadKeys<isAligned>(shared.own.k, args, place.first, place.end, place.kvHead);
  if constexpr (withKeys)
    loadValues<isAligned>(shared.own.v, args, place.first, place.end,
                          place.kvHead);
  queriesOf<kMmaThreads>(args, place.first, place.end, shared.bounds);
  QueryTiles<queries, rows> tiles(args, place, shared.bounds);
  bool isThere = tiles.next();
  if (isThere)
    tiles.template load<isAligned>(shared.stages[0]);
  commitCopies();

  float dk[withKeys ? m : 1][withKeys ? width / 8 : 1][4];
  float dv[withValues ? m : 1][withValues ? width / 8 : 1][4];
  clear(dk);
  clear(dv);
  for (int stage = 0; isThere; stage = stages == 1 ? 0 : 1 - stage) {
    const int flags = tiles.flags;
    isThere = tiles.next();
    awaitCopies<0>();
    barrier(); // this tile has come, and the one before has been read
    if (stages == 2 && isThere)
      tiles.template load<isAligned>(shared.stages[1 - stage]);
    commitCopies();
    if (flags & tiles.kSeenOfWarp) {
      const auto &tile = shared.stages[stage];
      float weights[m][queries / 8][4];
      multiplyRows(weights, shared.own.k, place.warpRow, tile.q);
      keyWeights(weights, scaleOf(args), place, tile, flags & tiles.kPartly);
      if constexpr (withValues)
        addWeighted<m, queries>(dv, weights, tile.dout);
      if constexpr (withKeys) {
        float products[m][queries / 8][4];
        multiplyRows(products, shared.own.v, place.warpRow, tile.dout);
        keyScoreGrad(weights, products, tile.delta);
        addWeighted<m, queries>(dk, weights, tile.q);
      }
    }
    if (stages == 1) {
      barrier(); // the tile has been read
      if (isThere)
        tiles.template load<isAligned>(shared.stages[0]);
      commitCopies();
    }
  }
  awaitCopies<0>();
  if constexpr (withKeys)
    putKeyGrad<isAligned, width>(args, place, shared.bounds, true, dk);
  if constexpr (withValues)
    putKeyGrad<isAligned, width>(args, place, shared.bounds, false, dv);
}

/// Prepares gradients with a warp per query: for all heads the sums of out
/// times dout, and its keys.
DYNA_GPU void prepare(const AttentionArguments &args) {
  const int lane = threadIndex() % 32;
  int64_t row = int64_t(blockIndex()) * (blockSize() / 32) + threadIndex() / 32;
  if (row >= args.tq)
    return;
  if (lane == 0)
    args.ranges[row] = rangeOf(args, row);
  // Compute how many lanes share a head; each lane has eight columns.
  int lanes = 8;
  while (8 * lanes < args.headDim)
    lanes *= 2;
  const int column = lane % lanes * 8;
  for (int32_t first = 0; first < args.heads; first += 32 / lanes) {
    const int32_t head = first + lane / lanes;
    float sum = 0;
    if (head < args.heads) {
      const uint16_t *out =
          headOf(args.out, args.outStride, row, head, args.headDim) + column;
      const uint16_t *dout =
          headOf(args.dout, args.outStride, row, head, args.headDim) + column;
      if (args.isAligned && column < args.headDim) {
        const Piece<uint16_t> left =
            *reinterpret_cast<const Piece<uint16_t> *>(aligned<16>(out));
        const Piece<uint16_t> right =
            *reinterpret_cast<const Piece<uint16_t> *>(aligned<16>(dout));
#pragma unroll
        for (int i = 0; i < 8; ++i)
          sum += widenBf16(left.values[i]) * widenBf16(right.values[i]);
      } else {
        for (int i = 0; i < 8 && column + i < args.headDim; ++i)
          sum += widenBf16(out[i]) * widenBf16(dout[i]);
      }
    }
    for (int mask = 1; mask < lanes; mask *= 2)
      sum += shuffleXor(sum, mask);
    if (lane % lanes == 0 && head < args.heads)
      static_cast<float *>(args.delta)[row * args.heads + head] = sum;
  }
}

} // namespace mma
} // namespace gpu
} // namespace dyna

DYNA_KERNEL(attention_delta_bf16) { dyna::gpu::mma::prepare(args); }
DYNA_ATTENTION_KERNEL(attention_dq_bf16_64, queryGrad, 64)
DYNA_ATTENTION_KERNEL(attention_dq_bf16_128, queryGrad, 128)
DYNA_ATTENTION_KERNEL(attention_dq_bf16_256, queryGrad, 256)
DYNA_ATTENTION_KERNEL(attention_dkv_bf16_64, keyGrad, 64, true, true)
DYNA_ATTENTION_KERNEL(attention_dk_bf16_128, keyGrad, 128, true, false)
DYNA_ATTENTION_KERNEL(attention_dv_bf16_128, keyGrad, 128, false, true)
DYNA_ATTENTION_KERNEL(attention_dk_bf16_256, keyGrad, 256, true, false)
DYNA_ATTENTION_KERNEL(attention_dv_bf16_256, keyGrad, 256, false, true)
