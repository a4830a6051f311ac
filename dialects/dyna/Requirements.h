//===- Requirements.h - Checks what passes require of a module --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_REQUIREMENTS_H
#define DYNA_DIALECTS_DYNA_REQUIREMENTS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

/// Fails unless every layer of the module has functions, and says what to run
/// first. For passes over layer functions.
LogicalResult requireFunctions(ModuleOp module);

/// Warns that a pass that verifies or reports found nothing to work on. Without
/// the warning, silence would look like success. `missing` says what is
/// missing, and which pass makes it.
void warnOfNothing(ModuleOp module, StringRef pass, StringRef missing);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_REQUIREMENTS_H
