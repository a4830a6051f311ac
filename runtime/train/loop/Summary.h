//===- Summary.h - The table at the end -------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SUMMARY_H
#define DYNA_RUNTIME_TRAIN_SUMMARY_H

#include "runtime/train/loop/Trainer.h"

#include <string>

namespace dyna {

/// A short table: what was learned, how fast, where it lies.
std::string summaryText(const Session &session, const TrainSummary &summary);

/// The result of --evaluate.
std::string evaluationText(const Session &session,
                           const Evaluation &evaluation);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SUMMARY_H
