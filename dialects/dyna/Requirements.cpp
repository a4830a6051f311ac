//===- Requirements.cpp - Checks what passes require of a module ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "dialects/dyna/Dyna.h"

using namespace mlir;
using namespace mlir::dyna;

LogicalResult mlir::dyna::requireFunctions(ModuleOp module) {
  llvm::DenseSet<StringAttr> differentiated;
  for (FunctionOp function : module.getOps<FunctionOp>())
    differentiated.insert(function.getLayerAttr().getAttr());
  for (LayerOp layer : module.getOps<LayerOp>())
    if (!differentiated.contains(layer.getSymNameAttr()))
      return layer.emitOpError()
             << "@" << layer.getSymName()
             << " has no layer functions; run --dyna-differentiate first";
  return success();
}

void mlir::dyna::warnOfNothing(ModuleOp module, StringRef pass,
                               StringRef missing) {
  emitWarning(module.getLoc())
      << "--" << pass << " has nothing to do: the module has no " << missing;
}
