//===- DnnStandin.cpp - cuDNN, as far as it is looked at --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `standins/dnn/libcudnn.so.9` of the build folder has a version and no more, for
// what a program says of the libraries it finds.
//
//===----------------------------------------------------------------------===//

#include <cstddef>

extern "C" size_t cudnnGetVersion(void) { return 91900; }
