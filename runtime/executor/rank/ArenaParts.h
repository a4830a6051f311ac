//===- ArenaParts.h - Lays out the arena of a rank --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An arena has persistent tensors at one end and the region of plans at the
// other. Between two steps the region is free. When graphs are replaced, the
// tensors of the next graph are placed at the other end of the arena while
// their state is carried there:
//
//     before      | tensors A |             region of plans            |
//     meanwhile   | tensors A | transit   |  free  |     tensors B     |
//     after       |         region of plans        |     tensors B     |
//
// So no state is overwritten before all of it has arrived, and nothing is
// copied twice. At its peak an arena has both sets of tensors and the transit
// buffers of the switch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANK_ARENAPARTS_H
#define DYNA_RUNTIME_EXECUTOR_RANK_ARENAPARTS_H

#include "runtime/base/error/Status.h"

#include <cstdint>

namespace dyna {

/// Offsets count from the start of the arena.
struct ArenaParts {
  int64_t persistent = 0, persistentBytes = 0;
  int64_t region = 0, regionBytes = 0;
  int64_t arenaBytes = 0;
  bool isAtEnd = false; ///< the tensors come after the region

  /// Returns the layout with tensors at the start and a region after them.
  static ArenaParts atStart(int64_t persistentBytes, int64_t regionBytes);
};

/// The next layout of an arena.
struct NextParts {
  ArenaParts parts;
  int64_t transit = 0; ///< place of the transit buffers
};

/// Returns the bytes that an arena needs to change from tensors of `before`
/// bytes to tensors of `behind` bytes, with `transit` bytes of transit buffers.
int64_t bytesToReplace(int64_t before, int64_t behind, int64_t transit);

/// Returns the next layout. Fails with ResourceExhausted, and the need, if the
/// region has no room for the next tensors and the transit buffers.
StatusOr<NextParts> nextParts(const ArenaParts &now, int64_t persistentBytes,
                              int64_t transitBytes);

/// Returns the bytes that the region of plans has at least, with the tensors at
/// either end of the arena. Negative if the arena is too small.
int64_t regionBytesBeside(int64_t arenaBytes, int64_t persistentBytes);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_ARENAPARTS_H
