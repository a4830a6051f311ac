//===- MemoryPlan.h - Lifetimes and places of a layer function -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
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

#include "passes/memory/Scratch.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace mlir::dyna {

/// The saved tiers of a layer. All values of a tier live from forward to
/// backward, so they lie one after the other.
struct TierPlan {
  struct Slot {
    Type type;
    FunctionOp firstSeen;
    LinearBytes bytes;
    LinearBytes offset;
    /// Of its place, where it lies side by side with others.
    int64_t column = 0, stride = 0;
  };
  using Key = std::pair<Memory, int64_t>;
  /// By the number of the value in its tier: the place's index, where a
  /// function's places have different ones, else its rank among them.
  std::map<Key, Slot> slots;
  /// Slots that lie side by side, in order; each in one list at most.
  SmallVector<SmallVector<Key>> joints;
  /// saved_input, products, elementwise, deferred.
  LinearBytes sizes[4];
};

constexpr Memory tierMemories[4] = {Memory::SavedInput, Memory::Products,
                                    Memory::Elementwise, Memory::Deferred};
bool isTier(Memory memory);

/// Plans the tiers of a layer (which may be null) from all its functions.
FailureOr<TierPlan> planTiers(LayerOp layer, ArrayRef<FunctionOp> functions);

/// The places of a function's arguments or results with the offsets that their
/// tiers give them.
SmallVector<PlaceAttr> placesInTiers(ArrayAttr places, const TierPlan &plan);

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
