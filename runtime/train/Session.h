//===- Session.h - One run of a compiled binary -----------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What training and evaluation share: program, device, executor and data, set
// up from the flags.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SESSION_H
#define DYNA_RUNTIME_TRAIN_SESSION_H

#include "runtime/data/BatchReader.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/planner/PlanSingleRank.h"
#include "runtime/train/CommandLine.h"

#include <memory>

namespace dyna {

struct Session {
  TrainOptions options;
  const ManifestView *view = nullptr;
  const dyna_variant *variant = nullptr;
  std::unique_ptr<HostDevice> device;
  TraceRecorder trace;
  PlanOptions planOptions;
  std::unique_ptr<Executor> executor;
  DatasetPointer data;
  DatasetPointer heldOut; ///< null: none

  /// Longest sample: what positions and micro-batches allow.
  int64_t sampleLimit() const;
  BatchOptions batchOptions() const;
  /// Arena and the kernels' own scratch.
  int64_t peakBytes() const {
    return executor->arenaBytes() + device->scratchBytes();
  }
};

/// Chooses the variant, opens the data, works out micro-batches and memory, and
/// takes the arena. Parameters are not set yet.
Status openSession(const dyna_program &program, const ManifestView &view,
                   const TrainOptions &options, bool training,
                   Session &session);

/// Lengths of the samples, as planners take them.
std::vector<int64_t> sampleLengths(const MiniBatch &miniBatch);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SESSION_H
