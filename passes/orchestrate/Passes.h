//===- Passes.h - Declares the passes of the orchestrate phase --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_ORCHESTRATE_PASSES_H
#define DYNA_PASSES_ORCHESTRATE_PASSES_H

#include "dialects/exec/Exec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dyna {

#define GEN_PASS_DECL
#include "passes/orchestrate/Passes.h.inc"

/// Defines `registerOrchestratePasses`.
#define GEN_PASS_REGISTRATION
#include "passes/orchestrate/Passes.h.inc"

} // namespace mlir::dyna

#endif // DYNA_PASSES_ORCHESTRATE_PASSES_H
