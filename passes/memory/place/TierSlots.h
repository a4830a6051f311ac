//===- TierSlots.h - Assigns places in the tiers of a layer -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values that cross between the functions of a layer lie in tiers. A value has
// the same place for all functions.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PLACE_TIERSLOTS_H
#define DYNA_PASSES_MEMORY_PLACE_TIERSLOTS_H

#include "passes/memory/value/TokenParts.h"
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
    /// Column and stride of the place, if it lies side by side with others.
    int64_t column = 0, stride = 0;
  };
  using Key = std::pair<Memory, int64_t>;
  /// Slots by the number of the value in its tier. The number is the place's
  /// index if a function's places have different indices, else its rank among
  /// them.
  std::map<Key, Slot> slots;
  /// Slots that lie side by side, in order; each is in at most one list.
  SmallVector<SmallVector<Key>> joints;
  /// saved_input, products, elementwise, deferred.
  LinearBytes sizes[4];
};

constexpr Memory tierMemories[4] = {Memory::SavedInput, Memory::Products,
                                    Memory::Elementwise, Memory::Deferred};
bool isTier(Memory memory);

/// Adds the entries of `values` that lie in tiers. Fails if an earlier function
/// has another type at the same slot.
LogicalResult addSlots(FunctionOp function, ArrayAttr places, ValueRange values,
                       const TokenParts &parts, TierPlan &plan);

/// Lays out the slots of every tier; those of a joint lie side by side.
void placeSlots(TierPlan &plan);

/// Returns the places of a function's arguments or results with their offsets
/// in the tiers.
SmallVector<PlaceAttr> placesInTiers(ArrayAttr places, const TierPlan &plan);

/// Returns `place` at the position of its slot.
PlaceAttr placeOf(PlaceAttr place, const TierPlan::Slot &slot);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PLACE_TIERSLOTS_H
