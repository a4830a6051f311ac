//===- Passes.h - Declares the passes of the memory phase -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PASSES_H
#define DYNA_PASSES_MEMORY_PASSES_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dyna {

#define GEN_PASS_DECL
#include "passes/memory/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/memory/Passes.h.inc"

/// Checks what `dyna-verify-memory` checks.
LogicalResult verifyMemory(ModuleOp module);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PASSES_H
