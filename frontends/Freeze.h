//===- Freeze.h - Freezes layers of a model ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `--freeze "embed+h.0-h.5"` freezes the parameters of these layers. Calls of one layer
// share its backward function, so frozen calls get a second layer with the same ops.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_FREEZE_H
#define DYNA_FRONTENDS_FREEZE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

/// Freezes the layers of a list: names of calls with `+` between them, or ranges
/// `first-last`. Fails if a name is no layer, if another layer trains a parameter of a
/// frozen one, or if nothing is left to train. O(layers * names + parameters).
LogicalResult freezeLayers(ModuleOp module, StringRef list);

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_FREEZE_H
