//===- TierSlots.cpp - Assigns places in the tiers of a layer -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/place/TierSlots.h"
#include "passes/memory/value/ProductRuns.h"
#include "passes/memory/value/Values.h"

using namespace mlir;
using namespace mlir::dyna;

bool mlir::dyna::isTier(Memory memory) {
  return llvm::is_contained(tierMemories, memory);
}

/// Returns the number of every place of the list in its tier; -1 outside of
/// tiers.
static SmallVector<int64_t> numbersInTier(ArrayAttr places) {
  DenseMap<int32_t, int64_t> count;
  DenseSet<int32_t> hasIndices;
  for (PlaceAttr place : places.getAsRange<PlaceAttr>())
    if (place.getIndex() != 0)
      hasIndices.insert(static_cast<int32_t>(place.getMemory()));
  SmallVector<int64_t> numbers;
  for (PlaceAttr place : places.getAsRange<PlaceAttr>()) {
    auto memory = static_cast<int32_t>(place.getMemory());
    if (!isTier(place.getMemory()))
      numbers.push_back(-1);
    else if (hasIndices.contains(memory))
      numbers.push_back(place.getIndex());
    else
      numbers.push_back(count[memory]++);
  }
  return numbers;
}

LogicalResult mlir::dyna::addSlots(FunctionOp function, ArrayAttr places,
                                   ValueRange values, const TokenParts &parts,
                                   TierPlan &plan) {
  SmallVector<int64_t> numbers = numbersInTier(places);
  for (auto [attribute, value, number] :
       llvm::zip_equal(places, values, numbers)) {
    if (number < 0)
      continue;
    Type type = value.getType();
    LinearBytes bytes = parts.bytesOf(value);
    Memory memory = cast<PlaceAttr>(attribute).getMemory();
    auto [entry, isNew] = plan.slots.insert(
        {{memory, number}, {type, function, bytes, LinearBytes()}});
    if (isNew || (entry->second.type == type && entry->second.bytes == bytes))
      continue;
    InFlightDiagnostic error = function.emitOpError()
                               << "expects value " << number << " of the tier '"
                               << stringifyMemory(memory) << "' to be "
                               << entry->second.type << ", but got " << type;
    if (entry->second.type == type)
      error << " with another part of the tokens";
    error.attachNote(entry->second.firstSeen.getLoc())
        << "first seen in " << entry->second.firstSeen.getSymNameAttr();
    return error;
  }
  return success();
}

void mlir::dyna::placeSlots(TierPlan &plan) {
  DenseMap<std::pair<int32_t, int64_t>, size_t> jointOf;
  auto numberOf = [](TierPlan::Key key) {
    return std::pair(static_cast<int32_t>(key.first), key.second);
  };
  for (auto [index, joint] : llvm::enumerate(plan.joints))
    for (TierPlan::Key key : joint)
      jointOf[numberOf(key)] = index;
  auto placeJoint = [&](ArrayRef<TierPlan::Key> joint, LinearBytes &size) {
    int64_t stride = 0;
    for (TierPlan::Key key : joint)
      stride += rowBytesOf(plan.slots.at(key).type);
    LinearBytes bytes;
    int64_t column = 0;
    for (TierPlan::Key key : joint) {
      TierPlan::Slot &slot = plan.slots.at(key);
      slot.offset = size;
      slot.column = column;
      slot.stride = stride;
      column += rowBytesOf(slot.type);
      bytes = bytes.upperBound(
          stridedBytes(slot.bytes, rowBytesOf(slot.type), stride));
    }
    size = size + bytes;
  };
  for (auto [size, memory] : llvm::zip_equal(plan.sizes, tierMemories)) {
    if (memory == Memory::SavedInput) {
      // The producer of the layer's input wrote it at the start of the block.
      for (auto &[key, slot] : plan.slots)
        if (key.first == memory)
          size = size.upperBound(slot.bytes);
      continue;
    }
    size = LinearBytes();
    // Place constant sizes first, so that every offset is aligned for any token
    // count.
    for (bool isConstant : {true, false}) {
      for (auto &[key, slot] : plan.slots) {
        if (key.first != memory || (slot.bytes.tq == 0) != isConstant)
          continue;
        auto joint = jointOf.find(numberOf(key));
        if (joint == jointOf.end()) {
          slot.offset = size;
          size = size + slot.bytes;
          continue;
        }
        // The first slot of a joint places all of its slots.
        const auto &keys = plan.joints[joint->second];
        if (*llvm::min_element(keys) == key)
          placeJoint(keys, size);
      }
    }
  }
}

PlaceAttr mlir::dyna::placeOf(PlaceAttr place, const TierPlan::Slot &slot) {
  return PlaceAttr::get(place.getContext(), place.getMemory(), place.getIndex(),
                        slot.offset, slot.column, slot.stride);
}

SmallVector<PlaceAttr> mlir::dyna::placesInTiers(ArrayAttr places,
                                                 const TierPlan &plan) {
  SmallVector<PlaceAttr> filled;
  SmallVector<int64_t> numbers = numbersInTier(places);
  for (auto [attribute, number] : llvm::zip_equal(places, numbers)) {
    auto place = cast<PlaceAttr>(attribute);
    if (number >= 0)
      place = placeOf(place, plan.slots.at({place.getMemory(), number}));
    filled.push_back(place);
  }
  return filled;
}
