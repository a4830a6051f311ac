//===- PhaseEstimateTest.cpp - Estimates beside plans that are played -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/PhaseEstimate.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/report/PlanReport.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <tuple>

using namespace dyna;

namespace {

/// A call takes 0.1 ms, 1 us a token and 2 ns a pair; two devices on a node.
CostModel costsOf() {
  std::string text =
      "cluster { devices_per_node: 2 inside { latency_seconds: 1e-5 "
      "bytes_per_second: 1e8 } between { latency_seconds: 2e-5 "
      "bytes_per_second: 2e7 } }\n";
  for (const char *kind : {"embedding", "block", "head"})
    for (auto [direction, factor] :
         {std::pair("FORWARD", 1.0), {"BACKWARD", 2.0}, {"UPDATE", 0.1}}) {
      text +=
          formatText("entries { kind: \"%s\" direction: %s\n", kind, direction);
      for (int64_t tokens : {16, 256, 1024})
        for (int64_t length : {16, 256, 1024})
          if (length <= tokens) {
            const int64_t pairs = tokens / length * length * (length + 1) / 2;
            const double seconds = 1e-4 + 1e-6 * static_cast<double>(tokens) +
                                   (std::string(kind) == "block" ? 2e-9 : 0) *
                                       static_cast<double>(pairs);
            text += formatText("points { tokens: %d pairs: %d seconds: %g }\n",
                               tokens, pairs, factor * seconds);
          }
      text += "}\n";
    }
  return *CostModel::create(modelWithDegrees(),
                            *CostTable::parse(text, "costs"));
}

struct Phase {
  Phase(const CostModel &costs, const std::string &text)
      : graph(*ExecutableGraph::create(costs.model(), *parseStrategy(text))) {
    options.maxTokensPerMicroBatch = 512;
    options.longestSample = 1024;
    options.schedule =
        graph.stages() > 1 ? Schedule::Adaptive : Schedule::GPipe;
  }
  ExecutableGraph graph;
  PlanOptions options;
};

std::vector<int64_t> drawSamples(uint64_t seed, int count, int64_t longest) {
  std::vector<int64_t> lengths;
  Draw draw(seed);
  for (int i = 0; i < count; ++i)
    lengths.push_back(std::min<int64_t>(
        longest, static_cast<int64_t>(std::exp(
                     2 + 5 * static_cast<double>(draw.below(1000)) / 1000))));
  return lengths;
}

PhaseLengths phaseOf(const std::vector<int64_t> &lengths) {
  PhaseLengths phase;
  for (int64_t length : lengths)
    phase.add(length);
  return phase;
}

struct Ratios {
  double least = std::numeric_limits<double>::infinity(), most = 0, errors = 0;
  int cases = 0;
  double mean() const { return errors / cases; }
  std::string text() const {
    return formatText("%d cases, %.3f to %.3f times, off by %.3f in the mean",
                      cases, least, most, mean());
  }
};

/// Compares estimates with plans of so many samples, of at most so many tokens.
void compare(const CostModel &costs, const Phase &phase,
             const std::vector<int> &counts,
             const std::vector<int64_t> &longestOfAll, Ratios &ratios) {
  const PhaseEstimate estimate(phase.graph, costs, phase.options);
  const Planner planner(phase.graph, costs);
  PlanOptions options = phase.options;
  options.update = false;
  for (int count : counts)
    for (int64_t longest : longestOfAll) {
      const auto lengths = drawSamples(count + longest, count, longest);
      const PhaseLengths phaseLengths = phaseOf(lengths);
      auto plan = planner.training(lengths, phaseLengths.load.queries, options);
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      auto report = reportPlan(phase.graph, *plan, costs);
      ASSERT_TRUE(report.isOk()) << report.status().message();
      const double ratio = estimate.seconds(phaseLengths) / report->seconds;
      ratios.least = std::min(ratios.least, ratio);
      ratios.most = std::max(ratios.most, ratio);
      ratios.errors += std::abs(ratio - 1);
      ++ratios.cases;
    }
}

// Within a fifth in each case and 4 % in the mean, few samples and uneven
// stages included.
TEST(PhaseEstimate, IsNearWhatPlansTake) {
  const CostModel costs = costsOf();
  Ratios ratios;
  for (const char *text :
       {"dp=1", "dp=2", "dp=4", "dp=4,zero=1", "pp=2,layers=3+2",
        "pp=4,layers=1+2+1+1", "dp=2,pp=2,layers=3+2,zero=1", "dp=2,tp=2"})
    compare(costs, Phase(costs, text), {1, 3, 16, 128}, {64, 256, 1024},
            ratios);
  RecordProperty("ratios", ratios.text());
  SCOPED_TRACE(ratios.text());
  EXPECT_EQ(ratios.cases, 96);
  EXPECT_GT(ratios.least, 0.9);
  EXPECT_LT(ratios.most, 1.2);
  EXPECT_LT(ratios.mean(), 0.04);
}

// Slices of a long sample pass one after another. The estimate knows neither where
// slices begin nor which samples stay whole, and is mostly too long.
TEST(PhaseEstimate, KnowsSlices) {
  const CostModel costs = costsOf();
  for (auto [slices, most, mean] : {std::tuple("auto", 1.3, 0.11),
                                    {"exact", 1.3, 0.12},
                                    {"4", 1.55, 0.15},
                                    {"chunkflow:128", 1.5, 0.14}}) {
    Ratios ratios;
    for (const char *text : {"pp=2,layers=3+2", "pp=4,layers=1+2+1+1",
                             "dp=2,pp=2,layers=3+2,zero=1"}) {
      Phase phase(costs, text);
      phase.options.slices = *parseSlices(slices);
      compare(costs, phase, {1, 2, 6, 24}, {256, 1024}, ratios);
    }
    RecordProperty(slices, ratios.text());
    SCOPED_TRACE(std::string(slices) + ": " + ratios.text());
    EXPECT_EQ(ratios.cases, 24);
    EXPECT_GT(ratios.least, 0.8);
    EXPECT_LT(ratios.most, most);
    EXPECT_LT(ratios.mean(), mean);
  }
}

// A long sample alone fills a pipeline only in slices. They need room for the whole
// sample and for slices of the next one, and nothing is sliced on one stage.
TEST(PhaseEstimate, SlicesOfLongSamplesFillAPipeline) {
  const CostModel costs = costsOf();
  Phase phase(costs, "pp=4,layers=1+2+1+1"), alone(costs, "dp=4");
  const PhaseLengths one = phaseOf({1024}), many = phaseOf({1024, 1024, 1024});
  const double whole =
      PhaseEstimate(phase.graph, costs, phase.options).seconds(one);
  for (Phase *either : {&phase, &alone})
    either->options.slices = *parseSlices("auto");
  const PhaseEstimate sliced(phase.graph, costs, phase.options);
  EXPECT_LT(sliced.seconds(one), 0.7 * whole);
  const double wide = sliced.seconds(many, 1024, 0, 2048),
               narrow = sliced.seconds(many, 1024, 0, 1024);
  EXPECT_LT(wide, 0.95 * narrow);
  EXPECT_EQ(wide, sliced.seconds(many, 1024, 0, 0));
  EXPECT_TRUE(sliced.slices());
  EXPECT_FALSE(PhaseEstimate(alone.graph, costs, alone.options).slices());
  phase.options.batching = Batching::Padded;
  EXPECT_FALSE(PhaseEstimate(phase.graph, costs, phase.options).slices());
}

// Behind the phase: what ranks update, and with ZeRO the rows that come back.
TEST(PhaseEstimate, UpdatesAreShared) {
  const CostModel costs = costsOf();
  Phase alone(costs, "dp=1"), dealt(costs, "dp=4,zero=1");
  const double seconds =
      PhaseEstimate(alone.graph, costs, alone.options).updateSeconds();
  EXPECT_NEAR(seconds, 5 * 0.1 * 1e-4, 1e-6);
  Planner planner(alone.graph, costs);
  auto plan = planner.update();
  ASSERT_TRUE(plan.isOk());
  EXPECT_NEAR(seconds, reportPlan(alone.graph, *plan, costs)->seconds, 1e-6);
  const PhaseEstimate shared(dealt.graph, costs, dealt.options);
  EXPECT_GT(shared.updateSeconds() + shared.gatherSeconds(), 0.2 * seconds);
  EXPECT_LT(shared.updateSeconds(), 0.5 * seconds);
}

TEST(PhaseEstimate, NothingTakesNoTime) {
  const CostModel costs = costsOf();
  Phase phase(costs, "dp=2,pp=2,layers=3+2");
  const PhaseEstimate estimate(phase.graph, costs, phase.options);
  EXPECT_EQ(estimate.seconds({}), 0);
  PhaseLengths few = phaseOf({5, 40}), more = phaseOf({5, 40, 40});
  EXPECT_LT(estimate.seconds(few), estimate.seconds(more) + 1e-12);
}

// With less memory micro-batches are smaller, and more calls are made.
TEST(PhaseEstimate, ReadsMemory) {
  const CostModel costs = costsOf();
  Phase phase(costs, "dp=1");
  const PhaseLengths lengths = phaseOf(std::vector<int64_t>(256, 16));
  const double wide =
      PhaseEstimate(phase.graph, costs, phase.options).seconds(lengths);
  const Planner planner(phase.graph, costs);
  PlanOptions small = phase.options;
  small.longestSample = 0;
  small.maxTokensPerMicroBatch = 32;
  phase.options.dynamicLimits = *planner.leastDynamicBytes(small, true);
  const double narrow =
      PhaseEstimate(phase.graph, costs, phase.options).seconds(lengths);
  EXPECT_GT(narrow, 1.5 * wide);
}

} // namespace
