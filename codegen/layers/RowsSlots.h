//===- RowsSlots.h - What the code of a sweep is given ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_ROWSSLOTS_H
#define DYNA_CODEGEN_LAYERS_ROWSSLOTS_H

#include "codegen/layers/FunctionLowering.h"
#include "codegen/rows/RowsEmitter.h"

namespace mlir::dyna::layers {

/// The slots of a sweep's body: what lies where.
struct RowsSlots {
  Slots slots;
  RowsArguments arguments;
};

/// Collects what the body needs into slots, and checks positions.
FailureOr<RowsSlots> collectSlots(FunctionLowering &function, RowsOp op,
                                  const RowsPlan &plan);

/// Sums over rows are yielded only, and lie where they are added to.
LogicalResult checkSums(FunctionLowering &function, RowsOp op,
                        const RowsPlan &plan);

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_ROWSSLOTS_H
