//===- Program.h - The program that a model is compiled into ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROGRAM_H
#define DYNA_RUNTIME_TRAIN_PROGRAM_H

#include "runtime/abi/Abi.h"

namespace dyna {

/// What `main` of a compiled binary does. Returns the exit code: 0, or 2 with
/// one line on stderr for anything the user can mend, 1 for a fault of ours.
int runProgram(const dyna_program &program, int argc, const char *const *argv);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROGRAM_H
