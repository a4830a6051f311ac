//===- tests.h - What unit tests of the runtime include -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "cmake/precompiled/runtime.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
