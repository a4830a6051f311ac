//===- LearningRate.h - Computes the learning rate of a step ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_LEARNINGRATE_H
#define DYNA_RUNTIME_TRAIN_LEARNINGRATE_H

#include "runtime/abi/Abi.h"
#include "runtime/train/flags/CommandLine.h"

namespace dyna {

/// Returns the learning rate of `step` (from 0): linear warm-up, then the
/// schedule from --lr to --min-lr. It depends on the flags and the step alone,
/// so a resumed run continues it exactly.
double learningRate(const TrainOptions &options, int64_t step);

/// Returns all scalars of AdamW at `step`.
dyna_optimizer optimizerAt(const TrainOptions &options, int64_t step);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_LEARNINGRATE_H
