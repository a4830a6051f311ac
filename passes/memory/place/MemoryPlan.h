//===- MemoryPlan.h - Plans lifetimes and places of values ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides for `dyna-plan-memory` where values lie. Nothing here changes the IR.
//
// Time counts the ops of a function. A value lives from the op that makes it to
// the last op that reads it, both included. So an op's results never share
// memory with its operands. A product with a sweep in its epilogue reads until
// the sweep ends.
//
// Three kinds of values share a place on purpose. These are an accumulator and
// its new value, an operand that a sweep replaces, and values returned to one
// place.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PLACE_MEMORYPLAN_H
#define DYNA_PASSES_MEMORY_PLACE_MEMORYPLAN_H

#include "passes/memory/place/TierSlots.h"
#include "passes/memory/value/OpScratch.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::dyna {

/// Plans the tiers of a layer (which may be null) from all its functions.
FailureOr<TierPlan> planTiers(LayerOp layer, ArrayRef<FunctionOp> functions);

struct FunctionPlan {
  SmallVector<PlaceAttr> arguments;
  SmallVector<PlaceAttr> results;
  llvm::MapVector<Operation *, SmallVector<PlaceAttr>> places;
  LinearBytes workspace;
  /// Largest number of workspace bytes that are alive at once.
  LinearBytes lowerBound;
};

/// Plans one function. Reports an accumulator that cannot be added to in place.
FailureOr<FunctionPlan> planFunction(FunctionOp function,
                                     const TierPlan &tiers);

/// Returns the functions of a module by layer, in their order.
llvm::MapVector<StringAttr, SmallVector<FunctionOp>>
functionsByLayer(Operation *module);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PLACE_MEMORYPLAN_H
