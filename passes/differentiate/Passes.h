//===- Passes.h - Declares the differentiate phase --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_PASSES_H
#define DYNA_PASSES_DIFFERENTIATE_PASSES_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dyna {

#define GEN_PASS_DECL
#include "passes/differentiate/Passes.h.inc"

/// Checks what `dyna-verify-differentiated` checks, for passes that promise or
/// need it. Checks all layers, or those for which `isMeant` is true.
LogicalResult verifyDifferentiated(
    ModuleOp module,
    function_ref<bool(LayerOp)> isMeant = [](LayerOp) { return true; });

/// Defines `registerDifferentiatePasses`.
#define GEN_PASS_REGISTRATION
#include "passes/differentiate/Passes.h.inc"

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_PASSES_H
