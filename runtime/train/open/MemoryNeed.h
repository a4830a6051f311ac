//===- MemoryNeed.h - What a run will take, before it takes it --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A machine without enough memory kills the process that asks for it, with no
// word to its user. So a run adds up what it needs before it takes anything:
// parameters and the dynamic region exactly, mini-batches by an estimate.
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
  int64_t files = 0;      ///< what saving and loading take for a while
  int64_t program = 0;    ///< the program and its libraries
  bool isAll = true;      ///< what is known is the whole need
  bool isLowered = false; ///< it would fit with less --rank-memory
  /// Bytes that are still to be allocated: all but the program.
  int64_t toTake() const {
    return persistent + dynamic + batches + data + files;
  }
  int64_t total() const { return toTake() + program; }
};

/// Memory of the program and its libraries, of which `resident` bytes are there at
/// the start. In large steps, so that it does not differ from run to run.
int64_t programBytes(int64_t resident);

/// Host memory of a mini-batch of `tokens`: its samples of `meanTokens` on
/// average, its plan, and what is staged for the device.
int64_t estimateBatchBytes(const Model &model, const PlanOptions &options,
                           int64_t tokens, double meanTokens);

/// Whether `need` fits what is `available` (-1: unknown) and --memory-limit;
/// the failure says what takes most, which flag lowers it and what limit is enough.
Status checkMemoryNeed(const MemoryNeed &need, const TrainOptions &options,
                       int64_t available);

/// Memory on a device that micro-batches of the steps in flight come to before they
/// go to their places in arenas (RankMachine), as much as it may grow to.
int64_t stagedOnDevice(const Model &model, int64_t tokens, double meanTokens);

struct DeviceMemory {
  int64_t free = -1;  ///< -1: not known
  int64_t staged = 0; ///< of it, stagedOnDevice
  /// Of micro-batches those that take least: of one token, all computed again. What
  /// they take are workspaces; 0: not known.
  int64_t leastDynamic = 0;
  /// Nobody has said how large micro-batches are: with --rank-memory they become
  /// as small as it asks for.
  bool isSizeOpen = false;
  /// What an arena may take; the rest, a 32nd or `staged` where that is more, is
  /// for what is staged there, what steps leave for the host, and how memory is
  /// dealt. -1: not known.
  int64_t room() const;
};

/// Whether `persistent` and `dynamic` bytes fit the room that there is on a device;
/// the failure says what is missing and which flag lowers it.
Status checkDeviceNeed(int64_t persistent, int64_t dynamic,
                       const TrainOptions &options, const DeviceMemory &memory);

/// Whether the addresses that the limits of this process leave (-1: there is no
/// limit) hold `need`, the stacks of as many threads more, and what libraries
/// take for themselves. Some of these have no way to say that there is none
/// left, but end the process.
Status checkAddressNeed(const MemoryNeed &need, int64_t threads,
                        int64_t addressesOfThread, int64_t available);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_MEMORYNEED_H
