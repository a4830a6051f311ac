//===- OutputPaths.h - Outputs are no inputs ------------------ -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_OUTPUTPATHS_H
#define DYNA_RUNTIME_TRAIN_OUTPUTPATHS_H

#include "runtime/train/flags/CommandLine.h"

namespace dyna {

/// Fails if a file that would be written is one that is read, is this program,
/// or is to be written twice; nothing is opened.
Status checkOutputPaths(const TrainOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_OUTPUTPATHS_H
