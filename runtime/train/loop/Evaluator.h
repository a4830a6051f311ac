//===- Evaluator.h - Computes losses without training -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_EVALUATOR_H
#define DYNA_RUNTIME_TRAIN_EVALUATOR_H

#include "runtime/train/files/Metrics.h"
#include "runtime/train/session/Session.h"

namespace dyna {

struct Evaluation {
  /// Mean over the targets, in nats. In a model with exits, losses count with
  /// their weights.
  double loss = 0;
  int64_t tokens = 0;
  int64_t targets = 0;
  double seconds = 0;
  /// Bits per predicted byte; 0 if tokens are not bytes.
  double bitsPerByte = 0;
  /// Signal that ended the evaluation early, the same on all processes; 0 if
  /// none did.
  int stoppedBy = 0;
  /// Why the data could not be read, here or on another process. Nothing else
  /// failed then, so the run can still be saved.
  Status failure;
  LayerLosses losses;

  /// Returns the loss of the last layer.
  double headLoss() const {
    return losses.empty() ? loss : losses.back().second;
  }
};

/// Returns the signal that any process has received, or 0. All processes call
/// it. They must end together, because a plan has exchanges.
StatusOr<int> agreeOnStop(RankTeam &ranks);

/// Computes the loss on `data`. If `data` has many more tokens than
/// `tokenLimit`, uses a fixed subset of its samples. Changes nothing but the
/// dynamic region of arenas. Traces and failures name step `done`, the last one
/// that was done.
StatusOr<Evaluation> evaluate(Session &session, const SampleIndexPointer &data,
                              int64_t tokenLimit, int64_t done = 0);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_EVALUATOR_H
