//===- Evaluator.h - Losses without training --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_EVALUATOR_H
#define DYNA_RUNTIME_TRAIN_EVALUATOR_H

#include "runtime/train/session/Session.h"

namespace dyna {

struct Evaluation {
  double loss = 0; ///< mean over the targets, in nats
  int64_t tokens = 0;
  int64_t targets = 0;
  double seconds = 0;
  /// Bits per predicted byte; 0 where tokens are not bytes.
  double bitsPerByte = 0;
  /// The signal that ended it early, the same on all processes; 0: none did.
  int stoppedBy = 0;
  /// Why the data could not be read; of a process that could read them, that another one
  /// could not. Nothing else failed then, so that a run can be saved.
  Status failure;
};

/// Returns the signal that any process has got, or 0. All processes ask together:
/// only together can they end, as a plan has exchanges.
StatusOr<int> agreeOnStop(RankTeam &ranks);

/// The loss on `data`, or, if it has many more tokens than `tokenLimit`, on as
/// many samples of it, always the same. Nothing is changed but the arena's
/// dynamic region. Traces and failures name step `done`, the last that was done.
StatusOr<Evaluation> evaluate(Session &session, const SampleIndexPointer &data,
                              int64_t tokenLimit, int64_t done = 0);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_EVALUATOR_H
