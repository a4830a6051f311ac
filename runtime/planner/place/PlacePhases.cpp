//===- PlacePhases.cpp - Places the phases of a step in regions -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/PlacePhases.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/planner/place/PlaceBlocks.h"

#include <algorithm>

namespace dyna {
namespace {

using plan::Instruction;
using PhaseSwitches = SwitchTable::PhaseSwitches;

/// Returns true for switches that bring data to the phase. These are its own
/// value switches and the gradient switches of the phase before. All other
/// switches carry data away.
bool comes(const Instruction &i, int phase) {
  const ExchangeOp op = exchangeOf(i.op);
  return op.isSwitch() &&
         i.phase == (op.kind == ExchangeKind::ValueSwitch ? phase : phase - 1);
}

/// Moves waits for earlier switches to the front, so that nothing of the phases
/// before is left.
void waitFirst(plan::RankProgram &program, int phase) {
  std::stable_partition(program.instructions.begin(),
                        program.instructions.end(),
                        [&](const Instruction &i) { return comes(i, phase); });
}

/// Moves the starts of switches that leave the phase to the end, in the same
/// order on all ranks. Otherwise ranks could wait forever, because exchanges
/// that they start together need one order.
void startLast(plan::Plan &plan, int phase) {
  for (plan::RankProgram &program : plan.ranks)
    std::stable_partition(
        program.instructions.begin(), program.instructions.end(),
        [&](const Instruction &i) {
          return !exchangeOf(i.op).isSwitch() || comes(i, phase);
        });
}

/// Order in which blocks of one end are placed, from the outermost inward. With
/// the longest lives first, the last phase has all memory except theirs. With
/// the earliest first, two layouts side by side need no more than both
/// together.
enum class Inward { LongestFirst, EarliestFirst };

/// The blocks of one rank in as small a region as they fit.
class Region {
public:
  Region(std::vector<StepBlock> blocks, Inward inward)
      : blocks_(std::move(blocks)) {
    for (bool low : {true, false})
      placeEnd(low, inward);
    for (const StepBlock &block : blocks_)
      bytes_ = std::max(bytes_, needOf(block));
    // So far each place counts from its own end of the region.
    for (StepBlock &block : blocks_)
      if (block.kind == StepBlockKind::Dynamic)
        block.place = extentBeside(block, /*low=*/true);
    for (StepBlock &block : blocks_)
      if (block.kind != StepBlockKind::Dynamic && !isLow(block))
        block.place = bytes_ - block.place - sizeOf(block);
  }

  const std::vector<StepBlock> &blocks() const { return blocks_; }
  int64_t bytes() const { return bytes_; }
  /// Returns the largest number of bytes in use while a phase computes, by
  /// phase.
  const std::vector<int64_t> &computing() const { return computing_; }

private:
  static bool isLow(const StepBlock &block) { return block.phase % 2 == 0; }
  static int64_t sizeOf(const StepBlock &block) {
    return dyna_align_block(block.bytes);
  }

  void placeEnd(bool low, Inward inward) {
    std::vector<StepBlock *> own;
    for (StepBlock &block : blocks_)
      if (block.kind != StepBlockKind::Dynamic && isLow(block) == low)
        own.push_back(&block);
    std::stable_sort(
        own.begin(), own.end(), [&](const StepBlock *a, const StepBlock *b) {
          return inward == Inward::LongestFirst ? a->last > b->last
                                                : a->first < b->first;
        });
    std::vector<BlockLifetime> lives;
    std::vector<int> order;
    for (const StepBlock *block : own) {
      order.push_back(static_cast<int>(lives.size()));
      lives.push_back({sizeOf(*block), block->first, block->last});
    }
    std::vector<int64_t> offsets(lives.size());
    placeLowest(lives, order, offsets);
    for (size_t number = 0; number < own.size(); ++number)
      own[number]->place = offsets[number];
  }

  /// Returns how far one end reaches while a block exists.
  int64_t extentBeside(const StepBlock &block, bool low) const {
    int64_t extent = 0;
    for (const StepBlock &other : blocks_)
      if (other.kind != StepBlockKind::Dynamic && isLow(other) == low &&
          other.first <= block.last && block.first <= other.last)
        extent = std::max(extent, other.place + sizeOf(other));
    return extent;
  }

  int64_t needOf(const StepBlock &block) {
    if (block.kind != StepBlockKind::Dynamic)
      return block.place + sizeOf(block) + extentBeside(block, !isLow(block));
    const int64_t bytes =
        extentBeside(block, true) + sizeOf(block) + extentBeside(block, false);
    computing_.resize(static_cast<size_t>(block.phase) + 1, 0);
    computing_.back() = bytes;
    return bytes;
  }

  std::vector<StepBlock> blocks_;
  std::vector<int64_t> computing_;
  int64_t bytes_ = 0;
};

Status tooSmall(const Region &region, int rank, int64_t limit) {
  const std::vector<int64_t> &computing = region.computing();
  const auto most = std::max_element(computing.begin(), computing.end());
  if (most != computing.end() && *most > limit)
    return Status::resourceExhausted(
        formatText("phase %d needs %s of rank %d beside what it has of home, "
                   "but there are "
                   "%s: use smaller micro-batches or more recomputation",
                   most - computing.begin(), formatBytes(*most), rank,
                   formatBytes(limit)));
  return Status::resourceExhausted(
      formatText("the parameters of two phases side by side need %s of rank %d "
                 "beside what "
                 "it has of home, but there are %s",
                 formatBytes(region.bytes()), rank, formatBytes(limit)));
}

/// Places the phases of all ranks, and takes turns where that is not enough.
class PhasePlacer {
public:
  PhasePlacer(const SwitchTable &switches, std::vector<PhaseSwitches> phases,
              const std::vector<int64_t> &limits, plan::StepPlan &step)
      : switches_(switches), phases_(std::move(phases)), limits_(limits),
        step_(step), trains_(trains(step)),
        ranks_(switches.graph(switches.home()).ranks()) {}

  Status place() {
    for (plan::Phase &phase : step_.phases)
      for (plan::RankProgram &program : phase.plan.ranks)
        program.places = plan::PhasePlaces();
    // First let only phases without room take turns; if that is not enough, let
    // all.
    for (bool all : {false, true})
      if (!limits_.empty())
        takeTurns(all);
    for (int rank = 0; rank < ranks_; ++rank) {
      const Region region = regionOf(rank);
      if (!fits(region, rank))
        return tooSmall(region, rank, limits_[rank]);
      for (const StepBlock &block : region.blocks())
        placeIn(step_.phases[block.phase].plan.ranks[rank].places, block.kind) =
            block.place;
    }
    return Status::ok();
  }

private:
  Region regionOf(int rank) const {
    const auto blocks = stepBlocks(switches_, phases_, step_, trains_, rank);
    Region region(blocks, Inward::LongestFirst);
    if (!limits_.empty() && fits(region, rank))
      return region;
    Region other(blocks, Inward::EarliestFirst);
    return other.bytes() < region.bytes() ? other : region;
  }
  bool fits(const Region &region, int rank) const {
    return limits_.empty() || region.bytes() <= limits_[rank];
  }

  void takeTurns(bool all) {
    std::vector<bool> startsLast(step_.phases.size(), false);
    for (int rank = 0; rank < ranks_; ++rank) {
      const Region region = regionOf(rank);
      if (fits(region, rank))
        continue;
      std::vector<int64_t> computing = region.computing();
      computing.resize(step_.phases.size(), 0);
      for (int k = 0; k < step_.phaseCount(); ++k)
        if (all || computing[k] > limits_[rank]) {
          waitFirst(step_.phases[k].plan.ranks[rank], k);
          startsLast[k] = true;
        }
    }
    for (int k = 0; k < step_.phaseCount(); ++k)
      if (startsLast[k])
        startLast(step_.phases[k].plan, k);
  }

  const SwitchTable &switches_;
  const std::vector<PhaseSwitches> phases_;
  const std::vector<int64_t> &limits_; ///< by rank; empty: none
  plan::StepPlan &step_;
  const bool trains_;
  const int ranks_;
};

} // namespace

Status placePhases(const SwitchTable &switches,
                   const std::vector<int64_t> &regionBytes,
                   plan::StepPlan &step) {
  DYNA_ASSIGN_OR_RETURN(auto phases, switches.switchesOf(step));
  return PhasePlacer(switches, std::move(phases), regionBytes, step).place();
}

namespace {

/// Largest bytes of a graph other than home, beside its micro-batches.
struct Hold {
  int64_t before = 0; ///< at the end of the phase before: arrived values
  int64_t own = 0;    ///< in its own phase
  int64_t behind = 0; ///< in the next phase, unless that takes turns
  /// Besides `behind`: gradients that wait to be added, if home is next.
  int64_t late = 0;
  int64_t goingHome = 0; ///< after the phase, if home reads none of its values
  int64_t atHome = 0;    ///< in home's phase
};

Hold holdOf(const SwitchTable &switches, int graph, int rank, bool trains) {
  const HeldParameters &held = switches.held(graph, rank);
  int64_t come = 0;
  for (int before = 0; before < switches.graphs(); ++before)
    if (before != graph)
      come = std::max(come,
                      switches.values(before, graph).sides[rank].passedBytes);
  Hold hold;
  hold.before = hold.own = hold.behind = held.values + come;
  if (!trains)
    return hold;
  const GraphSwitch::Side &go = switches.gradients(graph).sides[rank];
  hold.own += held.gradients;
  hold.behind = hold.own + go.passedBytes;
  hold.late = go.gotBytes;
  hold.goingHome = held.gradients + go.passedBytes;
  hold.atHome = hold.goingHome + hold.late;
  return hold;
}

} // namespace

int64_t heldBeside(const SwitchTable &switches, const std::vector<int> &order,
                   int graph, int rank, bool trains, bool takesTurns) {
  const bool isHome = graph == order.back();
  int64_t before = 0, next = 0;
  bool isPast = false;
  for (int other : order) {
    if (takesTurns || other == order.back())
      break;
    const Hold hold = holdOf(switches, other, rank, trains);
    if (other == graph)
      isPast = true;
    else if (isPast)
      next = std::max(next, hold.behind);
    else
      before = std::max(before, isHome ? hold.atHome : hold.behind);
  }
  if (isHome)
    return before;
  const Hold own = holdOf(switches, graph, rank, trains);
  if (takesTurns)
    return own.own;
  // Either values go on to the next graph, or gradients go to home.
  return before + own.behind + std::max(next, own.late);
}

int64_t mostSideBySide(const std::vector<HeldParameters> &graphs) {
  int64_t most = 0;
  for (size_t a = 0; a < graphs.size(); ++a) {
    int64_t next = 0;
    for (size_t b = 0; b < graphs.size(); ++b)
      if (b != a)
        next = std::max(next, graphs[b].values);
    most = std::max(most, graphs[a].values + graphs[a].gradients + next);
  }
  return most;
}

Neighbours largestNeighbours(const SwitchTable &switches,
                             const std::vector<int> &order, int rank,
                             bool trains) {
  Neighbours most;
  for (size_t at = 0; at + 1 < order.size(); ++at)
    for (size_t before = 0; before < at; ++before) {
      const int64_t bytes =
          holdOf(switches, order[before], rank, trains).behind +
          holdOf(switches, order[at], rank, trains).before;
      if (bytes > most.bytes)
        most = {order[before], order[at], bytes};
    }
  return most;
}

RegionNeed needOfRegions(const SwitchTable &switches,
                         const std::vector<int> &order,
                         const std::vector<std::vector<int64_t>> &dynamic,
                         bool trains) {
  RegionNeed need;
  for (int rank = 0; rank < static_cast<int>(dynamic[order.back()].size());
       ++rank) {
    int64_t least = largestNeighbours(switches, order, rank, trains).bytes;
    int64_t most = least;
    for (int graph : order) {
      const int64_t bytes = dyna_align_block(dynamic[graph][rank]);
      auto beside = [&](bool takesTurns) {
        return heldBeside(switches, order, graph, rank, trains, takesTurns);
      };
      least = std::max(least, beside(true) + bytes);
      most = std::max(most, beside(false) + bytes);
      // If home is next and takes turns, only gradients and what passes with
      // them remain.
      if (graph != order.back())
        least =
            std::max(least, holdOf(switches, graph, rank, trains).goingHome);
    }
    need.least.push_back(least);
    need.most.push_back(std::max(most, least));
  }
  return need;
}

} // namespace dyna
