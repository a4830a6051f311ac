//===- SearchSlicesTest.cpp - Strategies and cuts of sliced steps ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Searches among strategies whose plans slice, with real plans and the simulator.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/planner/search/ChooseStrategies.h"
#include "runtime/planner/search/SizedSteps.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/KindCosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

using namespace dyna;

namespace {

using Steps = std::vector<std::vector<int64_t>>;

Model modelOf(int blocks) {
  TinyOptions options;
  options.hidden = 48;
  options.blocks = blocks;
  options.degrees = {{2, false}, {4, false}};
  plan::Manifest manifest = tinyManifest(options);
  manifest.mutable_facts()->set_positions(4096);
  return *Model::create(std::move(manifest));
}

/// `exchange`: bytes per second between any two devices.
CostModel costsOf(const Model &model, double head, double exchange) {
  return kindCosts(model,
                   formatText("cluster { nodes: 1 devices_per_node: 4 inside { "
                              "latency_seconds: 1e-6 bytes_per_second: %g } "
                              "between { latency_seconds: 1e-6 "
                              "bytes_per_second: %g } }\n",
                              exchange, exchange),
                   4096, head);
}

StatusOr<std::unique_ptr<SizedSteps>> sizedOf(const CostModel &costs,
                                              const PlanRequest &request,
                                              const Steps &steps) {
  SizedSteps::Asked asked = SizedSteps::Asked::alone(request);
  for (const std::vector<int64_t> &step : steps)
    asked.longest =
        std::max(asked.longest, *std::max_element(step.begin(), step.end()));
  std::vector<std::string> notes;
  return SizedSteps::create(costs, std::move(asked), notes);
}

double play(const CostModel &costs, const PlanRequest &request,
            const Steps &steps) {
  return *(**sizedOf(costs, request, steps)).play(steps);
}

/// Searches a single strategy of so many ranks for these steps.
FoundSingles search(const CostModel &costs, const Steps &steps,
                    const std::string &slices, SingleSpace single = {},
                    int ranks = 4) {
  StrategySpace space;
  space.ranks = ranks;
  space.request.slices = slices;
  space.orders = {{"dp", "pp", "tp"}};
  std::vector<int64_t> lengths;
  for (const std::vector<int64_t> &step : steps)
    lengths.insert(lengths.end(), step.begin(), step.end());
  auto estimates = estimateSingles(costs, space, lengths);
  EXPECT_TRUE(estimates.isOk()) << estimates.status().message();
  single.requests = {space.request};
  single.searchesKinds = single.searchesSizes = false;
  single.searchesChosenModes = false;
  single.steps = single.screenedSteps = static_cast<int64_t>(steps.size());
  auto found = searchSingles(
      *estimates, single,
      {[&](const PlanRequest &request, int64_t) -> StatusOr<double> {
         return play(costs, request, steps);
       },
       [&](const PlanRequest &request, int64_t) -> StatusOr<double> {
         return (**sizedOf(costs, request, steps)).estimate(steps);
       }},
      [](const std::string &) {});
  EXPECT_TRUE(found.isOk()) << found.status().message();
  return *std::move(found);
}

// Each step has one long sample. Without slices a wide tensor group is the only way to
// use all ranks. With slices a pipeline does, and exchanges less.
TEST(SearchSlices, PipelinesServeLongSamples) {
  const Model model = modelOf(6);
  const CostModel costs = costsOf(model, 1, 1e10);
  const Steps steps = {{4096}, {3000, 100}};
  const FoundSingles whole = search(costs, steps, "none"),
                     sliced = search(costs, steps, "auto");
  const SingleStrategy &best = sliced.fitting.front();
  EXPECT_GT(whole.fitting.front().request.strategy.tp, 1)
      << whole.fitting.front().name();
  EXPECT_GT(best.request.strategy.pp, 1) << best.name();
  EXPECT_LT(best.seconds, 0.95 * whole.fitting.front().seconds);
  EXPECT_NE(best.flags().find("--slices auto"), std::string::npos);
}

// Estimates screen, and leave out no strategy that would be much faster.
TEST(SearchSlices, NoStrategyIsMuchFasterThanTheAnswer) {
  const Model model = modelOf(3);
  const Steps steps = {{2048, 300, 40}};
  const CostModel costs = costsOf(model, 4, 2e9);
  SingleSpace every;
  every.isExhaustive = true;
  const FoundSingles found = search(costs, steps, "auto"),
                     all = search(costs, steps, "auto", every);
  EXPECT_GT(all.fitting.size(), found.fitting.size());
  EXPECT_LE(found.fitting.front().seconds, 1.03 * all.fitting.front().seconds)
      << found.fitting.front().name() << " instead of "
      << all.fitting.front().name();
}

/// The fastest pipeline of two stages.
SingleStrategy fastestPipeline(const FoundSingles &found) {
  for (const SingleStrategy &single : found.fitting)
    if (single.request.strategy.pp == 2)
      return single;
  ADD_FAILURE() << "no pipeline was simulated";
  return {};
}

// The head has a large vocabulary, and the usual cut counts short samples. A long sample
// that passes whole takes the sum of all stages, whatever the cut. In slices the largest
// stage counts, so a layer moves.
TEST(SearchSlices, LayersMoveWithSlices) {
  const Model model = modelOf(6);
  const CostModel costs = costsOf(model, 11, 1e9);
  const Steps steps = {{4096}};
  const SingleStrategy sliced =
      fastestPipeline(search(costs, steps, "auto", {}, /*ranks=*/2));
  PlanRequest joint = sliced.request, usual = sliced.request;
  usual.strategy.layers = sliced.layers;
  ASSERT_FALSE(joint.strategy.layers.empty()) << sliced.name();
  EXPECT_NE(joint.strategy.layers, usual.strategy.layers);
  const double seconds = play(costs, usual, steps);
  EXPECT_LT(play(costs, joint, steps), 0.95 * seconds);
  joint.slices = usual.slices = "none";
  const double whole = play(costs, usual, steps);
  EXPECT_LT(seconds, 0.8 * whole);
  EXPECT_NEAR(play(costs, joint, steps), whole, 0.01 * whole);
}

} // namespace
