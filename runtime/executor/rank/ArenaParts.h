//===- ArenaParts.h - Lays out the arena of a rank --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An arena has persistent tensors at one end and the region of plans behind or before
// them. Between two steps the region is free. When graphs are replaced, the tensors of
// the next graph lie at the other end of the arena while their state is carried there:
//
//     before      | tensors A |             region of plans            |
//     meanwhile   | tensors A | passed on |  free  |     tensors B     |
//     behind      |         region of plans        |     tensors B     |
//
// So no state is overwritten before all of it has arrived, and nothing is copied twice.
// At its peak an arena has both sets of tensors and what the switch passes on.
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
  bool isAtEnd = false; ///< the tensors lie behind the region

  /// Tensors at the start, and a region of so many bytes behind them.
  static ArenaParts atStart(int64_t persistentBytes, int64_t regionBytes);
};

/// The next layout of an arena.
struct NextParts {
  ArenaParts parts;
  int64_t transit = 0; ///< where data lies that the switch passes on
};

/// Bytes that an arena needs to change from tensors of `before` bytes to tensors of
/// `behind` bytes, while a switch passes on `transit` bytes.
int64_t bytesToReplace(int64_t before, int64_t behind, int64_t transit);

/// Returns the next layout, or ResourceExhausted if the region has no room for the
/// next tensors and what is passed on. The message says what is needed.
StatusOr<NextParts> nextParts(const ArenaParts &now, int64_t persistentBytes,
                              int64_t transitBytes);

/// Returns a number of bytes that the region of plans has at least, whichever end of the
/// arena the tensors are at. Negative if the arena is too small.
int64_t regionBytesBeside(int64_t arenaBytes, int64_t persistentBytes);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_ARENAPARTS_H
