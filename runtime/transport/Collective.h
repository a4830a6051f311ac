//===- Collective.h - Describes collectives as copies of rows ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All backends share this form of the exchanges of runtime/abi/Collectives.h.
// Moving data needs the answer to one question. Which rows of rank `from` go to
// rank `to`, and to which rows there?
//
// Example: all_gather of [outer 2, split 5, inner 3] over 2 ranks. Rank 1 holds
// [2, 2, 3], rows 3 and 4 of the split dimension. Its two runs of 6 elements
// lie at 0 and 6 of its part, and at 9 and 24 of the whole on every rank:
//
//   sourceRows(1, 0)   offset 0, 2 runs every  6, of 6 elements
//   targetRows(1, 0)   offset 9, 2 runs every 15, of 6 elements
//
// (Offsets are in bytes.) Two levels of strides are enough for all exchanges.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_COLLECTIVE_H
#define DYNA_RUNTIME_TRANSPORT_COLLECTIVE_H

#include "runtime/abi/Collectives.h"
#include "runtime/base/error/Status.h"
#include "runtime/base/wire/Reduction.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dyna {

enum class CollectiveKind {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  /// Moves nothing; is done when every rank has started it.
  Barrier,
};
constexpr int kCollectiveKinds = 5;

/// Returns the function's name in the ABI: "all_reduce", ...
const char *nameOf(CollectiveKind kind);

/// Runs of bytes in a buffer: [outer][inner] runs, each `bytes` long.
struct Rows {
  int64_t offset = 0;
  int64_t outer = 0, outerStride = 0;
  int64_t inner = 0, innerStride = 0;
  int64_t bytes = 0;

  int64_t totalBytes() const { return outer * inner * bytes; }
};

/// Returns the same runs laid end to end at `offset`.
Rows packed(const Rows &rows, int64_t offset);

/// One exchange of a group. The whole tensor is [outer, first, middle, second,
/// inner]; all but all_to_all split `first` only and have middle = second = 1.
struct Collective {
  CollectiveKind kind = CollectiveKind::Barrier;
  int32_t element = DYNA_ELEMENT_F32;
  int32_t reduction = DYNA_REDUCE_SUM;
  bool secondToFirst = false;
  const void *in = nullptr;
  void *out = nullptr;
  int64_t outer = 0, first = 0, middle = 1, second = 1, inner = 0;

  static Collective barrier() { return Collective(); }
  /// Describes a collective; `kind` is any but AllToAll. `collective.group` is
  /// ignored.
  static Collective of(CollectiveKind kind, const dyna_collective &collective);
  static Collective of(const dyna_transposition &transposition);
  /// Describes a collective over `count` elements: a split tensor [1, count,
  /// 1].
  static Collective flat(CollectiveKind kind, const void *in, void *out,
                         int64_t count, int32_t element,
                         int32_t reduction = DYNA_REDUCE_SUM);

  bool isReduction() const {
    return kind == CollectiveKind::AllReduce ||
           kind == CollectiveKind::ReduceScatter;
  }
  int64_t wholeElements() const {
    return outer * first * middle * second * inner;
  }
  /// Return the bytes of `in` and `out` on the rank at `index` of a group of
  /// `size`.
  int64_t inBytes(int size, int index) const;
  int64_t outBytes(int size, int index) const;

  /// Return the rows of `in` on rank `from` that rank `to` needs, and their
  /// position in `out` of rank `to`. Under a reduction the rows of all `from`
  /// have the same position. An all_reduce counts as a reduction of part `to`,
  /// whose result goes to every rank.
  Rows sourceRows(int size, int from, int to) const;
  Rows targetRows(int size, int from, int to) const;
  /// Returns the bytes that leave the rank at `index`, sent straight to the
  /// ranks that need them.
  int64_t sentBytes(int size, int index) const;

  /// Returns true if ranks that call this agree with ranks that call `other`.
  bool agreesWith(const Collective &other) const;
  /// Returns text such as "all_gather of f32 [2, 5, 3]".
  std::string describe() const;
};

/// Returns text such as "all_gather of f32 [2, 5, 3] with all_reduce (sum) of
/// f64 [1, 7, 1]".
std::string describeAll(const std::vector<Collective> &collectives);

/// Refuses null pointers, negative or overflowing sizes, unknown types.
Status checkCollective(const Collective &collective, int size, int index);

/// Calls `body(sourceOffset, targetOffset, bytes)` for the runs of two equal
/// shapes, within [begin, end) of their bytes laid end to end.
template <typename Body>
void forEachRun(const Rows &source, const Rows &target, int64_t begin,
                int64_t end, Body &&body) {
  while (begin < end) {
    int64_t run = begin / source.bytes, within = begin % source.bytes;
    int64_t i = run / source.inner, j = run % source.inner;
    int64_t bytes = source.bytes - within;
    if (bytes > end - begin)
      bytes = end - begin;
    body(source.offset + i * source.outerStride + j * source.innerStride +
             within,
         target.offset + i * target.outerStride + j * target.innerStride +
             within,
         bytes);
    begin += bytes;
  }
}

/// Joins runs that follow each other without a gap on both sides.
void mergeRuns(Rows &source, Rows &target);

/// Copies all rows, from `source` + its offsets to `target` + its offsets.
void copyRows(const void *source, Rows sourceRows, void *target,
              Rows targetRows);

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_COLLECTIVE_H
