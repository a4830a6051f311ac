//===- AttentionRows.h - Which keys a query sees ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work is dealt by rows of the micro-batch, whatever segments they are of: a block
// has so many neighbouring queries (or keys), and each query knows its keys. Short
// segments share a tile, long ones fill many, and no table is made for it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONROWS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONROWS_H

#include "runtime/device/cuda/kernels/Elements.h"

namespace dyna {
namespace gpu {

/// The segment of a query: the last that begins at or before it, since segments
/// cover all queries in order.
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

/// How many keys of its segment the query number `index` of it sees.
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

/// Neighbouring keys that some of the queries [firstRow, endRow) may see, and no
/// others by way of this tile.
struct KeyTile {
  int32_t begin, end;
  int32_t firstRow, endRow;

  /// What a query with these keys sees of the tile.
  DYNA_GPU KeyRange seenBy(int32_t row, KeyRange keys) const {
    if (row < firstRow || row >= endRow)
      return {0, 0};
    return {most(keys.begin, begin), least(keys.end, end)};
  }
};

/// The tiles of at most `size` keys that a block of queries visits. Keys of
/// neighbouring segments that lie side by side are one run; those that several
/// segments share are visited once for each run, by its own queries.
template <int size> class KeyTiles {
public:
  DYNA_GPU KeyTiles(const AttentionArguments &args, int32_t firstRow,
                    int32_t endRow)
      : args(args), endRow(endRow),
        segment(args.count > 0 ? static_cast<int32_t>(segmentOf(args, firstRow))
                               : 0) {}

  /// Goes to the first tile; whether there is one.
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

  /// The same in two loops, of runs and of their tiles: what is in registers
  /// around one loop of both, nvcc puts on the stack.
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
      if (isFound && s.kv_begin != end)
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
  int32_t begin = 0, end = 0; ///< what is left of the run
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

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONROWS_H
