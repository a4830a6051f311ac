//===- SelectFunctions.h - A layer and a role by their names ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A layer's functions are called `layer.role`, its forms at tensor degrees
// `layer.tp2` and `layer.tp2.sp`, their functions `layer.tp2.role`, and what
// code generation makes of a function `layer.role.rows0`: names say what
// belongs to what in every phase.
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
  /// Whether a layer or function of this name is meant. With a role no layer
  /// is.
  bool has(StringRef name) const;
};

/// An error that lists what there is, unless the module has what is selected.
LogicalResult checkSelection(ModuleOp module, const Selection &selection);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_SELECTFUNCTIONS_H
