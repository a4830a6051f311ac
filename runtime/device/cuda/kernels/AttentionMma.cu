//===- AttentionMma.cu - Attention in bf16 ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block of four warps owns 64 rows of one head, 16 per warp: queries (out, dq)
// or keys (dk, dv). Tiles of the other side pass through shared memory; what is
// next is copied while there is work with what is there. Scores, weights and
// sums are f32 in registers. Heads are widened to 64, 128 or 256 columns by
// zeros. Every result is added up by one warp, in order: no atomics, the same
// bits each time; the price is that dq, dk and dv take seven products
// instead of five.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/AttentionRows.h"
#include "runtime/device/cuda/kernels/MmaTiles.h"

#include <cmath>

namespace dyna {
namespace gpu {
namespace mma {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr int32_t kNoEnd = INT32_MAX;

/// The head of one operand.
DYNA_GPU const uint16_t *at(const void *all, int64_t stride, int64_t row,
                            int64_t head, int32_t headDim) {
  return static_cast<const uint16_t *>(all) + row * stride + head * headDim;
}

/// What a block owns, and a thread of it: rows `row` and `row + 8`.
struct Place {
  int64_t head, kvHead;
  int32_t first, end; ///< rows of the block
  int32_t warpRow;    ///< first of the warp, in the block
  int32_t row;

  DYNA_GPU Place(int32_t index, int32_t rows)
      : first(index * kMmaRows), end(least(first + kMmaRows, rows)),
        warpRow(threadIndex() / 32 * 16),
        row(first + warpRow + threadIndex() % 32 / 4) {}
};

/// Of queries; later ones see more, and begin first.
DYNA_GPU Place queryPlace(const AttentionArguments &args) {
  Place place(gridSize() / args.heads - 1 - blockIndex() / args.heads, args.tq);
  place.head = blockIndex() % args.heads;
  place.kvHead = place.head / (args.heads / args.kvHeads);
  return place;
}

/// The keys of a thread's two queries, and of all of its warp.
struct WarpRanges {
  KeyRange own[2];
  KeyRange all; ///< that every query of the warp sees

  DYNA_GPU WarpRanges(const AttentionArguments &args, const Place &place) {
    all = {0, kNoEnd};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int32_t row = place.row + 8 * i;
      // Those that are not there see what the others do, and are not stored.
      own[i] = row < place.end ? rangeOf(args, row) : KeyRange{0, kNoEnd};
      all.begin = most(all.begin, own[i].begin);
      all.end = least(all.end, own[i].end);
    }
#pragma unroll
    for (int mask = 4; mask < 32; mask *= 2) {
      all.begin = most(all.begin, shuffleXor(all.begin, mask));
      all.end = least(all.end, shuffleXor(all.end, mask));
    }
  }

  /// Whether the warp's queries see all of `size` keys.
  DYNA_GPU bool seeAll(const Place &place, const KeyTile &tile,
                       int size) const {
    return tile.begin >= all.begin && tile.begin + size <= all.end &&
           tile.begin + size <= tile.end && tile.firstRow <= place.first &&
           tile.endRow >= place.end;
  }
};

/// Puts `hidden` where a query does not see the key. Columns are keys.
template <int n>
DYNA_GPU void hide(float (&scores)[n / 8][4], const Place &place,
                   const WarpRanges &ranges, const KeyTile &tile,
                   float hidden) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    KeyRange seen = tile.seenBy(place.row + 8 * i, ranges.own[i]);
#pragma unroll
    for (int j = 0; j < n / 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int32_t key = tile.begin + 8 * j + 2 * (threadIndex() % 4) + e;
        if (key < seen.begin || key >= seen.end)
          scores[j][2 * i + e] = hidden;
      }
  }
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// The running softmax of a thread's two rows.
struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0}; ///< of this thread's columns

  /// Scores, in units of log2, become weights; `factors` is what earlier sums are
  /// to be multiplied by.
  template <int n>
  DYNA_GPU void update(float (&scores)[n / 8][4], float (&factors)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float now = largest[i];
#pragma unroll
      for (int j = 0; j < n / 8; ++j)
        now = most(now, most(scores[j][2 * i], scores[j][2 * i + 1]));
      now = most(now, shuffleXor(now, 1));
      now = most(now, shuffleXor(now, 2));
      // Rows that have seen nothing yet: anything finite will do.
      float base = now == -INFINITY ? 0.0f : now;
      factors[i] = exp2(largest[i] - base);
      largest[i] = now;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < n / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          sum += scores[j][2 * i + e] = exp2(scores[j][2 * i + e] - base);
      total[i] = total[i] * factors[i] + sum;
    }
  }
};

template <int width>
DYNA_GPU void forward(const AttentionArguments &args,
                      MmaForwardShared<width> &shared) {
  constexpr int keys = kForwardKeys<width>;
  const Place place = queryPlace(args);
  const WarpRanges ranges(args, place);
  const float scale = static_cast<float>(args.scale) * kLog2E;
  auto load = [&](MmaTile<keys, width> &to, const void *all, int64_t stride,
                  const KeyTile &tile) {
    loadTile(to, at(all, stride, tile.begin, place.kvHead, args.headDim),
             stride, tile.end - tile.begin, args.headDim, args.isAligned);
  };
  loadTile(shared.q,
           at(args.q, args.qStride, place.first, place.head, args.headDim),
           args.qStride, place.end - place.first, args.headDim, args.isAligned);
  KeyTiles<keys> tiles(args, place.first, place.end);
  KeyTile tile;
  bool isThere = tiles.next(tile);
  if (isThere)
    load(shared.k, args.k, args.kStride, tile);
  commitCopies();

  float sums[width / 8][4];
  clear(sums);
  Softmax softmax;
  while (isThere) {
    load(shared.v, args.v, args.vStride, tile);
    commitCopies();
    KeyTile next;
    bool isMore = tiles.next(next);
    awaitCopies<1>();
    barrier(); // the keys have come
    float scores[keys / 8][4];
    clear(scores);
    multiplyRows(scores, shared.q, place.warpRow, shared.k);
    barrier(); // and have been read
    if (isMore)
      load(shared.k, args.k, args.kStride, next);
    commitCopies();

#pragma unroll
    for (int j = 0; j < keys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[j][e] *= scale;
    if (!ranges.seeAll(place, tile, keys))
      hide<keys>(scores, place, ranges, tile, -INFINITY);
    float factors[2];
    softmax.update<keys>(scores, factors);
#pragma unroll
    for (int j = 0; j < width / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[j][e] *= factors[e / 2];
    awaitCopies<1>();
    barrier(); // the values have come
    addWeighted(sums, scores, shared.v);
    barrier(); // and have been read
    tile = next;
    isThere = isMore;
  }
  awaitCopies<0>(); // of queries that see nothing

  float factors[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float total = softmax.total[i];
    total += shuffleXor(total, 1);
    total += shuffleXor(total, 2);
    factors[i] = total == 0 ? 0.0f : 1 / total;
    int64_t row = place.row + 8 * i;
    if (args.lse && threadIndex() % 4 == 0 && row < place.end)
      static_cast<float *>(args.lse)[row * args.heads + place.head] =
          total == 0 ? -INFINITY : (softmax.largest[i] + log2(total)) * kLn2;
  }
  storeRows<width>(static_cast<uint16_t *>(args.out) +
                       place.head * args.headDim,
                   args.outStride, place.first + place.warpRow, place.end,
                   args.headDim, args.isAligned, sums, factors);
}

//===----------------------------------------------------------------------===//
// Gradients of queries
//===----------------------------------------------------------------------===//

template <int width>
DYNA_GPU void queryGrad(const AttentionArguments &args,
                        MmaQueryGradShared<width> &shared) {
  constexpr int keys = kGradRows<width>, stages = kGradStages<width>;
  const Place place = queryPlace(args);
  const WarpRanges ranges(args, place);
  const float scale = static_cast<float>(args.scale) * kLog2E;
  float lse[2], delta[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int64_t row = place.row + 8 * i, entry = row * args.heads + place.head;
    bool isRow = row < place.end;
    lse[i] = isRow ? static_cast<const float *>(args.lse)[entry] * kLog2E : 0;
    delta[i] = isRow ? static_cast<const float *>(args.delta)[entry] : 0;
  }
  auto load = [&](int stage, const KeyTile &tile) {
    int there = tile.end - tile.begin;
    loadTile(shared.k[stage],
             at(args.k, args.kStride, tile.begin, place.kvHead, args.headDim),
             args.kStride, there, args.headDim, args.isAligned);
    loadTile(shared.v[stage],
             at(args.v, args.vStride, tile.begin, place.kvHead, args.headDim),
             args.vStride, there, args.headDim, args.isAligned);
  };
  const int rows = place.end - place.first;
  loadTile(shared.q,
           at(args.q, args.qStride, place.first, place.head, args.headDim),
           args.qStride, rows, args.headDim, args.isAligned);
  loadTile(shared.dout,
           at(args.dout, args.outStride, place.first, place.head, args.headDim),
           args.outStride, rows, args.headDim, args.isAligned);
  KeyTiles<keys> tiles(args, place.first, place.end);
  KeyTile tile;
  bool isThere = tiles.next(tile);
  if (isThere)
    load(0, tile);
  commitCopies();

  float sums[width / 8][4];
  clear(sums);
  for (int stage = 0; isThere; stage = stages == 1 ? 0 : 1 - stage) {
    KeyTile next;
    bool isMore = tiles.next(next);
    if (stages == 2) {
      if (isMore)
        load(1 - stage, next);
      commitCopies();
      awaitCopies<1>();
    } else {
      awaitCopies<0>();
    }
    barrier(); // the tile has come
    float scores[keys / 8][4], products[keys / 8][4];
    clear(scores);
    clear(products);
    multiplyRows(scores, shared.q, place.warpRow, shared.k[stage]);
    multiplyRows(products, shared.dout, place.warpRow, shared.v[stage]);
#pragma unroll
    for (int j = 0; j < keys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[j][e] = exp2(scores[j][e] * scale - lse[e / 2]) *
                       (products[j][e] - delta[e / 2]);
    if (!ranges.seeAll(place, tile, keys))
      hide<keys>(scores, place, ranges, tile, 0);
    addWeighted(sums, scores, shared.k[stage]);
    barrier(); // the tile has been read
    if (stages == 1 && isMore) {
      load(0, next);
      commitCopies();
    }
    tile = next;
    isThere = isMore;
  }
  awaitCopies<0>();
  const float factors[2] = {static_cast<float>(args.scale),
                            static_cast<float>(args.scale)};
  storeRows<width>(static_cast<uint16_t *>(args.dq) + place.head * args.headDim,
                   args.dqStride, place.first + place.warpRow, place.end,
                   args.headDim, args.isAligned, sums, factors);
}

//===----------------------------------------------------------------------===//
// Gradients of keys and values
//===----------------------------------------------------------------------===//

/// The tiles of queries that see some of a block's keys, each for all heads that
/// share these.
template <int size> class QueryTiles {
public:
  DYNA_GPU QueryTiles(const AttentionArguments &args, KeyRange queries,
                      KeyRange keys, int64_t kvHead)
      : head(0), args(args), queries(queries), keys(keys),
        group(args.heads / args.kvHeads), firstHead(kvHead * group),
        begin(queries.begin - size), place(group - 1) {}

  DYNA_GPU bool next() {
    if (++place == group) {
      place = 0;
      do {
        begin += size;
        if (begin >= queries.end)
          return false;
        look();
      } while (!isSeen);
    }
    head = firstHead + place;
    return true;
  }
  DYNA_GPU int32_t row() const { return begin; }
  DYNA_GPU int32_t rows() const { return least(size, queries.end - begin); }

  int64_t head;
  bool isSeen = false; ///< some query sees some key
  bool isFull = false; ///< all see all

private:
  /// Every warp looks at all of the tile, and comes to the same end.
  DYNA_GPU void look() {
    int flags = 0;
    for (int i = threadIndex() % 32; i < size; i += 32) {
      int32_t row = begin + i;
      KeyRange range = row < queries.end ? args.ranges[row] : KeyRange{0, 0};
      flags |= range.begin < keys.end && range.end > keys.begin ? 1 : 0;
      flags |= range.begin <= keys.begin && range.end >= keys.end ? 0 : 2;
    }
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2)
      flags |= shuffleXor(flags, mask);
    isSeen = flags & 1;
    isFull = !(flags & 2);
  }

  const AttentionArguments &args;
  const KeyRange queries, keys;
  const int32_t group;
  const int64_t firstHead;
  int32_t begin;
  int32_t place; ///< of the head in its group
};

template <int width, bool withKeys, bool withValues>
DYNA_GPU void keyGrad(const AttentionArguments &args,
                      MmaKeyGradShared<width> &shared) {
  constexpr int queries = kGradRows<width>, stages = kGradStages<width>;
  Place place(blockIndex() / args.kvHeads, args.tkv);
  place.kvHead = blockIndex() % args.kvHeads;
  const float scale = static_cast<float>(args.scale) * kLog2E;
  auto load = [&](int index, const QueryTiles<queries> &tile) {
    auto &stage = shared.stages[index];
    loadTile(stage.q,
             at(args.q, args.qStride, tile.row(), tile.head, args.headDim),
             args.qStride, tile.rows(), args.headDim, args.isAligned);
    loadTile(stage.dout,
             at(args.dout, args.outStride, tile.row(), tile.head, args.headDim),
             args.outStride, tile.rows(), args.headDim, args.isAligned);
    if (int i = threadIndex(); i < queries) {
      int64_t row = tile.row() + i, entry = row * args.heads + tile.head;
      bool isRow = i < tile.rows();
      stage.ranges[i] = isRow ? args.ranges[row] : KeyRange{0, 0};
      stage.lse[i] =
          isRow ? static_cast<const float *>(args.lse)[entry] * kLog2E : 0;
      stage.delta[i] =
          isRow ? static_cast<const float *>(args.delta)[entry] : 0;
    }
  };
  const int rows = place.end - place.first;
  loadTile(shared.k,
           at(args.k, args.kStride, place.first, place.kvHead, args.headDim),
           args.kStride, rows, args.headDim, args.isAligned);
  loadTile(shared.v,
           at(args.v, args.vStride, place.first, place.kvHead, args.headDim),
           args.vStride, rows, args.headDim, args.isAligned);
  QueryTiles<queries> tiles(
      args, queriesOf<kMmaThreads>(args, place.first, place.end, shared.bounds),
      {place.first, place.end}, place.kvHead);
  bool isThere = tiles.next();
  if (isThere)
    load(0, tiles);
  commitCopies();

  float dk[withKeys ? width / 8 : 1][4], dv[withValues ? width / 8 : 1][4];
  clear(dk);
  clear(dv);
  for (int stage = 0; isThere; stage = stages == 1 ? 0 : 1 - stage) {
    const bool isFull = tiles.isFull;
    isThere = tiles.next();
    if (stages == 2) {
      if (isThere)
        load(1 - stage, tiles);
      commitCopies();
      awaitCopies<1>();
    } else {
      awaitCopies<0>();
    }
    barrier(); // the tile has come
    const auto &tile = shared.stages[stage];
    float weights[queries / 8][4];
    clear(weights);
    multiplyRows(weights, shared.k, place.warpRow, tile.q);
#pragma unroll
    for (int j = 0; j < queries / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        int query = 8 * j + 2 * (threadIndex() % 4) + e % 2;
        weights[j][e] = exp2(weights[j][e] * scale - tile.lse[query]);
        int32_t key = place.row + e / 2 * 8;
        KeyRange seen = tile.ranges[query];
        if (!isFull && (key < seen.begin || key >= seen.end))
          weights[j][e] = 0;
      }
    if constexpr (withValues)
      addWeighted(dv, weights, tile.dout);
    if constexpr (withKeys) {
      float products[queries / 8][4];
      clear(products);
      multiplyRows(products, shared.v, place.warpRow, tile.dout);
#pragma unroll
      for (int j = 0; j < queries / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          int query = 8 * j + 2 * (threadIndex() % 4) + e % 2;
          weights[j][e] *= products[j][e] - tile.delta[query];
        }
      addWeighted(dk, weights, tile.q);
    }
    barrier(); // the tile has been read
    if (stages == 1 && isThere) {
      load(0, tiles);
      commitCopies();
    }
  }
  awaitCopies<0>();
  const float scales[2] = {static_cast<float>(args.scale),
                           static_cast<float>(args.scale)};
  const float ones[2] = {1, 1};
  const int64_t head = place.kvHead * args.headDim;
  if constexpr (withKeys)
    storeRows<width>(static_cast<uint16_t *>(args.dk) + head, args.dkStride,
                     place.first + place.warpRow, place.end, args.headDim,
                     args.isAligned, dk, scales);
  if constexpr (withValues)
    storeRows<width>(static_cast<uint16_t *>(args.dv) + head, args.dvStride,
                     place.first + place.warpRow, place.end, args.headDim,
                     args.isAligned, dv, ones);
}

/// A warp per query: for all heads the sums of out times dout, and its keys.
DYNA_GPU void prepare(const AttentionArguments &args) {
  const int lane = threadIndex() % 32;
  int64_t row = int64_t(blockIndex()) * (blockSize() / 32) + threadIndex() / 32;
  if (row >= args.tq)
    return;
  if (lane == 0)
    args.ranges[row] = rangeOf(args, row);
  for (int64_t head = 0; head < args.heads; ++head) {
    const uint16_t *out = at(args.out, args.outStride, row, head, args.headDim);
    const uint16_t *dout =
        at(args.dout, args.outStride, row, head, args.headDim);
    float sum = 0;
    for (int column = lane; column < args.headDim; column += 32)
      sum += widenBf16(out[column]) * widenBf16(dout[column]);
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2)
      sum += shuffleXor(sum, mask);
    if (lane == 0)
      static_cast<float *>(args.delta)[row * args.heads + head] = sum;
  }
}

} // namespace mma
} // namespace gpu
} // namespace dyna

using namespace dyna::gpu;

DYNA_KERNEL(attention_delta_bf16) { mma::prepare(args); }
DYNA_KERNEL(attention_bf16_64) { mma::forward<64>(args, shared); }
DYNA_KERNEL(attention_bf16_128) { mma::forward<128>(args, shared); }
DYNA_KERNEL(attention_bf16_256) { mma::forward<256>(args, shared); }
DYNA_KERNEL(attention_dq_bf16_64) { mma::queryGrad<64>(args, shared); }
DYNA_KERNEL(attention_dq_bf16_128) { mma::queryGrad<128>(args, shared); }
DYNA_KERNEL(attention_dq_bf16_256) { mma::queryGrad<256>(args, shared); }
DYNA_KERNEL(attention_dkv_bf16_64) {
  mma::keyGrad<64, true, true>(args, shared);
}
DYNA_KERNEL(attention_dkv_bf16_128) {
  mma::keyGrad<128, true, true>(args, shared);
}
DYNA_KERNEL(attention_dk_bf16_256) {
  mma::keyGrad<256, true, false>(args, shared);
}
DYNA_KERNEL(attention_dv_bf16_256) {
  mma::keyGrad<256, false, true>(args, shared);
}
