//===- Summary.h - Writes the table at the end of a run ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SUMMARY_H
#define DYNA_RUNTIME_TRAIN_SUMMARY_H

#include "runtime/train/loop/Trainer.h"

#include <string>

namespace dyna {

/// Returns a short table: losses, speed, and where the results were saved.
std::string summaryText(const Session &session, const TrainSummary &summary);

/// Returns the result of --evaluate as text.
std::string evaluationText(const Session &session,
                           const Evaluation &evaluation);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SUMMARY_H
