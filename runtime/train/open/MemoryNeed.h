//===- MemoryNeed.h - Adds up the memory that a run needs -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The system kills a process that needs too much memory, without a message to
// its user. So a run adds up its need before it allocates anything. Parameters
// and the dynamic region are exact, and mini-batches are estimated.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_MEMORYNEED_H
#define DYNA_RUNTIME_TRAIN_MEMORYNEED_H

#include "runtime/plan/model/Model.h"
#include "runtime/planner/request/PlanOptions.h"
#include "runtime/train/flags/CommandLine.h"

namespace dyna {

struct MemoryNeed {
  int64_t persistent = 0; ///< parameters, gradients, optimizer state
  int64_t dynamic = 0;    ///< the arena's region for micro-batches
  int64_t batches = 0;    ///< mini-batches in host memory, with their plans
  int64_t data = 0;       ///< tables of documents and samples
  int64_t files = 0;      ///< buffers for saving and loading
  int64_t program = 0;    ///< the program and its libraries
  bool isAll = true; ///< the sum is the whole need, not only the known part
  bool isLowered = false; ///< it would fit with a lower --rank-memory
  /// Bytes that are still to be allocated: all but the program.
  int64_t toTake() const {
    return persistent + dynamic + batches + data + files;
  }
  int64_t total() const { return toTake() + program; }
};

/// Returns the memory of the program and its libraries, of which `resident`
/// bytes are in use at the start. Rounds up to large steps, so that the number
/// is the same in every run.
int64_t programBytes(int64_t resident);

/// Estimates the host memory of a mini-batch of `tokens` in samples of
/// `meanTokens` on average. Counts the samples, the plan, and what is staged
/// for the device.
int64_t estimateBatchBytes(const Model &model, const PlanOptions &options,
                           int64_t tokens, double meanTokens);

/// Fails if `need` exceeds the `available` bytes (-1: unknown) or
/// --memory-limit. The message names the largest part, the flag that lowers it,
/// and a limit that is enough.
Status checkMemoryNeed(const MemoryNeed &need, const TrainOptions &options,
                       int64_t available);

/// Returns the largest device memory that staged micro-batches of the steps in
/// flight may need. They are staged before they are copied to their places in
/// arenas (RankMachine).
int64_t stagedOnDevice(const Model &model, int64_t tokens, double meanTokens);

struct DeviceMemory {
  int64_t free = -1;  ///< -1: not known
  int64_t staged = 0; ///< part of `free`, from stagedOnDevice
  /// Bytes of the region for the smallest micro-batch: one token, with
  /// everything recomputed. These bytes are workspaces. 0: not known.
  int64_t leastDynamic = 0;
  /// The user has not set the size of micro-batches, so --rank-memory can make
  /// them smaller.
  bool isSizeOpen = false;
  /// Returns the bytes that an arena may use; -1 if not known. A 32nd of the
  /// free memory, or `staged` if that is more, is kept back. It holds staged
  /// micro-batches, results for the host and the allocator's overhead.
  int64_t room() const;
};

/// Fails if `persistent` and `dynamic` bytes do not fit the room on a device.
/// The message gives the missing bytes and the flag that lowers the need.
Status checkDeviceNeed(int64_t persistent, int64_t dynamic,
                       const TrainOptions &options, const DeviceMemory &memory);

/// Fails if the address limits of this process leave too few addresses (-1: no
/// limit). The need is `need`, the stacks of `threads` more threads, and an
/// allowance for libraries. Some libraries end the process without an error
/// when addresses run out.
Status checkAddressNeed(const MemoryNeed &need, int64_t threads,
                        int64_t addressesOfThread, int64_t available);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_MEMORYNEED_H
