//===- OutputPaths.h - Checks that no output is an input --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_OUTPUTPATHS_H
#define DYNA_RUNTIME_TRAIN_OUTPUTPATHS_H

#include "runtime/train/flags/CommandLine.h"

namespace dyna {

/// Fails if an output file is also an input, is this program, or is written by
/// two flags. Opens no file.
Status checkOutputPaths(const TrainOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_OUTPUTPATHS_H
