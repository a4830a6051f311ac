//===- Passes.h - Declares the passes of the distribute phase ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_PASSES_H
#define DYNA_PASSES_DISTRIBUTE_PASSES_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dyna {

#define GEN_PASS_DECL
#include "passes/distribute/Passes.h.inc"

/// Checks what `dyna-verify-local` checks, for passes that guarantee it.
LogicalResult verifyLocal(ModuleOp module);

/// Defines `registerDistributePasses`.
#define GEN_PASS_REGISTRATION
#include "passes/distribute/Passes.h.inc"

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_PASSES_H
