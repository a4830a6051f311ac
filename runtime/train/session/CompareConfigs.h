//===- CompareConfigs.h - Compares config.json of checkpoint and model ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_COMPARECONFIGS_H
#define DYNA_RUNTIME_TRAIN_COMPARECONFIGS_H

#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/plan/model/Model.h"

#include <string>

namespace dyna {

/// Returns the differences between the configurations of the checkpoint and of
/// this program, such as "n_head is 6 there and 5 here". Compares fields that
/// change how a model computes, if both have them, because the tensors may fit
/// both. Empty if there are none or if they are not known.
std::string otherConfig(const Checkpoint &checkpoint, const Model &model);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_COMPARECONFIGS_H
