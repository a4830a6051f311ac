//===- StageCuts.h - Strategies with their layers ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_STAGECUTS_H
#define DYNA_PASSES_PLAN_STAGECUTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir::dyna {

/// Whether `path` is a good file of costs, for whatever model.
llvm::Error checkCosts(StringRef path);

/// Gives those of `strategies` that say no layers the cut by the costs in
/// `path`; each leaves a line in `notes`, and so do costs that were measured in
/// another compute type. `module` is behind the memory phase.
llvm::Error cutStages(ModuleOp module, StringRef path,
                      std::vector<std::string> &strategies,
                      std::vector<std::string> &notes);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_STAGECUTS_H
