//===- ChooseSlicesTest.cpp - Slices that costs find worth it -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/base/text/Text.h"
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
#include "test/runtime/planner/AttendingModel.h"
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

/// A draft that slices do not fit stays whole, however fast they were by the clock.
TEST_F(ChooseSlicesTest, DraftsAreSlicedWithinLimits) {
  graph_ = *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const Planner planner(*graph_);
  const PlanOptions automatic = ::automatic();
  PlanOptions options = automatic;
  options.slices = {};
  // Whole samples alone have room.
  const auto least = *planner.leastDynamicBytes(options, true);
  const auto most = *planner.largestDynamicBytes(automatic, true);
  int sliced = 0, whole = 0;
  for (int64_t percent : {0, 5, 30, 100}) {
    SCOPED_TRACE(percent);
    options.dynamicLimits.clear();
    for (size_t rank = 0; rank < least.size(); ++rank)
      options.dynamicLimits.push_back(
          (least[rank] + (most[rank] - least[rank]) * percent / 100) / 64 * 64);
    PlanOptions choosing = options;
    choosing.slices = automatic.slices;
    const plan::Plan draft =
        *planner.cut({16384, 9000, 30}, 25414, options, true);
    const auto cut = planner.slice(draft, choosing, true);
    ASSERT_TRUE(cut.isOk()) << cut.status().message();
    const auto plan = planner.schedule(*cut, options, true);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    const auto complete = planner.orderCommunication(*plan, options);
    ASSERT_TRUE(complete.isOk()) << complete.status().message();
    for (size_t rank = 0; rank < least.size(); ++rank)
      EXPECT_LE(complete->ranks[rank].dynamicBytes,
                options.dynamicLimits[rank]);
    const auto other = planner.orderCommunication(
        *planner.schedule(draft, options, true), options);
    EXPECT_LE(makespan(*complete), makespan(*other));
    ++(isSliced(*cut) ? sliced : whole);
  }
  EXPECT_GT(sliced, 0);
  EXPECT_GT(whole, 0);
}

} // namespace
