//===- TierSlots.h - Places of values in the tiers of a layer ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What crosses between the functions of a layer lies in tiers: every value at
// one place, whichever function asks.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_TIERSLOTS_H
#define DYNA_PASSES_MEMORY_TIERSLOTS_H

#include "passes/memory/TokenParts.h"
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

/// Adds those of `values` that lie in tiers. An error if a function seen before
/// has another type there.
LogicalResult addSlots(FunctionOp function, ArrayAttr places, ValueRange values,
                       const TokenParts &parts, TierPlan &plan);

/// Lays out the slots of every tier, those of a joint side by side.
void placeSlots(TierPlan &plan);

/// The places of a function's arguments or results with the offsets that their
/// tiers give them.
SmallVector<PlaceAttr> placesInTiers(ArrayAttr places, const TierPlan &plan);

/// `place`, where its slot lies.
PlaceAttr placeOf(PlaceAttr place, const TierPlan::Slot &slot);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_TIERSLOTS_H
