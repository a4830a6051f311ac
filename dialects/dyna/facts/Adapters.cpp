//===- Adapters.cpp - Finds low-rank adapters beside linears --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/facts/Adapters.h"

using namespace mlir;
using namespace mlir::dyna;

AdaptedLinear mlir::dyna::adaptedLinearOf(AddOp sum) {
  for (auto [y, added] : {std::pair(sum.getLhs(), sum.getRhs()),
                          std::pair(sum.getRhs(), sum.getLhs())}) {
    auto base = y.getDefiningOp<LinearOp>();
    auto scale = added.getDefiningOp<ScaleOp>();
    auto up = scale ? scale.getX().getDefiningOp<LinearOp>() : LinearOp();
    auto down = up ? up.getX().getDefiningOp<LinearOp>() : LinearOp();
    if (base && down && down.getX() == base.getX() && !up.getBias() &&
        !down.getBias())
      return {base, down, up, scale};
  }
  return {};
}
