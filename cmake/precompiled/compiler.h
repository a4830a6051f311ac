//===- compiler.h - The same, with what Dyna's dialects make ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "cmake/precompiled/mlir.h"
#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
