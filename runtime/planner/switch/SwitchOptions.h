//===- SwitchOptions.h - Limits switch plans --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHOPTIONS_H
#define DYNA_RUNTIME_PLANNER_SWITCHOPTIONS_H

#include "runtime/sim/SwitchNetwork.h"

#include <cstdint>

namespace dyna {

struct SwitchOptions {
  /// Limit of the bytes that a rank sends, and receives, in a bucket. A single
  /// transfer may exceed it. The number of its transfers, local ones included,
  /// has a limit too.
  int64_t bucketBytes = int64_t{256} << 20;
  int64_t bucketTransfers = 4096;
  /// Bytes that a rank may send, or receive, at one time: in buckets that it has begun
  /// and not ended. A larger bucket goes alone.
  int64_t bytesUnderWay = kBytesUnderWay;
  /// Bytes below which a box is not cut to balance loads.
  int64_t smallestPiece = int64_t{256} << 10;
  /// Largest number of sweeps that search all routes again. The search ends
  /// earlier if they no longer improve.
  int sweeps = 16;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHOPTIONS_H
