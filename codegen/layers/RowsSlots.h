//===- RowsSlots.h - Collects the arguments of a sweep's code ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_ROWSSLOTS_H
#define DYNA_CODEGEN_LAYERS_ROWSSLOTS_H

#include "codegen/layers/FunctionLowering.h"
#include "codegen/rows/RowsEmitter.h"

namespace mlir::dyna::layers {

/// The slots of a sweep's body, and which argument is in which slot.
struct RowsSlots {
  Slots slots;
  RowsArguments arguments;
};

/// Collects the arguments of the body into slots, and checks positions.
FailureOr<RowsSlots> collectSlots(FunctionLowering &function, RowsOp op,
                                  const RowsPlan &plan);

/// Checks that sums over rows are only yielded, and lie in their accumulators.
LogicalResult checkSums(FunctionLowering &function, RowsOp op,
                        const RowsPlan &plan);

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_ROWSSLOTS_H
