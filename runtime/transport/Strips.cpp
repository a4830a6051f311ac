//===- Strips.cpp - Rows of memory that make up a message -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/Strips.h"

#include "runtime/transport/Collective.h"
#include "runtime/transport/Reduction.h"

#include <cstring>

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
    const int64_t rest = strip.totalBytes() - row_ * run - within_;
    if (bytes >= rest) {
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

void placeRun(int32_t addedAs, const char *from, char *to, int64_t bytes) {
  if (addedAs == kReplaces) {
    memcpy(to, from, static_cast<size_t>(bytes));
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
