//===- StageCuts.h - Cuts layers into stages by costs -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_STAGECUTS_H
#define DYNA_PASSES_PLAN_STAGECUTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir::dyna {

/// Checks that `path` is a valid file of costs, for any model.
llvm::Error checkCosts(StringRef path);

/// Completes those of `strategies` that give no layers: cuts stages by the
/// costs in `path`. Each cut leaves a line in `notes`. Costs that were measured
/// in another compute type do so too. `module` has passed the memory phase.
llvm::Error cutStages(ModuleOp module, StringRef path,
                      std::vector<std::string> &strategies,
                      std::vector<std::string> &notes);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_STAGECUTS_H
