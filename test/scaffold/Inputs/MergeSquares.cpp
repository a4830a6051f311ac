//===- MergeSquares.cpp - The pass dyna-merge-squares ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/memory/Passes.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_MERGESQUARES
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

class MergeSquares : public mlir::dyna::impl::MergeSquaresBase<MergeSquares> {
public:
  using MergeSquaresBase::MergeSquaresBase;

  void runOnOperation() override {
    getOperation().walk([](MulOp product) {
      if (product.getLhs() != product.getRhs())
        return;
      OpBuilder builder(product);
      Value square = SquareOp::create(builder, product.getLoc(),
                                      product.getType(), product.getLhs());
      product.replaceAllUsesWith(square);
      product.erase();
    });
  }
};

} // namespace
