//===- Strips.cpp - Describes messages of rows in memory ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/wire/Strips.h"

#include "runtime/base/wire/Reduction.h"

#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace dyna {

int64_t totalBytes(const std::vector<Strip> &strips) {
  int64_t bytes = 0;
  for (const Strip &strip : strips)
    bytes += strip.totalBytes();
  return bytes;
}

void StripCursor::advance(int64_t bytes) {
  while (bytes > 0) {
    const Strip &strip = (*strips_)[strip_];
    const int64_t run = strip.runBytes();
    if (const int64_t rest = stripLeft(); bytes >= rest) {
      bytes -= rest;
      ++strip_;
      row_ = within_ = 0;
      settle();
      continue;
    }
    within_ += bytes;
    row_ += within_ / run;
    within_ %= run;
    return;
  }
}

void settleRuns() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Copies a row of middling length. Long runs go by memcpy, which does not fetch
/// the lines that it overwrites; for these it would, half as much traffic again.
static void copyRow(const char *from, char *to, int64_t bytes) {
#if defined(__x86_64__)
  constexpr int64_t least = 256, most = 4096, line = 64;
  if (bytes >= least && bytes <= most) {
    const int64_t head = -reinterpret_cast<intptr_t>(to) & (line - 1);
    memcpy(to, from, static_cast<size_t>(head));
    int64_t at = head;
    for (; at + line <= bytes; at += line) {
      const auto *read = reinterpret_cast<const __m128i *>(from + at);
      auto *written = reinterpret_cast<__m128i *>(to + at);
      const __m128i a = _mm_loadu_si128(read), b = _mm_loadu_si128(read + 1),
                    c = _mm_loadu_si128(read + 2),
                    d = _mm_loadu_si128(read + 3);
      _mm_stream_si128(written, a);
      _mm_stream_si128(written + 1, b);
      _mm_stream_si128(written + 2, c);
      _mm_stream_si128(written + 3, d);
    }
    memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
    return;
  }
#endif
  memcpy(to, from, static_cast<size_t>(bytes));
}

void placeRun(int32_t addedAs, const char *from, char *to, int64_t bytes) {
  if (addedAs == kReplaces) {
    copyRow(from, to, bytes);
    return;
  }
  const void *sources[] = {to, from};
  void *target = to;
  reduceElements(addedAs, DYNA_REDUCE_SUM, sources, 2, &target, 1,
                 bytes / elementBytes(addedAs));
}

void placeStrips(int32_t addedAs, const std::vector<Strip> &source,
                 const std::vector<Strip> &target) {
  StripCursor from(source), to(target);
  forEachRun(from, to, totalBytes(source),
             [&](const char *read, char *written, int64_t bytes) {
               placeRun(addedAs, read, written, bytes);
             });
}

} // namespace dyna
