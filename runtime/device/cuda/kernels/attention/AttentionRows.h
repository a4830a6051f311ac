//===- AttentionRows.h - Finds the keys of a query --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work is distributed by rows of the micro-batch, independent of segments. A
// block has a number of neighbouring queries (or keys), and each query knows
// its keys. Short segments share a tile, and long ones fill many. This needs no
// table.
//
// Keys have numbers. Those below tkv are rows of the micro-batch, and those
// after are rows of the bundle's store (AttentionArguments.h). No tile and no
// block has keys of both.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONROWS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONROWS_H

#include "runtime/device/cuda/kernels/Elements.h"

namespace dyna {
namespace gpu {

/// Returns the segment of a query: the last that begins at or before it,
/// because segments cover all queries in order.
DYNA_GPU int64_t segmentOf(const AttentionArguments &args, int64_t row) {
  int64_t low = 0, high = args.count;
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    if (args.segments[middle].q_begin <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// Returns how many keys of its segment the query number `index` sees.
DYNA_GPU int64_t seenKeys(const AttentionArguments &args,
                          const dyna_segment &segment, int64_t index) {
  if (!args.causal)
    return segment.kv_len;
  int64_t seen = segment.kv_len - segment.q_len + index + 1;
  return least(most<int64_t>(seen, 0), segment.kv_len);
}

DYNA_GPU KeyRange rangeOf(const AttentionArguments &args, int64_t row) {
  if (row >= args.tq)
    return {0, 0};
  const dyna_segment &segment = args.segments[segmentOf(args, row)];
  int64_t seen = seenKeys(args, segment, row - segment.q_begin);
  if (seen == 0)
    return {0, 0};
  return {static_cast<int32_t>(segment.kv_begin),
          static_cast<int32_t>(segment.kv_begin + seen)};
}

/// Addresses of keys and values, indexed by the numbers of keys.
struct KeyRows {
  const void *k, *v;
  int64_t kStride, vStride;
};

/// Returns the addresses for a key, and for later ones in its tile or block. It
/// selects values, because branches need more registers.
DYNA_GPU KeyRows keyRowsAt(const AttentionArguments &args, int32_t key) {
  const bool isStored = key >= args.tkv;
  const StoreArguments &store = args.store;
  return {isStored ? store.k : args.k, isStored ? store.v : args.v,
          isStored ? store.stride : args.kStride,
          isStored ? store.stride : args.vStride};
}

/// Returns the keys of a block of `size`, by its number. The blocks of the
/// micro-batch come first.
template <int size>
DYNA_GPU KeyRange keysOfBlock(const AttentionArguments &args, int32_t index) {
  const int32_t own = (args.tkv + (size - 1)) / size;
  const int32_t first = index < own ? 0 : args.tkv;
  const int32_t end = index < own ? args.tkv : args.tkv + args.store.rows;
  const int32_t begin = first + (index < own ? index : index - own) * size;
  return {begin, least(begin + size, end)};
}

/// Neighbouring keys that some of the queries [firstRow, endRow) may see, and no
/// others by way of this tile.
struct KeyTile {
  int32_t begin, end;
  int32_t firstRow, endRow;

  /// Returns the keys of the tile that a query with these keys sees.
  DYNA_GPU KeyRange seenBy(int32_t row, KeyRange keys) const {
    if (row < firstRow || row >= endRow)
      return {0, 0};
    return {most(keys.begin, begin), least(keys.end, end)};
  }
};

/// The tiles of at most `size` keys that a block of queries visits. Keys of
/// neighbouring segments that are adjacent are one run, unless the store begins
/// between them. Keys that several segments share are visited once for each
/// run, by its own queries.
template <int size> class KeyTiles {
public:
  DYNA_GPU KeyTiles(const AttentionArguments &args, int32_t firstRow,
                    int32_t endRow)
      : args(args), endRow(endRow),
        segment(args.count > 0 ? static_cast<int32_t>(segmentOf(args, firstRow))
                               : 0) {}

  /// Goes to the first tile. Returns true if there is one.
  DYNA_GPU bool find() { return begin < end || nextRun(); }
  DYNA_GPU bool isThere() const { return begin < end; }
  DYNA_GPU KeyTile tile() const {
    return {begin, least(begin + size, end), runFirst, runEnd};
  }
  /// Goes to the next one.
  DYNA_GPU void advance() {
    begin = least(begin + size, end);
    find();
  }

  /// Visits the tiles in two nested loops, over runs and over their tiles. With
  /// one loop, nvcc would put the surrounding registers on the stack.
  DYNA_GPU bool nextOfRun(KeyTile &next) {
    if (begin >= end)
      return false;
    next = tile();
    begin = next.end;
    return true;
  }
  DYNA_GPU bool nextRun() {
    bool isFound = false;
    for (; segment < args.count; ++segment) {
      const dyna_segment &s = args.segments[segment];
      if (s.q_begin >= endRow)
        break;
      int64_t last = least<int64_t>(s.q_begin + s.q_len, endRow) - 1;
      int64_t seen =
          s.q_len > 0 ? seenKeys(args, s, last - s.q_begin) : int64_t(0);
      if (seen == 0)
        continue;
      if (isFound && (s.kv_begin != end || end == args.tkv))
        break;
      if (!isFound) {
        begin = static_cast<int32_t>(s.kv_begin);
        runFirst = static_cast<int32_t>(s.q_begin);
      }
      isFound = true;
      end = static_cast<int32_t>(s.kv_begin + seen);
      runEnd = static_cast<int32_t>(last + 1);
    }
    return isFound;
  }

private:
  const AttentionArguments &args;
  const int32_t endRow;
  int32_t segment;
  int32_t begin = 0, end = 0; ///< rest of the run
  int32_t runFirst = 0, runEnd = 0;
};

/// Queries that may see some of the keys [begin, end): from the first to the last
/// that do. `bounds` is the block's, of two numbers per thread; the whole block
/// calls it.
template <int threads>
DYNA_GPU KeyRange queriesOf(const AttentionArguments &args, int32_t begin,
                            int32_t end, int32_t (&bounds)[2 * threads]) {
  int32_t first = args.tq, last = 0;
  for (int64_t i = threadIndex(); i < args.count; i += threads) {
    const dyna_segment &s = args.segments[i];
    if (s.q_len == 0 || s.kv_begin >= end || s.kv_begin + s.kv_len <= begin)
      continue;
    int64_t row = s.q_begin;
    if (args.causal) // the first to see key `begin`
      row += most<int64_t>(begin - s.kv_begin - (s.kv_len - s.q_len), 0);
    first = least(first, static_cast<int32_t>(row));
    last = most(last, static_cast<int32_t>(s.q_begin + s.q_len));
  }
  bounds[threadIndex()] = first;
  bounds[threads + threadIndex()] = last;
  for (int step = threads / 2; step > 0; step /= 2) {
    barrier();
    if (threadIndex() < step) {
      int other = threadIndex() + step;
      bounds[threadIndex()] = least(bounds[threadIndex()], bounds[other]);
      bounds[threads + threadIndex()] =
          most(bounds[threads + threadIndex()], bounds[threads + other]);
    }
  }
  barrier();
  return {bounds[0], bounds[threads]};
}

/// Returns whether some query may see some of the keys [begin, end). The whole block
/// calls it, as `queriesOf`, which may come next.
template <int threads>
DYNA_GPU bool areSeen(const AttentionArguments &args, int32_t begin,
                      int32_t end, int32_t (&bounds)[2 * threads]) {
  const KeyRange queries = queriesOf<threads>(args, begin, end, bounds);
  barrier(); // all have read them
  return queries.begin < queries.end;
}

/// Returns whether some of these queries have a segment with this key. A row of the store
/// without one may hold no numbers yet.
DYNA_GPU bool isOfSegment(const AttentionArguments &args, int32_t key,
                          KeyRange queries) {
  for (int64_t i = segmentOf(args, queries.begin); i < args.count; ++i) {
    const dyna_segment &s = args.segments[i];
    if (s.q_begin >= queries.end)
      break;
    if (s.q_len > 0 && key >= s.kv_begin && key < s.kv_begin + s.kv_len)
      return true;
  }
  return false;
}

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONROWS_H
