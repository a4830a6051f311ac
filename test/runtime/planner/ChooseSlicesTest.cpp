//===- ChooseSlicesTest.cpp - Slices that costs find worth it -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/base/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/slice/SliceBaselines.h"
#include "runtime/planner/slice/SliceTokens.h"
#include "runtime/sim/PlanTimes.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <set>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// The tiny model with so many positions, whose blocks attend.
Model attendingModel(bool isCausal = true, int64_t flopsPerPair = 64) {
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_facts()->set_positions(1 << 14);
  plan::LayerKind *block = manifest.mutable_kinds(1);
  block->set_attention_flops_per_pair(flopsPerPair);
  block->set_causal(isCausal);
  block->set_key_bytes(64);
  block->set_key_gradient_bytes(64);
  manifest.set_hash(manifestHash(manifest));
  return *Model::create(manifest);
}

PlanOptions automatic(Schedule schedule = Schedule::Adaptive) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 4096;
  options.longestSample = 1 << 14;
  options.schedule = schedule;
  options.inFlight = 8;
  options.slices.policy = SlicePolicy::Auto;
  return options;
}

class ChooseSlicesTest : public testing::Test {
protected:
  plan::Plan planOf(const std::string &strategy,
                    const std::vector<int64_t> &lengths,
                    const PlanOptions &options) {
    graph_ = *ExecutableGraph::create(model_, *parseStrategy(strategy));
    const int64_t targets =
        std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
    auto plan = Planner(*graph_).training(lengths, targets, options);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    const Status status = verifyPlan(*graph_, *plan, lengths, {});
    EXPECT_TRUE(status.isOk()) << status.message();
    return *plan;
  }
  double makespan(const plan::Plan &plan) {
    return timePlan(*graph_, plan, CostModel(model_))->makespan;
  }
  static bool isSliced(const plan::Plan &plan) {
    bool any = false;
    for (const plan::MicroBatch &microBatch : plan.microBatches)
      any |= continuesSample(microBatch);
    return any;
  }

  const Model model_ = attendingModel();
  std::optional<ExecutableGraph> graph_;
};

TEST_F(ChooseSlicesTest, OneLongSampleIsSliced) {
  for (Schedule schedule :
       {Schedule::Adaptive, Schedule::OneForwardOneBackward, Schedule::GPipe}) {
    PlanOptions options = automatic(schedule);
    const plan::Plan sliced = planOf("pp=2,layers=3+2", {8192}, options);
    EXPECT_TRUE(isSliced(sliced));
    options.slices = {};
    const plan::Plan whole = planOf("pp=2,layers=3+2", {8192}, options);
    EXPECT_FALSE(isSliced(whole));
    // Two stages with much in flight take little more than half of one after the other.
    EXPECT_LT(makespan(sliced), 0.8 * makespan(whole));
  }
}

TEST_F(ChooseSlicesTest, WhatCannotGainStaysWhole) {
  PlanOptions options = automatic();
  EXPECT_FALSE(isSliced(planOf("dp=1", {8192}, options)));
  EXPECT_FALSE(isSliced(planOf("pp=2,layers=3+2", {40, 20}, options)));
  // A step of many samples fills the pipeline by itself.
  options.maxTokensPerMicroBatch = 64;
  EXPECT_FALSE(isSliced(
      planOf("pp=2,layers=3+2", std::vector<int64_t>(256, 64), options)));
}

TEST_F(ChooseSlicesTest, StepsAreNotSlower) {
  Draw draw(3);
  double gained = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<int64_t> lengths;
    for (int n = 1 + draw.below(12); n > 0; --n)
      lengths.push_back(draw.below(4) ? 1 + draw.below(800)
                                      : 1 + draw.below(12000));
    const char *strategies[] = {"pp=2,layers=3+2", "pp=3,layers=2+2+1",
                                "dp=2,pp=2,layers=2+3"};
    PlanOptions options = automatic();
    const std::string strategy = strategies[round % 3];
    const plan::Plan chosen = planOf(strategy, lengths, options);
    const double sliced = makespan(chosen);
    options.slices = {};
    const plan::Plan unsliced = planOf(strategy, lengths, options);
    const double whole = makespan(unsliced);
    EXPECT_LE(sliced, whole);
    if (!isSliced(chosen))
      EXPECT_TRUE(writePlan(chosen) == writePlan(unsliced));
    gained += whole / sliced - 1;
  }
  EXPECT_GT(gained / 30, 0.1);
}

/// Slices are compared by the formula of equal stages, under GPipe.
TEST_F(ChooseSlicesTest, PoliciesWithoutANumberHaveTheBest) {
  const std::vector<int64_t> lengths = {8192, 300, 200, 3000};
  for (const char *name : {"uniform", "seq1f1b", "chunkflow"}) {
    PlanOptions options = automatic(Schedule::GPipe);
    options.slices = *parseSlices(name);
    const auto best = planOf("pp=2,layers=3+2", lengths, options).microBatches;
    double shortest = std::numeric_limits<double>::infinity();
    bool isOneOfThem = false;
    const bool isChunks = name == std::string("chunkflow");
    for (int64_t number = isChunks ? 512 : 1; number <= (isChunks ? 4096 : 128);
         number *= 2) {
      options.slices = *parseSlices(formatText("%s:%d", name, number));
      const plan::Plan plan = planOf("pp=2,layers=3+2", lengths, options);
      shortest = std::min(shortest, makespan(plan));
      isOneOfThem |= plan.microBatches == best;
    }
    EXPECT_TRUE(isOneOfThem) << name;
    options.slices = *parseSlices(name);
    EXPECT_LE(makespan(planOf("pp=2,layers=3+2", lengths, options)),
              1.1 * shortest)
        << name;
  }
}

/// Published cuts are among what is compared, or near it.
TEST_F(ChooseSlicesTest, BaselinesAreNotFaster) {
  Draw draw(4);
  double mean = 0;
  constexpr int rounds = 12;
  for (int round = 0; round < rounds; ++round) {
    std::vector<int64_t> lengths = {4000 + draw.below(12000)};
    for (int n = draw.below(8); n > 0; --n)
      lengths.push_back(1 + draw.below(2500));
    PlanOptions options = automatic();
    const char *strategy =
        round % 2 ? "pp=3,layers=2+2+1" : "dp=2,pp=2,layers=2+3";
    const double chosen = makespan(planOf(strategy, lengths, options));
    double best = PlanWriter::never;
    for (const char *words : {"exact", "terapipe", "uniform:8", "seq1f1b:8",
                              "chunkflow:512", "chunkflow:1024"}) {
      options.slices = *parseSlices(words);
      best = std::min(best, makespan(planOf(strategy, lengths, options)));
    }
    EXPECT_LE(chosen, 1.05 * best) << round;
    mean += chosen / best / rounds;
  }
  EXPECT_LE(mean, 1.01);
}

/// Cuts have every token once, in the order of their seconds by the closed form.
TEST_F(ChooseSlicesTest, CutsAreSortedByTheClosedForm) {
  graph_ = *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const PlanOptions options = automatic();
  const CostModel costs(model_);
  const StageTables tables(*graph_, costs, options, true, 1 << 14);
  const SliceTimes times{tables, {0, 1}, [](const Load &load) {
                           return 1e-9 * static_cast<double>(load.queries);
                         }};
  Draw draw(5);
  for (int round = 0; round < 10; ++round) {
    std::vector<plan::MicroBatch> whole(2);
    std::map<int64_t, int64_t> lengths;
    for (int64_t sample = 0; sample < 6; ++sample) {
      lengths[sample] = 1 + draw.below(sample == 0 ? 9000 : 900);
      plan::MicroBatch &own = whole[sample > 0];
      own.segments.push_back({sample, 0, lengths[sample]});
    }
    auto cuts = slicesByCost(whole, times, /*replicas=*/1);
    ASSERT_TRUE(cuts.isOk()) << cuts.status().message();
    EXPECT_GT(cuts->size(), 3u);
    double before = 0;
    for (const TimedCut &one : *cuts) {
      std::map<int64_t, int64_t> tokens;
      double sum = 0, forward = 0, backward = 0;
      for (const plan::MicroBatch &microBatch : one.cut) {
        const Load load = loadOf(microBatch);
        double f = 0, b = 0;
        for (int stage : {0, 1}) {
          f = std::max(f, tables.forward(stage, load));
          b = std::max(b, tables.backward(stage, load));
        }
        f += times.message(load);
        b += times.message(load);
        sum += f + b;
        forward = std::max(forward, f);
        backward = std::max(backward, b);
        for (const plan::Segment &segment : microBatch.segments) {
          EXPECT_EQ(segment.begin, tokens[segment.sample]);
          tokens[segment.sample] += segment.length;
        }
      }
      EXPECT_EQ(tokens, lengths);
      EXPECT_NEAR(one.seconds, sum + forward + backward, 1e-12);
      EXPECT_GE(one.seconds, before);
      before = one.seconds;
    }
  }
}

/// Cuts by the closed form alone, where pairs cost much more than tokens: a cut that does
/// not know its context is a bad one.
class CutsByCostTest : public testing::Test {
protected:
  using Whole = std::vector<plan::MicroBatch>;

  SliceCost costOf(const Load &load) const {
    SliceCost cost;
    for (int stage : {0, 1}) {
      cost.forward = std::max(cost.forward, tables_.forward(stage, load));
      cost.backward = std::max(cost.backward, tables_.backward(stage, load));
    }
    cost.forward += times_.message(load);
    cost.backward += times_.message(load);
    return cost;
  }
  double secondsOf(const MicroBatches &cut) const {
    double sum = 0, forward = 0, backward = 0;
    for (const plan::MicroBatch &microBatch : cut) {
      const SliceCost cost = costOf(loadOf(microBatch));
      sum += cost.forward + cost.backward;
      forward = std::max(forward, cost.forward);
      backward = std::max(backward, cost.backward);
    }
    return sum + forward + backward;
  }
  /// One slice after the other, of samples of these lengths; none of tokens below 1.
  static Whole slicesOf(const std::vector<std::vector<int64_t>> &samples) {
    Whole cut;
    for (size_t sample = 0; sample < samples.size(); ++sample) {
      int64_t begin = 0;
      for (int64_t tokens : samples[sample]) {
        cut.push_back({{{static_cast<int64_t>(sample), begin, tokens}}, 0});
        begin += tokens;
      }
    }
    return cut;
  }
  MicroBatches cutOf(const Whole &whole, const char *words,
                     int64_t mostChunk = 4096) const {
    auto cut = slicesByPolicy(whole, times_, 1, *parseSlices(words), mostChunk);
    EXPECT_TRUE(cut.isOk()) << cut.status().message();
    return *cut;
  }
  std::vector<TimedCut> cutsOf(const Whole &whole, int replicas = 1) const {
    auto cuts = slicesByCost(whole, times_, replicas);
    EXPECT_TRUE(cuts.isOk()) << cuts.status().message();
    return *cuts;
  }

  const Model model_ = attendingModel(/*isCausal=*/true, 1 << 20);
  const CostModel costs_{model_};
  const ExecutableGraph graph_ =
      *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const StageTables tables_{graph_, costs_, automatic(), true, 1 << 14};
  double fixed_ = 0; ///< seconds of each message
  const SliceTimes times_{tables_, {0, 1}, [this](const Load &load) {
                            return fixed_ +
                                   1e-9 * static_cast<double>(load.queries);
                          }};
};

// Every other cut into rows of memory, timed by the loads of its slices, takes as long.
TEST_F(CutsByCostTest, NoCutIsBetterThanTheExactOne) {
  Draw draw(7);
  for (int round = 0; round < 20; ++round) {
    const int64_t length = 33 + draw.below(320);
    const Whole whole = {{{{0, 0, length}}, 0},
                         {{{1, 0, 1 + draw.below(99)}, {2, 0, 30}}, 0}};
    const int gaps = static_cast<int>((length - 1) / DYNA_ROW_ALIGNMENT);
    double best = std::numeric_limits<double>::infinity();
    for (int ends = 0; ends < 1 << gaps; ++ends) {
      std::vector<int64_t> slices = {0};
      for (int unit = 0; unit <= gaps; ++unit) {
        const int64_t begin = static_cast<int64_t>(unit) * DYNA_ROW_ALIGNMENT;
        if (unit > 0 && (ends >> (unit - 1) & 1))
          slices.push_back(0);
        slices.back() += std::min<int64_t>(DYNA_ROW_ALIGNMENT, length - begin);
      }
      Whole cut = slicesOf({slices});
      cut.push_back(whole[1]);
      best = std::min(best, secondsOf(cut));
    }
    EXPECT_NEAR(secondsOf(cutOf(whole, "exact")) / best, 1, 1e-12) << length;
  }
}

// Work counts tokens and visible pairs: here slices of equal work take as long. Later
// ones have fewer tokens.
TEST_F(CutsByCostTest, SlicesOfEqualWorkTakeAsLong) {
  const MicroBatches cut = cutOf({{{{0, 0, 8192}}, 0}}, "seq1f1b:4");
  ASSERT_EQ(cut.size(), 4u);
  const double first = secondsOf({cut[0]});
  for (size_t i = 1; i < cut.size(); ++i) {
    EXPECT_NEAR(secondsOf({cut[i]}) / first, 1, 0.1) << i;
    EXPECT_LT(cut[i].segments[0].length, cut[i - 1].segments[0].length);
  }
}

// As many slices as were asked for, however long the sample is.
TEST_F(CutsByCostTest, SlicesAreAsManyAsAskedFor) {
  for (int64_t length : {1000, 4096, 16000})
    for (int64_t count : {48, 100, 700}) {
      const Whole whole = {{{{0, 0, length}}, 0}};
      const std::string words = formatText("uniform:%d", count);
      const Whole slices = cutOf(whole, words.c_str());
      ASSERT_EQ(slices.size(), static_cast<size_t>(count));
      for (const plan::MicroBatch &slice : slices) {
        EXPECT_GE(slice.segments[0].length, length / count);
        EXPECT_LE(slice.segments[0].length, length / count + 1);
      }
      EXPECT_EQ(cutOf(whole, formatText("seq1f1b:%d", count).c_str()).size(),
                static_cast<size_t>(count));
    }
}

// Where a slice has hardly fixed costs, the largest number of slices that is tried is
// the best, and the smallest chunk.
TEST_F(CutsByCostTest, NumbersAreTriedToTheEnd) {
  const Whole whole = {{{{0, 0, 16384}}, 0}};
  EXPECT_EQ(cutOf(whole, "uniform").size(), 128u);
  EXPECT_EQ(cutOf(whole, "seq1f1b"), cutOf(whole, "seq1f1b:128"));
  EXPECT_EQ(cutOf(whole, "chunkflow"), cutOf(whole, "chunkflow:512"));
  // No slice is smaller than the rows that memory is rounded to.
  EXPECT_EQ(cutOf({{{{0, 0, 2048}}, 0}}, "uniform").size(), 64u);
}

// What `auto` compares: the exact cut, with the fill of the pipeline once and four
// times, alone and behind bundles of each size; equal slices and chunks of each size.
TEST_F(CutsByCostTest, AllKindsOfCutsAreCompared) {
  fixed_ = costOf(loadOfSample(400)).forward;
  const std::vector<int64_t> lengths = {8192, 700, 300, 120, 40};
  const Whole whole = {{{{0, 0, 8192}}, 0},
                       {{{1, 0, 700}, {4, 0, 40}}, 0},
                       {{{2, 0, 300}, {3, 0, 120}}, 0}};
  const std::vector<TimedCut> cuts = cutsOf(whole);
  const auto isCompared = [&](const MicroBatches &cut) {
    return std::any_of(cuts.begin(), cuts.end(),
                       [&](const TimedCut &one) { return one.cut == cut; });
  };
  const auto exact = [&](std::vector<std::vector<int64_t>> bundles,
                         int stages) {
    SliceProblem problem;
    problem.lengths = lengths;
    problem.bundles = std::move(bundles);
    problem.options.stages = stages;
    problem.options.grain = 128; // 1/64 of the longest sample
    problem.costs.slice = [&](const SliceShape &shape) {
      return costOf(loadOf(TokenRange{shape.begin, shape.tokens},
                           TokenRange{0, shape.begin + shape.tokens}));
    };
    problem.costs.bundle = [&](const std::vector<int64_t> &own, int) {
      Load load;
      for (int64_t length : own)
        load += loadOfSample(length);
      return costOf(load);
    };
    const SlicePlan plan = *sliceTokens(problem);
    MicroBatches cut;
    for (const SampleCut &one : plan.cuts) {
      int64_t begin = 0;
      for (const TokenSlice &slice : one.slices) {
        cut.push_back({{{one.samples[0], begin, slice.tokens}}, 0});
        begin += slice.tokens;
      }
    }
    for (const SliceBundle &bundle : plan.bundles) {
      plan::MicroBatch &microBatch = cut.emplace_back();
      for (int64_t sample : bundle.samples)
        microBatch.segments.push_back({sample, 0, lengths[sample]});
    }
    return cut;
  };
  for (int stages : {2, 5})
    EXPECT_TRUE(isCompared(exact({{1, 4}, {2, 3}}, stages))) << stages;
  EXPECT_FALSE(exact({{1, 4}, {2, 3}}, 2) == exact({{1, 4}, {2, 3}}, 5));
  for (int64_t tokens = 4096; tokens >= 128; tokens /= 2) {
    SCOPED_TRACE(tokens);
    SliceChoice equal;
    equal.lengths = {tokens};
    EXPECT_TRUE(isCompared(sliceMicroBatches(whole, equal)));
    EXPECT_TRUE(
        isCompared(cutOf(whole, formatText("chunkflow:%d", tokens).c_str())));
    for (int stages : {2, 5})
      EXPECT_TRUE(isCompared(exact(packBundles(lengths, tokens), stages)));
  }
}

// Smaller bundles alone are no slices.
TEST_F(CutsByCostTest, EveryCutHasSlices) {
  Whole whole(1);
  for (int64_t sample = 0; sample < 8; ++sample)
    whole[0].segments.push_back({sample, 0, 512});
  const std::vector<TimedCut> cuts = cutsOf(whole);
  EXPECT_FALSE(cuts.empty());
  for (const TimedCut &one : cuts)
    EXPECT_TRUE(std::any_of(one.cut.begin(), one.cut.end(), continuesSample));
}

// Slices are timed by the clock for the replica that takes longest alone.
TEST_F(CutsByCostTest, TheSlowestReplicaIsKnown) {
  for (int slow : {0, 1}) {
    const std::vector<TimedCut> cuts =
        cutsOf({{{{0, 0, slow == 0 ? 9000 : 4000}}, 0},
                {{{1, 0, slow == 1 ? 9000 : 4000}}, 1}},
               /*replicas=*/2);
    ASSERT_FALSE(cuts.empty());
    for (const TimedCut &one : cuts) {
      MicroBatches own;
      for (const plan::MicroBatch &microBatch : one.cut)
        if (microBatch.replica == slow)
          own.push_back(microBatch);
      EXPECT_EQ(one.slowest, slow);
      EXPECT_NEAR(one.seconds, secondsOf(own), 1e-12);
    }
  }
}

/// In memory that holds little more than one sample.
TEST_F(ChooseSlicesTest, SlicesStayWithinLimits) {
  for (int64_t percent : {100, 60, 40}) {
    graph_ =
        *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
    PlanOptions options = automatic();
    Planner planner(*graph_);
    const auto most = *planner.largestDynamicBytes(options, true);
    const auto least = *planner.leastDynamicBytes(options, true);
    for (size_t rank = 0; rank < most.size(); ++rank)
      options.dynamicLimits.push_back(
          std::max(least[rank], most[rank] * percent / 100 / 64 * 64));
    const plan::Plan plan =
        planOf("pp=2,layers=3+2", {16384, 9000, 30, 500}, options);
    for (int rank = 0; rank < plan.rankCount(); ++rank)
      EXPECT_LE(plan.ranks[rank].dynamicBytes, options.dynamicLimits[rank]);
  }
}

/// Regions are sized before the number of slices, or of tokens of a chunk, is chosen.
TEST_F(ChooseSlicesTest, PoliciesWithoutANumberHaveRegions) {
  graph_ = *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  Planner planner(*graph_);
  for (const char *name : {"uniform", "seq1f1b", "chunkflow"}) {
    PlanOptions options = automatic();
    options.slices = *parseSlices(name);
    auto most = planner.largestDynamicBytes(options, true);
    auto least = planner.leastDynamicBytes(options, true);
    ASSERT_TRUE(most.isOk() && least.isOk()) << name;
    options.dynamicLimits = *most;
    const plan::Plan plan =
        planOf("pp=2,layers=3+2", {16384, 9000, 30, 500}, options);
    for (int rank = 0; rank < plan.rankCount(); ++rank) {
      EXPECT_LE(plan.ranks[rank].dynamicBytes, (*most)[rank]) << name;
      EXPECT_LE((*least)[rank], (*most)[rank]) << name;
    }
  }
}

/// Recomputation makes room for slices. Free choice is not slower than any one mode.
TEST_F(ChooseSlicesTest, ModesAreChosenWithTheCut) {
  const std::string strategy = "pp=2,layers=3+2";
  const std::vector<int64_t> lengths = {16384, 9000, 30, 500};
  int mixed = 0;
  for (int64_t percent : {80, 50, 30}) {
    graph_ = *ExecutableGraph::create(model_, *parseStrategy(strategy));
    PlanOptions options = automatic();
    Planner planner(*graph_);
    const auto most = *planner.largestDynamicBytes(options, true);
    options.chooseRecompute = true;
    const auto least = *planner.leastDynamicBytes(options, true);
    for (size_t rank = 0; rank < most.size(); ++rank)
      options.dynamicLimits.push_back(
          std::max(least[rank], most[rank] * percent / 100 / 64 * 64));
    const plan::Plan chosen = planOf(strategy, lengths, options);
    std::set<plan::Recompute> modes;
    for (int rank = 0; rank < chosen.rankCount(); ++rank) {
      EXPECT_LE(chosen.ranks[rank].dynamicBytes, options.dynamicLimits[rank]);
      for (const plan::Instruction &i : chosen.ranks[rank].instructions)
        modes.insert(i.recompute);
    }
    mixed += isSliced(chosen) && modes.size() > 1;
    options.chooseRecompute = false;
    for (plan::Recompute mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
      options.recompute = {mode};
      auto fixed = planner.training(
          lengths, std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
          options);
      if (fixed.isOk())
        EXPECT_LE(makespan(chosen), 1.02 * makespan(*fixed)) << percent;
    }
  }
  EXPECT_GT(mixed, 0);
}

/// Less memory never makes a joint cut shorter, and bytes stay within it.
TEST_F(ChooseSlicesTest, JointCutsFitTheirBytes) {
  graph_ = *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const CostModel costs(model_);
  std::deque<StageTables> tables;
  ModeTimes modes;
  for (plan::Recompute mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
    PlanOptions options = automatic();
    options.recompute = {mode};
    tables.emplace_back(*graph_, costs, options, true, 1 << 14);
    const int64_t perToken = mode == plan::RECOMPUTE_NONE ? 100 : 20;
    modes.push_back(
        {{tables.back(), {0, 1}, [](const Load &) { return 0.0; }},
         [=](const Load &load) { return perToken * load.queries; }});
  }
  const std::vector<plan::MicroBatch> whole = {{{{0, 0, 8000}}, 0},
                                               {{{1, 0, 300}, {2, 0, 90}}, 0}};
  auto secondsOf = [&](const ModeCut &cut) {
    double sum = 0, forward = 0, backward = 0;
    for (size_t m = 0; m < cut.modes.size(); ++m) {
      const Load load = loadOf(cut.microBatches[m]);
      const StageTables &table = tables[cut.modes[m]];
      const double f = std::max(table.forward(0, load), table.forward(1, load));
      const double b =
          std::max(table.backward(0, load), table.backward(1, load));
      sum += f + b;
      forward = std::max(forward, f);
      backward = std::max(backward, b);
    }
    return sum + forward + backward;
  };
  double before = 0;
  const int64_t all = 100 * 8390;
  for (int64_t limit : {all, all / 2, all / 3, all / 5 + 1}) {
    auto cut = sliceWithModes(whole, 0, modes, limit);
    ASSERT_TRUE(cut.isOk()) << cut.status().message();
    EXPECT_EQ(cut->modes.size(), cut->microBatches.size());
    int64_t bytes = 0, tokens = 0;
    for (size_t m = 0; m < cut->modes.size(); ++m) {
      // 1/16 of the longest sample, in rows that memory is rounded to.
      EXPECT_EQ(cut->microBatches[m].segments[0].begin % 512, 0);
      const Load load = loadOf(cut->microBatches[m]);
      bytes += modes[cut->modes[m]].bytes(load);
      tokens += load.queries;
    }
    EXPECT_EQ(tokens, 8390);
    EXPECT_EQ(bytes, cut->bytes);
    EXPECT_LE(bytes, limit);
    EXPECT_GE(secondsOf(*cut), before * (1 - 1e-12));
    before = secondsOf(*cut);
    EXPECT_EQ(std::count(cut->modes.begin(), cut->modes.end(), 1) > 0,
              limit < all);
  }
  EXPECT_EQ(sliceWithModes(whole, 0, modes, all / 5 - 1).status().code(),
            StatusCode::ResourceExhausted);
}

TEST_F(ChooseSlicesTest, ModelsThatLookAheadAreRefused) {
  const Model model = attendingModel(/*isCausal=*/false);
  const ExecutableGraph graph =
      *ExecutableGraph::create(model, *parseStrategy("pp=2,layers=3+2"));
  PlanOptions options = automatic();
  EXPECT_THAT(Planner(graph).training({8192}, 8192, options).status().message(),
              HasSubstr("--slices needs causal attention"));
  options.slices = {};
  options.slices.count = 4;
  EXPECT_THAT(Planner(graph).training({8192}, 8192, options).status().message(),
              HasSubstr("--slices needs causal attention"));
}

/// The policy chooses slices if the request leaves them open.
class DefaultSlicesTest : public ChooseSlicesTest {
protected:
  static SliceChoice chosen(const Model &model, const CostTable &table,
                            const PlanRequest &request,
                            const std::string &strategy = "pp=2") {
    PlanRequest asked = request;
    asked.strategy = *parseStrategy(strategy);
    auto policy = choosePolicy(*CostModel::create(model, table), asked);
    EXPECT_TRUE(policy.isOk()) << policy.status().message();
    return policy->options.slices;
  }
  const CostTable devices_ = *CostTable::described("a100-40g:1x2");
};

TEST_F(DefaultSlicesTest, AdaptivePlansOfKnownDevicesAreSliced) {
  PlanRequest request;
  EXPECT_EQ(chosen(model_, devices_, request).policy, SlicePolicy::Auto);
  request.pipeline = "adaptive";
  EXPECT_EQ(chosen(model_, devices_, request).policy, SlicePolicy::Auto);
  EXPECT_FALSE(chosen(model_, devices_, request, "dp=2").any());
  request.slices = "none";
  EXPECT_FALSE(chosen(model_, devices_, request).any());
  request.slices = "3";
  EXPECT_EQ(chosen(model_, devices_, request).count, 3);
  for (const char *fixed : {"gpipe", "1f1b", "cyclic", "sequential"}) {
    request.pipeline = fixed;
    request.slices = "";
    EXPECT_FALSE(chosen(model_, devices_, request).any()) << fixed;
    request.slices = "auto";
    EXPECT_EQ(chosen(model_, devices_, request).policy, SlicePolicy::Auto);
  }
}

/// Constants of the built-in device are those of no machine in particular.
TEST_F(DefaultSlicesTest, UnknownDevicesKeepWholeSamples) {
  EXPECT_FALSE(chosen(model_, CostTable::host(), {}).any());
  EXPECT_FALSE(chosen(model_, *CostTable::described("host:1x2"), {}).any());
  EXPECT_FALSE(
      chosen(model_, *CostTable::parse("cluster {}", "links"), {}).any());
  EXPECT_EQ(chosen(model_,
                   *CostTable::parse("device { name: \"host\" f64_flops: 1e9 "
                                     "f32_flops: 1e9 bf16_flops: 1e9 "
                                     "bytes_per_second: 1e9 }",
                                     "mine"),
                   {})
                .policy,
            SlicePolicy::Auto);
}

TEST_F(DefaultSlicesTest, WhatCannotBeSlicedStaysWhole) {
  EXPECT_FALSE(chosen(attendingModel(/*isCausal=*/false), devices_, {}).any());
  PlanRequest padded;
  padded.microBatches = "padded";
  EXPECT_FALSE(chosen(model_, devices_, padded).any());
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_kinds(1)->set_attention_flops_per_pair(64);
  manifest.mutable_kinds(1)->set_causal(true);
  manifest.mutable_kinds(1)->set_key_bytes(0);
  manifest.set_hash(manifestHash(manifest));
  EXPECT_FALSE(chosen(*Model::create(manifest), devices_, {}).any());
}

/// What the pass does with micro-batches that are there already.
TEST_F(ChooseSlicesTest, CutsAreSlicedOnce) {
  graph_ = *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const Planner planner(*graph_);
  PlanOptions options = automatic();
  const PlanOptions chosen = options;
  options.slices = {};
  const plan::Plan whole = *planner.cut({8192, 100}, 8292, options, true);
  auto sliced = planner.slice(whole, chosen, true);
  ASSERT_TRUE(sliced.isOk()) << sliced.status().message();
  EXPECT_TRUE(isSliced(*sliced));
  EXPECT_THAT(planner.slice(*sliced, chosen, true).status().message(),
              HasSubstr("slices are cut from whole samples"));
  EXPECT_EQ(planner.slice(whole, options, true)->microBatches,
            whole.microBatches);
}

} // namespace
