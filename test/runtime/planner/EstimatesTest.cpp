//===- EstimatesTest.cpp - Compares estimates with the simulator ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Searches go by estimates (runtime/planner/estimate). Each estimate is compared with
// the simulator over a grid of models, clusters, strategies and lengths. The bands are
// what was measured here, with a little to spare. docs/planner.md states them.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/PhaseEstimate.h"
#include "runtime/planner/estimate/SwitchEstimate.h"
#include "runtime/planner/search/SizedSteps.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "test/runtime/planner/KindCosts.h"
#include "test/runtime/sim/JoinedSteps.h"

#include <algorithm>
#include <cmath>

using namespace dyna;

namespace {

struct Grid {
  std::vector<Model> models;
  std::vector<std::string> clusters;
};

const Grid &grid() {
  static const Grid all = [] {
    Grid grid;
    for (const auto &[hidden, blocks] : {std::pair(12, 3), {48, 6}}) {
      TinyOptions options;
      options.hidden = hidden;
      options.blocks = blocks;
      options.degrees = {{2, false}, {4, false}};
      grid.models.push_back(*Model::create(tinyManifest(options)));
    }
    // One fast node; two nodes, of which the links between are 8 times slower.
    for (const auto &[perNode, between] : {std::pair(4, 1e9), {2, 1.25e8}})
      grid.clusters.push_back(formatText(
          "cluster { devices_per_node: %d inside { latency_seconds: 1e-7 "
          "bytes_per_second: 1e9 } between { latency_seconds: 2e-7 "
          "bytes_per_second: %g } }\n",
          perNode, between));
    return grid;
  }();
  return all;
}

std::vector<std::string> strategiesOf(const Model &model) {
  const int layers = model.layers();
  return {"dp=4",
          "dp=4,zero=1",
          "dp=2,tp=2",
          "tp=4",
          formatText("tp=2,pp=2,layers=%d+%d", layers - layers / 2, layers / 2),
          formatText("dp=2,pp=2,layers=%d+%d,zero=1", layers - layers / 2,
                     layers / 2)};
}

/// Estimates over what they are of.
class Errors {
public:
  void add(double estimate, double simulated) {
    ratios_.push_back(estimate / simulated);
  }
  double least() const {
    return *std::min_element(ratios_.begin(), ratios_.end());
  }
  double most() const {
    return *std::max_element(ratios_.begin(), ratios_.end());
  }
  double mean() const {
    double sum = 0;
    for (double ratio : ratios_)
      sum += std::abs(ratio - 1);
    return sum / static_cast<double>(ratios_.size());
  }
  size_t count() const { return ratios_.size(); }
  std::string text() const {
    return formatText("%d cases, %.3f to %.3f times, off by %.3f in the mean",
                      count(), least(), most(), mean());
  }

private:
  std::vector<double> ratios_;
};

// An estimate of a switch is a lower bound: bytes over the ports of cuts. Latencies,
// hops that are waited for, and ports that are not evenly full come on top. The largest
// errors are those of switches that take only some latencies.
TEST(Estimates, OfSwitchesAreBelowTheSimulator) {
  Errors errors;
  for (const Model &model : grid().models)
    for (const std::string &cluster : grid().clusters) {
      const CostModel costs = kindCosts(model, cluster, 1024);
      const SwitchEstimator estimator(model, costs.cluster());
      const SwitchNetwork network = networkOf(costs.cluster(), 4);
      std::vector<ExecutableGraph> graphs;
      for (const std::string &text : strategiesOf(model))
        graphs.push_back(*ExecutableGraph::create(model, *parseStrategy(text)));
      SwitchOptions options;
      options.bucketBytes = 4096;
      for (const ExecutableGraph &from : graphs)
        for (const ExecutableGraph &to : graphs) {
          if (&from == &to)
            continue;
          for (const auto kind : {SwitchKind::First, SwitchKind::Gradients}) {
            const auto tensors = kind == SwitchKind::First
                                     ? valueTensors(from, nullptr, to)
                                     : gradientTensors(from, to);
            auto plan = planSwitch(tensors, network, options);
            ASSERT_TRUE(plan.isOk()) << plan.status().message();
            const double estimate =
                estimator.seconds(kind, SwitchLayout(from), SwitchLayout(to));
            const double simulated = timesOf(tensors, *plan, network).seconds;
            if (simulated > 1e-5)
              errors.add(estimate, simulated);
          }
        }
    }
  RecordProperty("errors", errors.text());
  SCOPED_TRACE(errors.text());
  EXPECT_GT(errors.count(), 60u);
  EXPECT_GT(errors.least(), 0.45);
  EXPECT_LE(errors.most(), 1);
  EXPECT_LT(errors.mean(), 0.15);
}

std::vector<int64_t> drawLengths(Draw &draw, int count, int64_t longest) {
  std::vector<int64_t> lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back(std::min<int64_t>(
        longest, static_cast<int64_t>(std::exp(
                     2 + 5 * static_cast<double>(draw.below(1000)) / 1000))));
  return lengths;
}

// An estimate of a step adds up phases, switches alone and the update. Overlap makes it
// too long. Uneven micro-batches of few samples make it too short.
TEST(Estimates, OfStepsAreNearTheSimulator) {
  Errors errors;
  Draw draw(3);
  for (const Model &model : grid().models)
    for (const std::string &cluster : grid().clusters) {
      const CostModel costs = kindCosts(model, cluster, 1024);
      const auto strategies = strategiesOf(model);
      for (size_t a = 0; a < strategies.size(); ++a)
        for (size_t b = 0; b < strategies.size(); ++b) {
          if (a == b)
            continue;
          SwitchOptions options;
          options.bucketBytes = 4096;
          const JoinedStep joined(
              costs, {strategies[a], strategies[b]},
              {drawLengths(draw, 40, 256), drawLengths(draw, 10, 512)}, options,
              512);
          errors.add(joined.estimate(),
                     playPlan(PlanWork(joined.planned()))->makespan);
        }
    }
  RecordProperty("errors", errors.text());
  SCOPED_TRACE(errors.text());
  EXPECT_GT(errors.count(), 100u);
  EXPECT_GT(errors.least(), 0.77);
  EXPECT_LT(errors.most(), 1.08);
  EXPECT_LT(errors.mean(), 0.05);
}

/// Bytes of a device in which a share of the dynamic memory that the steps would take
/// has room.
int64_t memoryFor(const SizedSteps &wide, double share) {
  int64_t bytes = 0;
  const StepPlanner &planner = wide.planner();
  for (size_t rank = 0; rank < planner.regionBytes().size(); ++rank)
    bytes = std::max(
        bytes,
        planner.graphs().homeBytes(static_cast<int>(rank), true) +
            static_cast<int64_t>(
                share * static_cast<double>(planner.regionBytes()[rank])));
  return bytes;
}

/// Mini-batches to estimate and to simulate.
struct MiniBatches {
  std::string slices;
  std::vector<std::string> (*strategies)(const Model &model) = strategiesOf;
  int samples = 60;
  int64_t longest = 64;
  int64_t tokensPerMicroBatch = 128;
};

/// Plans, simulates and estimates one mini-batch under a strategy, in a share of its
/// memory; 0: in all memory.
void addMiniBatch(const CostModel &costs, const std::string &text, double share,
                  const MiniBatches &cases, Draw &draw, Errors &errors) {
  PlanRequest request;
  request.strategy = *parseStrategy(text);
  request.tokensPerBatch = 4096;
  request.recompute = share > 0 ? "auto" : "none";
  request.tokensPerMicroBatch = cases.tokensPerMicroBatch;
  request.slices = cases.slices;
  SizedSteps::Asked asked = SizedSteps::Asked::alone(request);
  asked.longest = cases.longest;
  std::vector<std::string> notes;
  std::unique_ptr<SizedSteps> sized =
      std::move(*SizedSteps::create(costs, asked, notes));
  if (share > 0) {
    asked.memoryBytes = memoryFor(*sized, share);
    sized = std::move(*SizedSteps::create(costs, asked, notes));
  }
  const PlannedGraph &own = sized->planner().home();
  const PhaseEstimate beside(*own.graph, costs, own.options);
  const std::vector<int64_t> lengths =
      drawLengths(draw, cases.samples, cases.longest);
  auto simulated = sized->play({lengths});
  if (simulated.status().code() == StatusCode::ResourceExhausted)
    return;
  ASSERT_TRUE(simulated.isOk()) << simulated.status().message();
  const double estimate = *sized->estimate({lengths}) + beside.updateSeconds() +
                          beside.gatherSeconds() +
                          beside.lastReductionSeconds();
  errors.add(estimate, *simulated);
}

void addMiniBatches(const std::vector<Model> &models, const MiniBatches &cases,
                    Errors &errors, Errors &limited) {
  Draw draw(5);
  for (const Model &model : models)
    for (const std::string &cluster : grid().clusters) {
      const CostModel costs = kindCosts(model, cluster, 1024);
      for (const std::string &text : cases.strategies(model))
        for (double share : {0.0, 0.7})
          addMiniBatch(costs, text, share, cases, draw,
                       share > 0 ? limited : errors);
    }
}

// An estimate of one mini-batch knows its lengths, its micro-batches and its modes. It
// leaves out reductions that the pipeline does not hide, smaller micro-batches that are
// tried, and orders that are searched.
TEST(Estimates, OfMiniBatchesAreNearTheSimulator) {
  Errors errors, limited;
  addMiniBatches(grid().models, {}, errors, limited);
  for (const Errors *one : {&errors, &limited}) {
    RecordProperty(one == &errors ? "errors" : "limited", one->text());
    SCOPED_TRACE(one->text());
    EXPECT_GT(one->count(), 20u);
    EXPECT_GT(one->least(), 0.82);
    EXPECT_LT(one->most(), 1.16);
    EXPECT_LT(one->mean(), 0.04);
  }
}

std::vector<std::string> pipelinesOf(const Model &model) {
  const int layers = model.layers();
  const int fourth = layers / 4, rest = layers - 3 * fourth;
  return {formatText("tp=2,pp=2,layers=%d+%d", layers - layers / 2, layers / 2),
          formatText("dp=2,pp=2,layers=%d+%d,zero=1", layers - layers / 2,
                     layers / 2),
          formatText("pp=4,layers=%d+%d+%d+%d", rest, fourth, fourth, fourth)};
}

// With slices it knows those that plans compare with whole samples.
TEST(Estimates, OfSlicedMiniBatchesAreNearTheSimulator) {
  TinyOptions options;
  options.hidden = 48;
  options.blocks = 6;
  options.degrees = {{2, false}, {4, false}};
  plan::Manifest manifest = tinyManifest(options);
  manifest.mutable_facts()->set_positions(512);
  const std::vector<Model> models = {*Model::create(std::move(manifest))};
  for (const char *slices : {"auto", "4"}) {
    MiniBatches cases;
    cases.slices = slices;
    cases.strategies = pipelinesOf;
    cases.samples = 8;
    cases.longest = cases.tokensPerMicroBatch = 512;
    Errors errors, limited;
    addMiniBatches(models, cases, errors, limited);
    for (const Errors *one : {&errors, &limited}) {
      RecordProperty(std::string(slices) + (one == &errors ? "" : "_limited"),
                     one->text());
      SCOPED_TRACE(std::string(slices) + ": " + one->text());
      ASSERT_GE(one->count(), 3u);
      EXPECT_GT(one->least(), 0.8);
      EXPECT_LT(one->most(), 1.1);
      EXPECT_LT(one->mean(), 0.1);
    }
  }
}

} // namespace
