//===- main.cpp - Entry of a compiled binary ------------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Program.h"

int main(int argc, char **argv) {
  return dyna::runProgram(dyna_compiled_program, argc, argv);
}
