//===- Program.h - Runs the program that a model is compiled into ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROGRAM_H
#define DYNA_RUNTIME_TRAIN_PROGRAM_H

#include "runtime/abi/Abi.h"

namespace dyna {

/// Implements `main` of a compiled binary. Returns the exit code. It is 0, 2
/// with one line on stderr for an error that the user can fix, or 1 for an
/// internal error.
int runProgram(const dyna_program &program, int argc, const char *const *argv);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROGRAM_H
