//===- AssignMemory.cpp - Offsets for the blocks of a program -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/AssignMemory.h"

#include "runtime/base/Text.h"
#include "runtime/plan/InstructionBlocks.h"
#include "runtime/planner/PlaceBlocks.h"

#include <map>
#include <tuple>

namespace dyna {

Status assignMemory(const ManifestView &view, const plan::Plan &plan,
                    plan::RankProgram &program, const Extent *largest) {
  InstructionBlocks blocks(view, plan, program, largest);
  using Key = std::tuple<BlockKind, int, int>;
  std::map<Key, int> alive;
  std::vector<BlockLifetime> lifetimes;
  struct Place {
    int instruction;
    Field field;
    int block;
  };
  std::vector<Place> places;
  for (int index = 0; index < program.instructions_size(); ++index)
    for (const BlockUse &use : blocks.uses(index)) {
      if (use.bytes > maxBlockBytes)
        return Status::resourceExhausted(formatText(
            "the %s block of %s needs %s, more than any machine has: use "
            "smaller micro-batches",
            blockKindName(use.kind),
            describeInstruction(program.instructions(index)),
            formatBytes(use.bytes)));
      Key key{use.kind, use.microBatch, use.layer};
      if (use.acquires) {
        alive[key] = static_cast<int>(lifetimes.size());
        lifetimes.push_back({use.bytes, index, index});
      }
      int block = alive.at(key);
      lifetimes[block].last = index;
      places.push_back({index, use.field, block});
    }
  BlockPlacement placement = placeBlocks(lifetimes);
  // A program may have been placed before.
  for (plan::Instruction &i : *program.mutable_instructions())
    for (int field = static_cast<int>(Field::Kept); field < fieldCount; ++field)
      setField(i, static_cast<Field>(field), 0);
  for (const Place &place : places)
    setField(*program.mutable_instructions(place.instruction), place.field,
             placement.offsets[place.block]);
  program.set_dynamic_bytes(placement.peak);
  return Status::ok();
}

} // namespace dyna
