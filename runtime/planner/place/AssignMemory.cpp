//===- AssignMemory.cpp - Assigns offsets to a program's blocks -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/AssignMemory.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"

namespace dyna {

Status assignMemory(const RankView &view, const plan::Plan &plan,
                    plan::RankProgram &program, const Load *largest,
                    FoundPlacements *found) {
  return assignMemory(ProgramBlocks(view, plan, program, largest), program,
                      found);
}

Status assignMemory(const ProgramBlocks &table, plan::RankProgram &program,
                    FoundPlacements *found) {
  std::vector<BlockLifetime> lifetimes;
  for (const Block &block : table.blocks()) {
    if (block.bytes > maxBlockBytes)
      return Status::resourceExhausted(formatText(
          "the %s block of %s needs %s, more than any machine has: use "
          "smaller micro-batches",
          table.tables().kind(block.name.kind).text,
          describeInstruction(program.instructions[block.first]),
          formatBytes(block.bytes)));
    lifetimes.push_back({block.bytes, block.first, block.last});
  }
  FoundPlacements none;
  auto [place, isNew] =
      (found ? *found : none).try_emplace(std::move(lifetimes));
  if (isNew)
    place->second = placeBlocks(place->first);
  const BlockPlacement &placement = place->second;
  for (int index = 0; index < program.count(); ++index) {
    plan::Instruction &i = program.instructions[index];
    i.places.fill(plan::noPlace); // a program may have been placed before
    for (const BlockUse &use : table.uses(index))
      if (use.takes)
        i.places[use.placeIndex] = placement.offsets[use.block];
  }
  program.dynamicBytes = placement.peak;
  return Status::ok();
}

bool copyPlaces(const plan::RankProgram &from, plan::RankProgram &to) {
  if (from.count() != to.count())
    return false;
  for (int index = 0; index < to.count(); ++index) {
    plan::Instruction placed = to.instructions[index];
    placed.places = from.instructions[index].places;
    if (!(placed == from.instructions[index]))
      return false;
  }
  to.instructions = from.instructions;
  to.dynamicBytes = from.dynamicBytes;
  return true;
}

} // namespace dyna
