//===- Requirements.h - What passes ask of a module -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_REQUIREMENTS_H
#define DYNA_DIALECTS_DYNA_REQUIREMENTS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

/// For passes over layer functions: an error that says what to run first,
/// unless every layer of the module has functions.
LogicalResult requireFunctions(ModuleOp module);

/// What a pass that proves or reports says where there is nothing of that kind:
/// silence would read as a proof. `missing`: what, and who makes it.
void warnOfNothing(ModuleOp module, StringRef pass, StringRef missing);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_REQUIREMENTS_H
