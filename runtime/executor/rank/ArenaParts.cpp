//===- ArenaParts.cpp - Lays out the arena of a rank ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/ArenaParts.h"

#include "runtime/base/text/Text.h"

namespace dyna {

static constexpr int64_t pageBytes = 4096;

static int64_t pagesUp(int64_t bytes) {
  return (bytes + pageBytes - 1) / pageBytes * pageBytes;
}
static int64_t pagesDown(int64_t bytes) {
  return bytes / pageBytes * pageBytes;
}

ArenaParts ArenaParts::atStart(int64_t persistentBytes, int64_t regionBytes) {
  const int64_t region = pagesUp(persistentBytes);
  return {0,
          persistentBytes,
          region,
          regionBytes,
          region + regionBytes,
          /*isAtEnd=*/false};
}

int64_t bytesToReplace(int64_t before, int64_t behind, int64_t transit) {
  // Add a page, because neither end of the arena need be the end of a page.
  return pagesUp(before) + pagesUp(behind) + pagesUp(transit) + pageBytes;
}

StatusOr<NextParts> nextParts(const ArenaParts &now, int64_t persistentBytes,
                              int64_t transitBytes) {
  const int64_t arena = now.arenaBytes;
  NextParts next;
  next.parts.arenaBytes = arena;
  next.parts.persistentBytes = persistentBytes;
  bool fits = false;
  next.parts.isAtEnd = !now.isAtEnd;
  if (next.parts.isAtEnd) {
    const int64_t begin = pagesDown(arena - persistentBytes);
    next.transit = now.region;
    next.parts.persistent = begin;
    next.parts.region = 0;
    next.parts.regionBytes = begin;
    fits = persistentBytes <= arena && begin >= now.region + transitBytes;
  } else {
    next.transit = pagesUp(persistentBytes);
    next.parts.region = next.transit;
    next.parts.regionBytes = arena - next.transit;
    fits = next.transit + transitBytes <= now.persistent;
  }
  if (fits)
    return next;
  return Status::resourceExhausted(formatText(
      "needs %s: %s for the tensors that there are, %s for the next ones and "
      "%s for what is passed on meanwhile; but the rank took %s",
      formatBytes(
          bytesToReplace(now.persistentBytes, persistentBytes, transitBytes)),
      formatBytes(now.persistentBytes), formatBytes(persistentBytes),
      formatBytes(transitBytes), formatBytes(arena)));
}

int64_t regionBytesBeside(int64_t arenaBytes, int64_t persistentBytes) {
  return pagesDown(arenaBytes) - pagesUp(persistentBytes);
}

} // namespace dyna
