//===- MemoryPlan.h - Lifetimes and places of a layer function -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decision behind `dyna-plan-memory`: nothing here changes the IR.
//
// Time counts the ops of a function. A value lives from the op that makes it to
// the last that reads it, both included, so that an op's results never lie on
// its operands; a product with a sweep in its epilogue reads as long as that
// runs. The exceptions are values that share a place: an accumulator and what
// it becomes, an operand that a sweep replaces, all that is returned to one
// place.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_MEMORYPLAN_H
#define DYNA_PASSES_MEMORY_MEMORYPLAN_H

#include "passes/memory/OpScratch.h"
#include "passes/memory/TierSlots.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::dyna {

/// Plans the tiers of a layer (which may be null) from all its functions.
FailureOr<TierPlan> planTiers(LayerOp layer, ArrayRef<FunctionOp> functions);

struct FunctionPlan {
  SmallVector<PlaceAttr> arguments;
  SmallVector<PlaceAttr> results;
  llvm::MapVector<Operation *, SmallVector<PlaceAttr>> places;
  LinearBytes workspace;
  /// The most bytes of workspace ever alive at once.
  LinearBytes lowerBound;
};

/// Emits an error if an accumulator cannot be added to in place.
FailureOr<FunctionPlan> planFunction(FunctionOp function,
                                     const TierPlan &tiers);

/// The functions of a module by layer, in the order in which they stand.
llvm::MapVector<StringAttr, SmallVector<FunctionOp>>
functionsByLayer(Operation *module);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_MEMORYPLAN_H
