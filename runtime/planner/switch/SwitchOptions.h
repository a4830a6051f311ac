//===- SwitchOptions.h - Limits of switch plans -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHOPTIONS_H
#define DYNA_RUNTIME_PLANNER_SWITCHOPTIONS_H

#include "runtime/sim/SwitchNetwork.h"

#include <cstdint>

namespace dyna {

struct SwitchOptions {
  /// What a rank sends, and receives, in a bucket: at most so much, unless one
  /// transfer alone is more; and so many transfers, those to itself too.
  int64_t bucketBytes = int64_t{256} << 20;
  int64_t bucketTransfers = 4096;
  /// Bytes that a rank may send, or receive, at one time: in buckets that it has begun
  /// and not ended. A larger bucket goes alone.
  int64_t bytesUnderWay = kBytesUnderWay;
  /// Bytes below which a box is not cut for the sake of balance.
  int64_t smallestPiece = int64_t{256} << 10;
  /// Times that all ways are sought anew, at most. The search ends earlier if they get
  /// no better.
  int sweeps = 16;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHOPTIONS_H
