//===- CompareFunctions.h - Compares what functions compute -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_COMPAREFUNCTIONS_H
#define DYNA_PASSES_DIFFERENTIATE_COMPAREFUNCTIONS_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// Checks (DIFF7) that a function computes each result as `derived` does: by the same
/// ops, with the same attributes, from the same arguments. The order of ops does not
/// matter, nor does it matter if one is repeated. Linear in the ops of both.
LogicalResult compareFunctions(FunctionOp function, FunctionOp derived);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_COMPAREFUNCTIONS_H
