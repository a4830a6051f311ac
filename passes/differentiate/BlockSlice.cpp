//===- BlockSlice.cpp - Finds the ops that some values need -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/BlockSlice.h"

using namespace mlir;
using namespace mlir::dyna;

BlockSlice mlir::dyna::computeSlice(Block &block, ArrayRef<Value> roots,
                                    llvm::function_ref<bool(Value)> available) {
  BlockSlice slice;
  llvm::DenseSet<Value> needed;
  auto need = [&](Value value, Operation *user) {
    if (available(value) || !needed.insert(value).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value))
      slice.missing.emplace_back(argument, user);
  };
  for (Value root : roots)
    need(root, nullptr);
  for (Operation &op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return needed.contains(result); }))
      continue;
    slice.ops.push_back(&op);
    slice.set.insert(&op);
    for (Value operand : op.getOperands())
      need(operand, &op);
  }
  std::reverse(slice.ops.begin(), slice.ops.end());
  return slice;
}
