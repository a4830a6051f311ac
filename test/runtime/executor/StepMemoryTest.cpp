//===- StepMemoryTest.cpp - Phases in a rank's region (P6 to P8) ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const std::vector<std::vector<std::string>> sequences = {
    {"dp=2", "tp=2"},
    {"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"},
    {"dp=4", "dp=2,tp=2,zero=1", "tp=4,sp=1", "pp=4,layers=1+1+2+1"},
    {"tp=2,pp=2,layers=3+2,order=tp+pp+dp", "dp=4,zero=1", "tp=4",
     "dp=2,pp=2,layers=4+1,zero=1"},
};

const MiniBatch &batch() {
  static const MiniBatch batch =
      tinyBatch({5, 1, 17, 9, 3, 12, 1, 8, 20, 2}, 1);
  return batch;
}

/// Samples in turns, or none for some of the graphs, by the bits of `without`.
std::vector<int> dealt(int graphs, int without) {
  std::vector<int> used;
  for (int g = 0; g < graphs; ++g)
    if (!(without >> g & 1))
      used.push_back(g);
  std::vector<int> phaseOf;
  for (size_t s = 0; s < batch().samples.size(); ++s)
    phaseOf.push_back(used[s % used.size()]);
  return phaseOf;
}

Carriage carriageOf(const std::vector<std::string> &sequence, bool onTwoNodes) {
  const int ranks = parseStrategy(sequence[0])->ranks();
  return onTwoNodes && ranks == 4 ? Carriage{onNodes(ranks, 512)} : Carriage{};
}

/// Every way in which phases of a sequence can be left out.
template <typename Body> void forSteps(Body body) {
  for (const auto &sequence : sequences)
    for (bool onTwoNodes : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(sequence));
      Steps steps(sequence, plan::BF16, carriageOf(sequence, onTwoNodes));
      const int graphs = steps.home() + 1;
      for (bool isTight : {false, true}) {
        if (isTight)
          steps.useTightRegions();
        for (int without = 0; without + 1 < 1 << graphs; ++without) {
          auto step = steps.plan(batch(), dealt(graphs, without));
          ASSERT_TRUE(step.isOk()) << step.status().message();
          auto proven = steps.prove(*step, batch());
          ASSERT_TRUE(proven.isOk()) << proven.status().message();
          body(steps, *step, *proven);
        }
      }
    }
}

struct Bytes {
  int64_t begin, end;
};

/// What a rank uses while instruction `at` of phase `phase` runs, by looking at
/// all that come before and behind it.
std::vector<Bytes> usedAt(const Steps &steps, const plan::StepPlan &step,
                          int rank, int phase, int at) {
  struct Moment {
    int phase, index;
    bool operator<=(const Moment &o) const {
      return std::pair(phase, index) <= std::pair(o.phase, o.index);
    }
  };
  const Moment now = {phase, at};
  std::vector<Bytes> used;
  for (int k = 0; k < step.phaseCount(); ++k) {
    const plan::RankProgram &own = step.phases[k].plan.ranks[rank];
    const int graph = steps.table().find(step.phases[k].plan.graph);
    // Something before now, and something from now on.
    bool came = false, isRead = false, isBody = false, isOpen = false;
    bool waits = false;
    for (int p = 0; p < step.phaseCount(); ++p)
      for (int index = 0; index < step.phases[p].plan.ranks[rank].count();
           ++index) {
        const Instruction &i =
            step.phases[p].plan.ranks[rank].instructions[index];
        const ExchangeOp op = exchangeOf(i.op);
        const bool ofValues = op.kind == ExchangeKind::ValueSwitch;
        const Moment then = {p, index};
        const bool isPast = then <= now, isToCome = now <= then;
        if (ofValues && op.starts && i.phase == k)
          came |= isPast;
        if (ofValues && (i.phase == k || i.phase == k + 1))
          isRead |= isToCome;
        if (op.isSwitch() && !ofValues && i.phase == k)
          waits |= isToCome;
        if (p != k)
          continue;
        const bool isHead =
            op.isSwitch() && (ofValues ? i.phase == k : i.phase == k - 1);
        isOpen |= isPast && !isHead;
        if (!op.isSwitch()) {
          isBody |= isPast;
          isRead |= isToCome;
          waits |= isToCome;
        }
      }
    bool computesLater = false;
    for (int index = phase == k ? at : 0; index < own.count() && phase <= k;
         ++index)
      computesLater |= !exchangeOf(own.instructions[index].op).isSwitch();
    if (isBody && computesLater && own.dynamicBytes > 0)
      used.push_back(
          {own.places.dynamic, own.places.dynamic + own.dynamicBytes});
    if (graph == steps.home())
      continue;
    const HeldParameters &held = steps.table().held(graph, rank);
    if (came && isRead)
      used.push_back({own.places.values, own.places.values + held.values});
    if (isOpen && waits)
      used.push_back(
          {own.places.gradients, own.places.gradients + held.gradients});
  }
  return used;
}

TEST(StepMemoryTest, WhatIsUsedAtOneTimeLiesApart) {
  int64_t compared = 0;
  forSteps([&](Steps &steps, const plan::StepPlan &step,
               const VerifiedStep &proven) {
    for (int rank = 0; rank < steps.graph(0).ranks(); ++rank) {
      const int64_t bytes = stepBytes(proven.blocks(rank));
      for (int k = 0; k < step.phaseCount(); ++k)
        for (int at = 0; at < step.phases[k].plan.ranks[rank].count(); ++at) {
          const auto used = usedAt(steps, step, rank, k, at);
          for (size_t a = 0; a < used.size(); ++a) {
            ASSERT_GE(used[a].begin, 0);
            ASSERT_LE(used[a].end, bytes);
            for (size_t b = 0; b < a; ++b, ++compared)
              ASSERT_TRUE(used[a].end <= used[b].begin ||
                          used[b].end <= used[a].begin)
                  << "phase " << k << " rank " << rank << " instruction " << at;
          }
        }
    }
  });
  EXPECT_GT(compared, 100000);
}

/// Regions that are said to be enough are, and with those that are said to be the
/// most hardly anything takes turns.
TEST(StepMemoryTest, RegionsAreAsLargeAsIsSaid) {
  int tight = 0, programs = 0, inTurn = 0;
  forSteps([&](Steps &steps, const plan::StepPlan &step,
               const VerifiedStep &proven) {
    const RegionNeed need = steps.needOf(step);
    auto joined = [&](const std::vector<int64_t> &regions) {
      plan::StepPlan again = step;
      for (plan::Phase &phase : again.phases)
        for (plan::RankProgram &program : phase.plan.ranks)
          program.instructions.erase(
              std::remove_if(program.instructions.begin(),
                             program.instructions.end(),
                             [](const Instruction &i) {
                               return exchangeOf(i.op).isSwitch();
                             }),
              program.instructions.end());
      EXPECT_OK(joinPhases(steps.table(), true, again));
      plan::StepPlan placed = again;
      EXPECT_OK(placePhases(steps.table(), regions, placed));
      return std::pair(again, placed);
    };
    auto [before, roomy] = joined(need.most);
    auto [again, small] = joined(need.least);
    for (int rank = 0; rank < steps.graph(0).ranks(); ++rank) {
      EXPECT_LE(need.least[rank], need.most[rank]);
      const auto own = static_cast<size_t>(rank);
      if (!steps.regionBytes().empty())
        EXPECT_LE(stepBytes(proven.blocks(rank)), need.least[own]);
      bool takesTurns = false;
      for (int k = 0; k < step.phaseCount(); ++k) {
        const auto &all = before.phases[k].plan.ranks[rank].instructions;
        ++programs;
        inTurn += !(roomy.phases[k].plan.ranks[rank].instructions == all);
        takesTurns |= !(small.phases[k].plan.ranks[rank].instructions == all);
      }
      tight += takesTurns;
    }
  });
  EXPECT_GT(tight, 50);
  // Where three phases meet at one end, holes may be left.
  EXPECT_LT(inTurn, programs / 5);
}

/// What a run sizes for all its graphs holds steps that some have no samples in: then
/// graphs that are never next to each other in a whole step are. Samples are short,
/// so that layouts side by side, and what is passed on, take the most.
TEST(StepMemoryTest, RegionsHoldStepsWithoutSomeGraphs) {
  const MiniBatch small = tinyBatch({1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1}, 1);
  int apart = 0;
  for (const std::vector<std::string> &sequence :
       {std::vector<std::string>{"dp=4", "pp=4,layers=2+1+1+1", "dp=4,zero=1",
                                 "pp=4,layers=1+1+2+1"},
        {"dp=2,tp=2", "pp=4,layers=1+1+1+2", "dp=4", "pp=4,layers=1+1+2+1"},
        {"dp=2,pp=2,layers=3+2", "tp=4,sp=1", "pp=4,layers=1+2+1+1", "tp=4"},
        {"dp=4", "tp=4"},
        {"pp=4,layers=2+1+1+1", "dp=4,zero=1"},
        {"tp=4", "dp=4"},
        {"dp=4", "dp=2,pp=2,layers=3+2,order=tp+pp+dp", "tp=4"}})
    for (bool onTwoNodes : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(sequence));
      Steps steps(sequence, plan::BF16, carriageOf(sequence, onTwoNodes));
      const int graphs = steps.home() + 1;
      std::vector<int> phaseOf;
      for (size_t s = 0; s < small.samples.size(); ++s)
        phaseOf.push_back(static_cast<int>(s) % graphs);
      auto whole = steps.plan(small, phaseOf);
      ASSERT_TRUE(whole.isOk()) << whole.status().message();
      const std::vector<int64_t> regions = steps.needOf(*whole).least;
      for (int without = 0; without + 1 < 1 << graphs; ++without) {
        std::vector<int> used = phaseOf;
        for (int &phase : used)
          if (without >> phase & 1)
            phase = -1;
        auto step = steps.plan(small, used);
        ASSERT_TRUE(step.isOk()) << step.status().message();
        EXPECT_OK(placePhases(steps.table(), regions, *step));
      }
      for (int rank = 0; rank < steps.graph(0).ranks(); ++rank) {
        std::vector<int> order(graphs);
        std::iota(order.begin(), order.end(), 0);
        const Neighbours most =
            largestNeighbours(steps.table(), order, rank, /*trains=*/true);
        apart += most.behind == 2 && most.before == 0 &&
                 most.bytes == regions[static_cast<size_t>(rank)];
      }
    }
  EXPECT_GT(apart, 0) << "neighbours in whole steps take more";
}

/// What is delivered so, and goes straight between other ranks, goes by rank 0.
SwitchPlan byRankZero(SwitchPlan direct, Delivery delivery,
                      const std::vector<SwitchTensor> &tensors) {
  SwitchPlan made;
  std::vector<int> places; // of the direct plan's buckets
  for (SwitchBucket &bucket : direct.buckets) {
    places.push_back(static_cast<int>(made.buckets.size()));
    if (bucket.after >= 0)
      bucket.after = places[static_cast<size_t>(bucket.after)];
    SwitchBucket on;
    for (SwitchTransfer &t : bucket.transfers)
      if (tensors[static_cast<size_t>(t.tensor)].delivery == delivery &&
          t.source == SwitchPlace::Old && t.target == SwitchPlace::New &&
          t.from != 0 && t.to != 0 && t.from != t.to) {
        on.transfers.push_back(t);
        on.transfers.back().from = 0;
        on.transfers.back().source = SwitchPlace::Passing;
        t.to = 0;
        t.target = SwitchPlace::Passing;
      }
    on.after = places.back();
    made.buckets.push_back(std::move(bucket));
    if (!on.transfers.empty())
      made.buckets.push_back(std::move(on));
  }
  return made;
}
StatusOr<SwitchPlan>
gradientsByRankZero(const std::vector<SwitchTensor> &tensors) {
  SwitchNetwork network;
  network.ranks = network.ranksPerNode = 4;
  network.insideRate = network.betweenRate = 1e9;
  DYNA_ASSIGN_OR_RETURN(SwitchPlan direct, planSwitch(tensors, network));
  return byRankZero(std::move(direct), Delivery::Once, tensors);
}
/// Nobody hands values on that he gets to keep.
StatusOr<SwitchPlan>
valuesByRankZero(const std::vector<SwitchTensor> &tensors) {
  DYNA_ASSIGN_OR_RETURN(SwitchPlan direct, planNaively(tensors));
  return byRankZero(std::move(direct), Delivery::All, tensors);
}

/// In steps whose micro-batches need nothing, what rank 0 passes on is more than what
/// it has while it computes.
TEST(StepMemoryTest, RegionsHoldWhatIsPassedOnHome) {
  const MiniBatch small = tinyBatch({1, 1, 2, 1}, 1);
  int larger = 0;
  for (const std::vector<std::string> &pair :
       {std::vector<std::string>{"tp=4", "dp=4,zero=1"},
        {"pp=4,layers=1+1+1+2", "dp=4,zero=1"},
        {"dp=2,tp=2", "dp=4,zero=1"},
        {"pp=4,layers=1+1+1+2", "tp=4"}}) {
    SCOPED_TRACE(testing::PrintToString(pair));
    Steps steps(pair, plan::BF16, {gradientsByRankZero});
    auto step = steps.plan(small, {0, 0, 0, 1});
    ASSERT_TRUE(step.isOk()) << step.status().message();
    for (plan::Phase &phase : step->phases)
      for (plan::RankProgram &program : phase.plan.ranks)
        program.dynamicBytes = 0;
    std::vector<int64_t> regions = steps.needOf(*step).least;
    EXPECT_OK(placePhases(steps.table(), regions, *step));
    if (const HeldParameters &held = steps.table().held(0, 0);
        regions[0] > held.values + held.gradients) {
      ++larger;
      EXPECT_EQ(regions[0],
                held.gradients +
                    steps.table().gradients(0).sides[0].passedBytes);
    }
    regions[0] -= 64;
    EXPECT_FALSE(placePhases(steps.table(), regions, *step).isOk());
  }
  EXPECT_GT(larger, 0);
}

/// Rank 0 passes values on from the graph before too, and more of them than where all
/// come from home.
TEST(StepMemoryTest, RegionsHoldValuesThatArePassedOn) {
  const MiniBatch small = tinyBatch({1, 1, 2, 1}, 1);
  for (const std::vector<std::string> &sequence :
       {std::vector<std::string>{"tp=4", "dp=4", "dp=4,zero=1"},
        {"tp=4", "dp=4", "pp=4,layers=2+1+1+1"},
        {"tp=4", "dp=4", "tp=2,pp=2,layers=3+2,order=tp+pp+dp"}})
    for (bool isTraining : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(sequence));
      Steps steps(sequence, plan::BF16, {valuesByRankZero});
      auto passedOn = [&](int before) {
        return steps.table().values(before, 1).sides[0].passedBytes;
      };
      EXPECT_GT(passedOn(0), passedOn(steps.home()));
      auto step = steps.plan(small, {0, 0, 1, 2}, isTraining);
      ASSERT_TRUE(step.isOk()) << step.status().message();
      for (plan::Phase &phase : step->phases)
        for (plan::RankProgram &program : phase.plan.ranks)
          program.dynamicBytes = 0;
      const std::vector<int64_t> regions = steps.needOf(*step).least;
      EXPECT_OK(placePhases(steps.table(), regions, *step));
      // Both layouts are there side by side, and what comes from one to the other.
      const auto valuesOf = [&](int graph) {
        return steps.table().held(graph, 0).values;
      };
      EXPECT_GE(regions[0], valuesOf(0) + valuesOf(1) + passedOn(0));
    }
}

/// Of two graphs none leaves a hole. What waits to be added is there while the phase
/// that it leaves still computes, and beside home's micro-batches; either are the
/// largest here.
TEST(StepMemoryTest, TwoGraphsTakeNoTurnsInTheMost) {
  const MiniBatch large = tinyBatch({2, 3, 24, 23, 22, 24, 21, 24}, 1);
  for (const std::vector<int> &phaseOf :
       {std::vector<int>{0, 0, 1, 1, 1, 1, 1, 1}, {1, 1, 0, 0, 0, 0, 0, 0}}) {
    int64_t late = 0;
    for (const std::vector<std::string> &pair :
         {std::vector<std::string>{"dp=2", "tp=2"},
          {"tp=2", "dp=2"},
          {"tp=2", "dp=2,zero=1"},
          {"dp=2", "pp=2,layers=2+3"},
          {"pp=2,layers=2+3", "dp=2"},
          {"pp=2,layers=2+3", "tp=2"},
          {"tp=4", "dp=4"},
          {"dp=4", "dp=2,tp=2,zero=1"}}) {
      SCOPED_TRACE(testing::PrintToString(pair));
      Steps steps(pair, plan::BF16);
      auto step = steps.plan(large, phaseOf);
      ASSERT_TRUE(step.isOk()) << step.status().message();
      plan::StepPlan placed = *step;
      EXPECT_OK(placePhases(steps.table(), steps.needOf(*step).most, placed));
      for (int rank = 0; rank < steps.graph(0).ranks(); ++rank) {
        for (int k = 0; k < 2; ++k)
          EXPECT_TRUE(placed.phases[k].plan.ranks[rank].instructions ==
                      step->phases[k].plan.ranks[rank].instructions)
              << "phase " << k << " rank " << rank;
        if (addsLate(step->phases[1].plan, 0, rank))
          late += steps.table().gradients(0).sides[rank].gotBytes;
      }
    }
    EXPECT_GT(late, 0) << "there is nothing to be counted";
  }
}

/// What a program begins with is waited for before anything is computed.
TEST(StepMemoryTest, GradientsAreLateBehindWhatIsComputed) {
  plan::Plan home;
  home.microBatches.resize(1);
  home.ranks.resize(1);
  std::vector<Instruction> &program = home.ranks[0].instructions;
  Instruction wait, forward;
  wait.op = Instruction::SWITCH_GRADS_WAIT;
  wait.phase = 0;
  forward.op = Instruction::FORWARD;
  program = {wait, forward};
  EXPECT_FALSE(addsLate(home, 0, 0));
  program = {forward, wait};
  EXPECT_TRUE(addsLate(home, 0, 0));
  program = {wait, forward, wait};
  EXPECT_TRUE(addsLate(home, 0, 0));
  home.microBatches.clear(); // nothing is added to meanwhile
  EXPECT_FALSE(addsLate(home, 0, 0));
}

/// What ranks really touch of their regions is what the plan says they need.
TEST(StepMemoryTest, TouchedBytesAreThoseOfThePlan) {
  for (const auto &sequence : sequences)
    for (bool isTight : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(sequence));
      Steps steps(sequence, plan::BF16, carriageOf(sequence, true));
      if (isTight)
        steps.useTightRegions();
      const auto phaseOf = dealt(steps.home() + 1, 0);
      auto step = steps.plan(batch(), phaseOf);
      ASSERT_TRUE(step.isOk()) << step.status().message();
      auto proven = steps.prove(*step, batch());
      ASSERT_TRUE(proven.isOk()) << proven.status().message();
      steps.run(batch(), phaseOf, 0);
      for (size_t local = 0; local < steps.team().localRanks(); ++local) {
        const int64_t bytes =
            stepBytes(proven->blocks(static_cast<int>(local)));
        EXPECT_EQ(steps.team().lastResult(local).dynamicBytes, bytes);
        const int64_t touched =
            steps.team().executor(local).memoryReport().touchedEnd;
        EXPECT_LE(touched, bytes);
        // Padding of the last tensor or block.
        EXPECT_GT(touched, bytes - 2048);
      }
    }
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

class StepMemoryRules : public testing::Test {
protected:
  static Steps &steps() {
    static Steps steps({"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"},
                       plan::F64);
    return steps;
  }
  static plan::StepPlan good() { return *steps().plan(batch(), dealt(3, 0)); }
  static std::string refusal(plan::StepPlan step) {
    return steps().prove(std::move(step), batch()).status().message();
  }
  static plan::PhasePlaces &places(plan::StepPlan &step, int phase) {
    return step.phases[phase].plan.ranks[1].places;
  }
};

TEST_F(StepMemoryRules, EverythingHasAPlaceAndNothingElseHas) {
  EXPECT_EQ(refusal(good()), "");
  plan::StepPlan step = good();
  places(step, 0).values = plan::noPlace;
  EXPECT_EQ(refusal(step),
            "plan: phase 0 rank 1: has no place for its values (P6)");
  step = good();
  places(step, 1).gradients = plan::noPlace;
  EXPECT_THAT(refusal(step), HasSubstr("has no place for its gradients (P6)"));
  step = good();
  places(step, 2).values = 0;
  EXPECT_THAT(
      refusal(step),
      HasSubstr(
          "has the place 0 for its values, of which there are none (P6)"));
  step = good();
  places(step, 0).valueTransit = 64;
  EXPECT_THAT(refusal(step), HasSubstr("of which there are none (P6)"));
  for (int64_t off : {1, -(1 << 30)}) {
    step = good();
    places(step, 0).gradients += off;
    EXPECT_THAT(refusal(step), HasSubstr("negative or not a multiple"));
  }
}

TEST_F(StepMemoryRules, WhatIsThereAtOneTimeLiesApart) {
  // Each pair of what meets, put to one place.
  plan::StepPlan step = good();
  places(step, 0).gradients = places(step, 0).values;
  EXPECT_THAT(refusal(step), HasSubstr("in use (P7)"));
  step = good();
  places(step, 1).values = places(step, 0).values;
  EXPECT_THAT(refusal(step), HasSubstr(", over the "));
  step = good();
  places(step, 1).dynamic = places(step, 0).gradients;
  EXPECT_THAT(refusal(step), HasSubstr("of phase 0 at offset"));
  step = good();
  places(step, 2).dynamic = places(step, 1).gradients;
  EXPECT_THAT(refusal(step), HasSubstr("(P7)"));
}

TEST_F(StepMemoryRules, AllLiesInTheRegion) {
  const plan::StepPlan step = good();
  auto proven = steps().prove(step, batch());
  ASSERT_TRUE(proven.isOk());
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < 2; ++rank)
    bytes.push_back(stepBytes(proven->blocks(rank)));
  auto within = [&] {
    return VerifiedStep::prove(steps().table(), step, batch().lengths(),
                               batch().targets, bytes)
        .status()
        .message();
  };
  EXPECT_EQ(within(), "");
  --bytes[1];
  EXPECT_THAT(within(), HasSubstr("rank 1: has its"));
  EXPECT_THAT(within(), HasSubstr("but the limit is "));
  EXPECT_THAT(within(), HasSubstr("(P8)"));
}

/// An instruction may read what it is the last to need while it writes what it is
/// the first to.
TEST(StepMemoryTest, WhatMeetsInAnInstructionLiesApart) {
  plan::StepPlan step;
  step.phases.resize(1);
  step.phases[0].plan.ranks.resize(1);
  plan::PhasePlaces &places = step.phases[0].plan.ranks[0].places;
  places.values = 0;
  for (int64_t place : {0, 64})
    for (int first : {2, 3, 4, 5}) {
      places.gradients = place;
      const std::vector<StepBlock> blocks = {
          {StepBlockKind::Values, 0, 128, 0, 1, 3},
          {StepBlockKind::Gradients, 0, 128, place, first, 5}};
      int phase = -1;
      const Status status = checkStepMemory(step, blocks, 0, 1024, phase);
      EXPECT_EQ(status.isOk(), first > 3) << status.message();
    }
}

/// What waits longer lies longer: places that were right are not any more.
TEST_F(StepMemoryRules, TurnsAreProven) {
  int taken = 0;
  for (const auto &sequence : sequences) {
    Steps steps(sequence, plan::BF16);
    const auto phaseOf = dealt(steps.home() + 1, 0);
    const plan::StepPlan hidden = *steps.plan(batch(), phaseOf);
    steps.useTightRegions();
    const plan::StepPlan inTurn = *steps.plan(batch(), phaseOf);
    ASSERT_TRUE(steps.prove(inTurn, batch()).isOk());
    for (int rank = 0; rank < steps.graph(0).ranks(); ++rank) {
      plan::StepPlan step = inTurn;
      bool isSame = true;
      for (int k = 0; k < step.phaseCount(); ++k) {
        auto &own = step.phases[k].plan.ranks[rank].instructions;
        const auto &other = hidden.phases[k].plan.ranks[rank].instructions;
        isSame &= own == other;
        own = other;
      }
      if (isSame)
        continue;
      ++taken;
      EXPECT_THAT(steps.prove(step, batch()).status().message(),
                  HasSubstr("(P"));
    }
  }
  EXPECT_GT(taken, 0);
}

TEST_F(StepMemoryRules, RegionsThatAreTooSmallAreRefusedWithNumbers) {
  plan::StepPlan step = good();
  const RegionNeed need = steps().needOf(step);
  std::vector<int64_t> small = need.least;
  for (int64_t &bytes : small)
    bytes = bytes / 2 / 64 * 64;
  const Status status = placePhases(steps().table(), small, step);
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("of rank 0 beside what it has of "
                                          "home, but there are"));
}

TEST_F(StepMemoryRules, PlansThatStandAloneHaveNoPlacesOfPhases) {
  Planner planner(steps().graph(2));
  plan::Plan plan = *planner.training(batch().lengths(), batch().targets, {});
  auto message = [&] {
    return verifyPlan(steps().graph(2), plan, batch().lengths(), {}).message();
  };
  EXPECT_EQ(message(), "");
  plan.ranks[1].places.dynamic = 64;
  EXPECT_THAT(message(), HasSubstr("has places of a phase, but stands alone"));
}

} // namespace
