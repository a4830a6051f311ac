//===- Profile.h - Measuring what layer functions take -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --profile: writes the file that --costs reads. Layer functions run as they do in
// training, as instructions of plans, and the clock of traces times them.
//
// Every rank of the strategy is there and works, as in a run: ranks share the
// memory and the clock rate of their machine, so a function takes longer beside
// others than alone. Stages become replicas, though (pp=2 runs as dp=2 of one
// stage), so that all ranks run the same function at once; and the model has no
// more layers of a kind than a stage has, at least one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROFILE_H
#define DYNA_RUNTIME_TRAIN_PROFILE_H

#include "runtime/abi/Abi.h"
#include "runtime/plan/model/Model.h"
#include "runtime/train/flags/TrainOptions.h"

namespace dyna {

/// A model of the first layer, the last one, and of each kind between them at most
/// `most` layers, or the model itself where that is no chain.
StatusOr<Model> thinModel(const Model &model, int most);

/// Measures for --profile-seconds, but at least one micro-batch, and writes the
/// file; entries of other tensor degrees stay in it. `stoppedBy`: a signal's
/// number, upon which nothing is written. Fails before anything is measured where
/// the file could not be written, or holds something else than costs of this
/// model in its compute type.
Status profile(const dyna_program &program, const Model &model,
               TrainOptions options, int &stoppedBy);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILE_H
