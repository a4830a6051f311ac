//===- SelectFunctions.h - Selects functions by layer and role --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names show what belongs together in every phase. A layer's functions are
// called `layer.role`. Its forms at tensor degrees are `layer.tp2` and
// `layer.tp2.sp`, and their functions `layer.tp2.role`. Code generation makes
// `layer.role.rows0` from a function.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_SELECTFUNCTIONS_H
#define DYNA_PASSES_DISTRIBUTE_SELECTFUNCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

struct Selection {
  std::string layer; ///< empty: all; `block` has `block.tp2` in it
  std::string role;  ///< empty: all

  bool isAll() const { return layer.empty() && role.empty(); }
  /// Returns true if the selection includes a layer or function of this name. A
  /// selection with a role includes no layers.
  bool has(StringRef name) const;
};

/// Fails if the selection is empty, and lists the names that exist.
LogicalResult checkSelection(ModuleOp module, const Selection &selection);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_SELECTFUNCTIONS_H
