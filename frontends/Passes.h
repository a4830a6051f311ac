//===- Passes.h - Declares passes over models of families -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_PASSES_H
#define DYNA_FRONTENDS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dyna {

#define GEN_PASS_DECL
#include "frontends/Passes.h.inc"

/// Fails at the first model that is not what its family says, as the pass does, and
/// changes nothing. The module must be verified.
LogicalResult checkFamilies(ModuleOp module);

/// Defines `registerFrontendPasses`.
#define GEN_PASS_REGISTRATION
#include "frontends/Passes.h.inc"

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_PASSES_H
