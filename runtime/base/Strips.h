//===- Strips.h - Rows of memory that make up a message ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A part of a tensor lies in memory as rows with gaps between them. A message is
// a list of such strips; those of the sender and of the receiver may be cut in
// other ways, as long as they have as many bytes, which go over in their order:
//
//     sender    2 rows of 6 bytes            abcdef ghijkl
//     receiver  3 rows of 2 bytes, 1 of 6    ab cd ef ghijkl
//
// (The `Rows` of Collective.h are offsets that both sides work out from one shape.)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_STRIPS_H
#define DYNA_RUNTIME_BASE_STRIPS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dyna {

/// `count` rows of `bytes` each, from `data` on, one every `stride` bytes. Owns
/// nothing; what is sent is not written.
struct Strip {
  void *data = nullptr;
  int64_t count = 1;
  int64_t bytes = 0;
  int64_t stride = 0; ///< not looked at for one row

  int64_t totalBytes() const { return count * bytes; }
  /// Of what lies without a gap from the begin of a row on.
  int64_t runBytes() const {
    return stride == bytes || count == 1 ? totalBytes() : bytes;
  }
};

int64_t totalBytes(const std::vector<Strip> &strips);

/// Goes through the bytes of strips, run by run.
class StripCursor {
public:
  /// Stands `at` bytes behind the begin; the list must outlive the cursor.
  explicit StripCursor(const std::vector<Strip> &strips, int64_t at = 0)
      : strips_(&strips) {
    settle();
    advance(at);
  }

  char *data() const {
    const Strip &strip = (*strips_)[strip_];
    return static_cast<char *>(strip.data) + row_ * strip.stride + within_;
  }
  /// Bytes that lie without a gap from here on; 0 at the end.
  int64_t left() const {
    return strip_ < strips_->size() ? (*strips_)[strip_].runBytes() - within_
                                    : 0;
  }
  /// Bytes from here to the end of the strip; 0 at the end of the list.
  int64_t stripLeft() const {
    if (strip_ == strips_->size())
      return 0;
    const Strip &strip = (*strips_)[strip_];
    return strip.totalBytes() - row_ * strip.runBytes() - within_;
  }
  /// What lies `rows` rows further on in a strip with gaps; null where that is
  /// behind its end.
  const char *ahead(int64_t rows) const {
    const Strip &strip = (*strips_)[strip_];
    return strip.runBytes() == strip.bytes && row_ + rows < strip.count
               ? data() + rows * strip.stride
               : nullptr;
  }
  /// By no more than is left of the whole list. O(strips passed).
  void advance(int64_t bytes);

private:
  /// Passes strips without bytes.
  void settle() {
    while (strip_ < strips_->size() && (*strips_)[strip_].totalBytes() == 0)
      ++strip_;
  }

  const std::vector<Strip> *strips_;
  size_t strip_ = 0;
  int64_t row_ = 0, within_ = 0; ///< in a run
};

/// Orders what `placeRun` has written before all that this thread does next.
void settleRuns();

/// Asks for the lines of a row of middling length, which is read soon: the
/// processor's own prefetching begins anew with every row, since it ends with the
/// page, or the row before it. Of longer rows that is little, shorter ones are
/// fetched as fast without.
inline void fetchRow(const char *row, int64_t bytes) {
  constexpr int64_t least = 256, most = 4096, line = 64;
  if (row && bytes >= least && bytes <= most)
    for (int64_t at = 0; at < bytes; at += line)
      __builtin_prefetch(row + at);
}

/// Calls `body(from, to, bytes)` for the runs that make up the next `bytes` of
/// both, which are passed.
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

/// What is to be done with bytes that come: they replace what is there, or their
/// elements (DYNA_ELEMENT_*) are added to it, bf16 rounded once.
constexpr int32_t kReplaces = -1;
void placeRun(int32_t addedAs, const char *from, char *to, int64_t bytes);

/// Brings all of `source` to `target`, in host memory. The two have as many bytes
/// and do not overlap.
void placeStrips(int32_t addedAs, const std::vector<Strip> &source,
                 const std::vector<Strip> &target);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_STRIPS_H
