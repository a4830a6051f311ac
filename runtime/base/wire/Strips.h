//===- Strips.h - Describes messages of rows in memory ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A part of a tensor lies in memory as rows with gaps between them. A message
// is a list of such strips. Sender and receiver may cut it differently, if
// their bytes are equally many. The bytes arrive in their order:
//
//     sender    2 rows of 6 bytes            abcdef ghijkl
//     receiver  3 rows of 2 bytes, 1 of 6    ab cd ef ghijkl
//
// (The `Rows` of Collective.h are offsets that both sides compute from one
// shape.)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_WIRE_STRIPS_H
#define DYNA_RUNTIME_BASE_WIRE_STRIPS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dyna {

/// `count` rows of `bytes` each, from `data` on, one every `stride` bytes. Owns
/// nothing. Sent rows are only read.
struct Strip {
  void *data = nullptr;
  int64_t count = 1;
  int64_t bytes = 0;
  int64_t stride = 0; ///< ignored for one row

  int64_t totalBytes() const { return count * bytes; }
  /// Returns the bytes without a gap from the begin of a row on.
  int64_t runBytes() const {
    return stride == bytes || count == 1 ? totalBytes() : bytes;
  }
};

int64_t totalBytes(const std::vector<Strip> &strips);

/// Visits the bytes of strips, run by run.
class StripCursor {
public:
  /// Starts `at` bytes after the begin; the list must outlive the cursor.
  explicit StripCursor(const std::vector<Strip> &strips, int64_t at = 0)
      : strips_(&strips) {
    settle();
    advance(at);
  }

  char *data() const {
    const Strip &strip = (*strips_)[strip_];
    return static_cast<char *>(strip.data) + row_ * strip.stride + within_;
  }
  /// Returns the bytes without a gap from here on; 0 at the end.
  int64_t left() const {
    return strip_ < strips_->size() ? (*strips_)[strip_].runBytes() - within_
                                    : 0;
  }
  /// Returns the bytes from here to the end of the strip; 0 at the end of the
  /// list.
  int64_t stripLeft() const {
    if (strip_ == strips_->size())
      return 0;
    const Strip &strip = (*strips_)[strip_];
    return strip.totalBytes() - row_ * strip.runBytes() - within_;
  }
  /// Returns the address `rows` rows further on in a strip with gaps; null if
  /// that is past its end.
  const char *ahead(int64_t rows) const {
    const Strip &strip = (*strips_)[strip_];
    return strip.runBytes() == strip.bytes && row_ + rows < strip.count
               ? data() + rows * strip.stride
               : nullptr;
  }
  /// Moves forward, by at most the rest of the list. O(strips passed).
  void advance(int64_t bytes);

private:
  /// Skips strips without bytes.
  void settle() {
    while (strip_ < strips_->size() && (*strips_)[strip_].totalBytes() == 0)
      ++strip_;
  }

  const std::vector<Strip> *strips_;
  size_t strip_ = 0;
  int64_t row_ = 0, within_ = 0; ///< in a run
};

/// Orders the writes of `placeRun` before all later work of this thread.
void settleRuns();

/// Prefetches a row of medium length that will be read soon. The processor's
/// own prefetching starts anew with every row, since it ends with the page or
/// with the row before. For long rows that is a small part, and short rows are
/// as fast without prefetching.
inline void fetchRow(const char *row, int64_t bytes) {
  constexpr int64_t least = 256, most = 4096, line = 64;
  if (row && bytes >= least && bytes <= most)
    for (int64_t at = 0; at < bytes; at += line)
      __builtin_prefetch(row + at);
}

/// Calls `body(from, to, bytes)` for the runs of the next `bytes` of both
/// cursors, and moves both past them.
template <typename Body>
void forEachRun(StripCursor &source, StripCursor &target, int64_t bytes,
                Body &&body) {
  while (bytes > 0) {
    constexpr int64_t rowsAhead = 2;
    const int64_t run = std::min({bytes, source.left(), target.left()});
    fetchRow(source.ahead(rowsAhead), run);
    body(static_cast<const char *>(source.data()), target.data(), run);
    source.advance(run);
    target.advance(run);
    bytes -= run;
  }
  settleRuns();
}

/// Places received bytes. They replace the target (kReplaces), or their
/// elements (DYNA_ELEMENT_*) are added to it, with bf16 rounded once.
constexpr int32_t kReplaces = -1;
void placeRun(int32_t addedAs, const char *from, char *to, int64_t bytes);

/// Copies all of `source` to `target`, in host memory. Both have the same
/// number of bytes and do not overlap.
void placeStrips(int32_t addedAs, const std::vector<Strip> &source,
                 const std::vector<Strip> &target);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_WIRE_STRIPS_H
