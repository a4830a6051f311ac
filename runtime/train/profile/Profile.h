//===- Profile.h - Measures the times of layer functions --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --profile writes the file that --costs reads. Layer functions run as in
// training, as instructions of plans, and the clock of traces times them.
//
// Every rank of the strategy works, as in a run. Ranks share the memory and the
// clock rate of their machine, so a function is slower beside others than
// alone. Stages become replicas, however (pp=2 runs as dp=2 of one stage), so
// that all ranks run the same function at once. The model is reduced to the
// layers of each kind that a stage has, at least one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROFILE_H
#define DYNA_RUNTIME_TRAIN_PROFILE_H

#include "runtime/abi/Abi.h"
#include "runtime/plan/model/Model.h"
#include "runtime/train/flags/TrainOptions.h"

namespace dyna {

/// Returns a chain of the first layer, the last one, and at most `most` layers
/// of each kind between them. Returns the model itself if such a chain is not
/// valid.
StatusOr<Model> thinModel(const Model &model, int most);

/// Measures for --profile-seconds, but at least one micro-batch, and writes the
/// file. Entries of other tensor degrees stay in it. If a signal ends it,
/// nothing is written and `stoppedBy` is the signal's number. Fails before it
/// measures if the file cannot be written, or has other contents than costs of
/// this model in its compute type.
Status profile(const dyna_program &program, const Model &model,
               TrainOptions options, int &stoppedBy);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILE_H
