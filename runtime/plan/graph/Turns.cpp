//===- Turns.cpp - Orders the work of ranks that share a device -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/Turns.h"

#include "runtime/plan/program/ChimeraSlots.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>
#include <tuple>

namespace dyna {

using plan::Instruction;

namespace {

/// Parts of a step, in the order in which a device runs them.
enum class Part { MicroBatches, Norms, Updates };

/// An item of a rank, before it has a turn.
struct Found {
  Part part;
  SlotItem work; ///< of an item of micro-batches
  int64_t order; ///< slot, or the replica
  Turns::Item item;
};

/// Returns true for an instruction that works on the device.
bool isWork(const Instruction &i) {
  return roleOf(i) >= 0 && i.op != Instruction::EVALUATE;
}

Part partOf(const Instruction &i) {
  return isPerMicroBatch(i.op)            ? Part::MicroBatches
         : i.op == Instruction::GRAD_NORM ? Part::Norms
                                          : Part::Updates;
}

/// Returns true if the instruction continues the item: the same pass of the same
/// micro-batch, or weight gradients right behind a backward.
bool continues(const Found &found, Part part, const SlotItem &work) {
  if (part != found.part || part != Part::MicroBatches)
    return part == found.part;
  return work.microBatch == found.work.microBatch &&
         (work.kind == found.work.kind || work.kind == SlotItem::Kind::Weight);
}

std::vector<Found> findItems(const plan::RankProgram &program, int replica) {
  std::vector<Found> items;
  for (int index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    if (!isWork(i))
      continue;
    const Pass pass = passOf(i.op);
    const SlotItem work = {pass == Pass::Forward  ? SlotItem::Kind::Forward
                           : pass == Pass::Weight ? SlotItem::Kind::Weight
                                                  : SlotItem::Kind::Backward,
                           i.microBatch};
    if (const Part part = partOf(i);
        items.empty() || !continues(items.back(), part, work))
      items.push_back({part, work, replica, {index, index, 0}});
    else
      items.back().item.last = index;
  }
  return items;
}

/// Finds the items of the ranks of a replica that have this shard, by stage.
std::vector<std::vector<Found>> findPipeline(const ExecutableGraph &graph,
                                             const plan::Plan &plan,
                                             int replica, int shard) {
  std::vector<std::vector<Found>> stages;
  std::vector<std::vector<SlotItem>> work(graph.stages());
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const int rank = graph.rankAt({replica, stage, shard});
    stages.push_back(findItems(plan.ranks[rank], replica));
    for (const Found &found : stages.back())
      if (found.part == Part::MicroBatches)
        work[stage].push_back(found.work);
  }
  std::vector<std::pair<int, int>> links;
  for (int edge : graph.crossingEdges())
    links.push_back({graph.endsOf(edge).producer, graph.endsOf(edge).consumer});
  const auto slots = chimeraSlots(work, links);
  for (int stage = 0; stage < graph.stages(); ++stage) {
    size_t next = 0;
    for (Found &found : stages[stage])
      if (found.part == Part::MicroBatches)
        found.order = slots[stage][next++];
  }
  return stages;
}

} // namespace

/// Gives turns to the items of the two ranks of a device. Returns the number of turns.
static int giveTurns(std::vector<Found> &own, std::vector<Found> &others) {
  // Of equal slots, which are those of two ranks, the lower replica's comes first.
  std::vector<std::tuple<Part, int64_t, int, Found *>> all;
  for (std::vector<Found> *list : {&own, &others})
    for (Found &found : *list)
      all.push_back(
          {found.part, found.order, static_cast<int>(all.size()), &found});
  std::sort(all.begin(), all.end());
  int turn = 0;
  for (const auto &[part, order, number, found] : all)
    found->item.turn = turn++;
  return turn;
}

Turns::Turns(const ExecutableGraph &graph, const plan::Plan &plan) {
  if (!graph.strategy().mirror)
    return;
  items_.resize(plan.rankCount());
  counts_.resize(plan.rankCount());
  for (int replica = 0; replica < graph.replicas(); replica += 2)
    for (int shard = 0; shard < graph.strategy().tp; ++shard) {
      auto down = findPipeline(graph, plan, replica, shard);
      auto up = findPipeline(graph, plan, replica + 1, shard);
      for (int stage = 0; stage < graph.stages(); ++stage) {
        const int rank = graph.rankAt({replica, stage, shard});
        const int twin = graph.twinOf(rank);
        std::vector<Found> &own = down[stage];
        std::vector<Found> &others = up[graph.stages() - 1 - stage];
        counts_[rank] = counts_[twin] = giveTurns(own, others);
        for (const Found &found : own)
          items_[rank].push_back(found.item);
        for (const Found &found : others)
          items_[twin].push_back(found.item);
      }
    }
}

} // namespace dyna
