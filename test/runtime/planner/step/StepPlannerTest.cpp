//===- StepPlannerTest.cpp - Steps of several graphs, planned -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/StepReport.h"
#include "runtime/planner/step/StepRegions.h"

#include "runtime/plan/program/PlanFile.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Two nodes of two; a byte between them takes `seconds`.
CostModel costsOf(double seconds) {
  const std::string text =
      "device { name: \"d\" f64_flops: 1e9 f32_flops: 1e9 bf16_flops: 1e9 "
      "bytes_per_second: 1e9 } cluster { nodes: 2 devices_per_node: 2 inside "
      "{ bytes_per_second: 1e12 } between { bytes_per_second: " +
      std::to_string(1 / seconds) + " } }";
  return *CostModel::create(modelWithDegrees(),
                            *CostTable::parse(text, "d.costs"));
}

/// As dyna-plan and a run put it together.
class Steps {
public:
  Steps(const CostModel &costs, const std::string &strategies,
        const std::string &ranges, bool merges, int64_t rankBytes = -1,
        int64_t tokensPerMicroBatch = 0) {
    auto all = *parseStrategies(strategies);
    std::vector<std::string> names;
    for (const Strategy &strategy : all)
      names.push_back(strategy.name);
    LengthRanges parsed = *parseLengthRanges(ranges, names);
    PlanRequest request;
    request.tokensPerBatch = 256;
    request.tokensPerMicroBatch = tokensPerMicroBatch;
    std::vector<std::string> notes;
    std::vector<PlannedGraph> planned;
    for (const LengthRange &range : parsed.ranges()) {
      request.strategy = all[range.strategy];
      auto graph = planGraph(costs, request, notes);
      EXPECT_TRUE(graph.isOk()) << graph.status().message();
      planned.push_back(std::move(*graph));
    }
    auto graphs = StepGraphs::create(std::move(parsed), std::move(planned));
    EXPECT_TRUE(graphs.isOk()) << graphs.status().message();
    graphs_ = std::move(*graphs);
    if (rankBytes >= 0)
      for (PlannedGraph &graph : graphs_->graphs())
        EXPECT_TRUE(
            limitMicroBatches(*graphs_, graph, request, true, rankBytes, notes)
                .isOk());
    EXPECT_TRUE(setLongestSample(*graphs_, 60).isOk());
    auto regions = sizeStepRegions(*graphs_, request.tokensPerBatch, true,
                                   rankBytes, false);
    refusal = regions.status();
    if (!regions.isOk())
      return;
    bytes = regions->bytes;
    for (size_t rank = 0; rank < bytes.size(); ++rank)
      bytes[rank] += graphs_->homeBytes(static_cast<int>(rank), true);
    regions->apply(*graphs_);
    planner = std::make_unique<StepPlanner>(*graphs_, merges,
                                            std::move(regions->bytes));
  }

  VerifiedStep plan(const std::vector<int64_t> &lengths) const {
    auto step = planner->plan(
        lengths, std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
        true, true);
    EXPECT_TRUE(step.isOk()) << step.status().message();
    return std::move(*step);
  }

  std::unique_ptr<StepPlanner> planner;
  std::vector<int64_t> bytes; ///< of each rank, home included
  Status refusal = Status::ok();

private:
  std::unique_ptr<StepGraphs> graphs_;
};

constexpr const char *strategies = "s: dp=4; l: tp=2,pp=2",
                     *ranges = "s: 0-20; l: 21-";

/// Of each phase, by its strategy.
std::vector<std::pair<std::string, std::vector<int64_t>>>
samplesOf(const Steps &steps, const VerifiedStep &step) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> samples;
  for (const VerifiedStep::Phase &phase : step.phases())
    samples.emplace_back(steps.planner->graph(phase.switches.graph).name,
                         phase.samples);
  return samples;
}

// What a switch takes decides, and nothing else.
TEST(StepPlanner, MergesWhatIsNotWorthItsSwitch) {
  const std::vector<int64_t> lengths = {8, 50, 9, 10, 11, 12, 13, 14};
  using Samples = std::vector<std::pair<std::string, std::vector<int64_t>>>;
  const Samples apart = {{"s", {0, 2, 3, 4, 5, 6, 7}}, {"l", {1}}},
                together = {{"l", {0, 1, 2, 3, 4, 5, 6, 7}}};
  const CostModel fast = costsOf(1e-15), slow = costsOf(1);
  const Steps quick(fast, strategies, std::string(ranges) + "; home=l", true),
      dear(slow, strategies, std::string(ranges) + "; home=l", true),
      never(slow, strategies, std::string(ranges) + "; home=l", false);
  EXPECT_EQ(samplesOf(quick, quick.plan(lengths)), apart);
  EXPECT_EQ(samplesOf(dear, dear.plan(lengths)), together);
  EXPECT_EQ(samplesOf(never, never.plan(lengths)), apart);
}

// Evaluations go by range alone.
TEST(StepPlanner, EvaluatesByRange) {
  const CostModel slow = costsOf(1);
  const Steps steps(slow, strategies, std::string(ranges) + "; home=l", true);
  auto step = steps.planner->plan({8, 50}, 58, false, false);
  ASSERT_TRUE(step.isOk()) << step.status().message();
  EXPECT_EQ(step->phaseCount(), 2);
}

TEST(StepPlanner, OneRangeHasThePlanOfItsStrategy) {
  const CostModel costs = costsOf(1e-9);
  const Steps steps(costs, "s: dp=2,pp=2", "s: 0-", true);
  const std::vector<int64_t> lengths = {8, 50, 9, 10};
  const VerifiedStep step = steps.plan(lengths);
  ASSERT_EQ(step.phaseCount(), 1);
  const PlannedGraph &graph = steps.planner->home();
  auto plan = graph.planner->training(lengths, 77, graph.options);
  ASSERT_TRUE(plan.isOk());
  const plan::Plan &made = step.homePlan();
  ASSERT_EQ(made.rankCount(), plan->rankCount());
  for (int rank = 0; rank < made.rankCount(); ++rank) {
    const auto &own = made.ranks[rank].instructions;
    const auto &alone = plan->ranks[rank].instructions;
    ASSERT_EQ(own.size(), alone.size());
    for (size_t i = 0; i < own.size(); ++i)
      EXPECT_EQ(own[i].op, alone[i].op) << rank << " " << i;
  }
  EXPECT_EQ(steps.planner->switchSeconds(step), 0);
}

TEST(StepPlanner, ReportsAddUp) {
  const CostModel costs = costsOf(1e-9);
  const Steps steps(costs, strategies, std::string(ranges) + "; home=l", false);
  const VerifiedStep step = steps.plan({8, 50, 9, 10, 11, 12, 13, 14});
  auto played = playPhases(*steps.planner, step, {});
  ASSERT_TRUE(played.isOk());
  const PlanReport report = reportStep(*steps.planner, step, *played);
  ASSERT_EQ(report.phases.size(), 2u);
  const PlanReport &first = report.phases[0].second,
                   &home = report.phases[1].second;
  EXPECT_EQ(report.phases[0].first, "s");
  EXPECT_EQ(first.samples, 7);
  EXPECT_EQ(home.samples, 1);
  EXPECT_EQ(report.tokens, 127);
  // Phases overlap where a rank goes on before others. Waits for switches are in them.
  EXPECT_GE(report.seconds, std::max(first.seconds, home.seconds));
  EXPECT_LE(report.seconds, first.seconds + home.seconds);
  EXPECT_GT(report.switchSeconds, 0);
  EXPECT_LT(report.switchSeconds, report.switchAloneSeconds);
  EXPECT_DOUBLE_EQ(report.switchAloneSeconds,
                   steps.planner->switchSeconds(step));
  EXPECT_EQ(home.switchSeconds, 0);
  // Every element of home's gradients comes, some from other ranks, and no phase
  // takes more of a rank than there is.
  EXPECT_GT(first.switchBytes, 0);
  EXPECT_EQ(report.switchBytes, first.switchBytes);
  for (size_t rank = 0; rank < report.rankBytes.size(); ++rank) {
    EXPECT_LE(report.rankBytes[rank], steps.bytes[rank]);
    EXPECT_GT(report.rankBytes[rank], 0);
  }
  // Of two steps, those of one strategy together.
  PlanReport all = report;
  all.add(report);
  ASSERT_EQ(all.phases.size(), 2u);
  EXPECT_EQ(all.phases[0].second.samples, 14);
  EXPECT_EQ(all.switchBytes, 2 * report.switchBytes);
  EXPECT_EQ(all.peakBytes(), report.peakBytes());
}

// Slices of the trace of a step end by the end of the step.
TEST(StepPlanner, TracesEndWithTheStep) {
  const CostModel costs = costsOf(1e-9);
  const Steps steps(costs, strategies, std::string(ranges) + "; home=l", false);
  const VerifiedStep step = steps.plan({8, 50, 9, 10, 11, 12, 13, 14});
  auto played = playPhases(*steps.planner, step, {});
  ASSERT_TRUE(played.isOk());
  EXPECT_FALSE(played->buckets.empty());
  TraceWriter writer;
  const double end = traceStep(writer, {0, 2.5, 0, ""}, *played, false);
  EXPECT_DOUBLE_EQ(end, 2.5 + played->makespan);
  for (const PlayedBucket &bucket : played->buckets) {
    EXPECT_LT(bucket.time.start, bucket.time.end);
    EXPECT_LE(bucket.time.end, played->makespan);
  }
  EXPECT_THAT(writer.finish(), HasSubstr("switch port: "));
}

// At what is enough there are plans, and below it there is a refusal that says so.
// Micro-batches whose size is given need more than those that may shrink.
TEST(StepPlanner, RegionsAreRefusedWithWhatIsEnough) {
  const CostModel costs = costsOf(1e-9);
  auto enoughWith = [&](int64_t tokens) -> int64_t {
    const Steps small(costs, strategies, ranges, false, 4096, tokens);
    EXPECT_FALSE(small.refusal.isOk());
    const std::string &text = small.refusal.message();
    const size_t at = text.rfind("--rank-memory ");
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + 14));
  };
  const int64_t open = enoughWith(0), given = enoughWith(256);
  EXPECT_LT(open, given);
  for (auto [tokens, enough] : {std::pair<int64_t, int64_t>(0, open),
                                std::pair<int64_t, int64_t>(256, given)}) {
    const Steps fitting(costs, strategies, ranges, false, enough, tokens);
    ASSERT_TRUE(fitting.refusal.isOk()) << fitting.refusal.message();
    EXPECT_EQ(fitting.plan({8, 50, 9}).phaseCount(), 2);
    // Open sizes may do with a little less, of which runs make little use: smaller
    // micro-batches, in which the longest samples are alone.
    const int64_t less = tokens == 0 ? enough / 20 : 64;
    EXPECT_FALSE(Steps(costs, strategies, ranges, false, enough - less, tokens)
                     .refusal.isOk());
  }
}

TEST(StepPlanner, RefusalsNeedNoMoreThanIsEnough) {
  const CostModel costs = costsOf(1e-9);
  int refused = 0;
  for (const auto &[tokens, shared] : {std::pair(0, ranges),
                                       {16, ranges},
                                       {256, ranges},
                                       {0, "s: 0-55; l: 56-"},
                                       {0, "s: 0-"}})
    for (int64_t memory = 4096; memory < 1 << 20; memory += 4032) {
      const Steps steps(costs, strategies, shared, false, memory, tokens);
      if (steps.refusal.isOk())
        break;
      const std::string &text = steps.refusal.message();
      const auto enough =
          std::stoll(text.substr(text.rfind("--rank-memory ") + 14));
      const size_t need = text.find(" needs "), unit = text.find(' ', need + 7);
      ASSERT_NE(need, std::string::npos) << text;
      const double factor = text.substr(unit + 1, 3) == "KiB"   ? 1024
                            : text.substr(unit + 1, 3) == "MiB" ? 1 << 20
                                                                : 1;
      // Sizes for people are rounded to a tenth.
      EXPECT_LE((std::stod(text.substr(need + 7)) - 0.05) * factor,
                double(enough))
          << text;
      EXPECT_GT(enough, memory) << text;
      const Steps again(costs, strategies, shared, false, enough, tokens);
      EXPECT_TRUE(again.refusal.isOk()) << text << "\n"
                                        << again.refusal.message();
      ++refused;
    }
  EXPECT_GT(refused, 10);
}

TEST(StepPlanner, UnequalRanksAreNamed) {
  auto all = *parseStrategies("a: dp=2; b: dp=4");
  const Status status =
      checkEqualRanks(*parseLengthRanges("a: 0-3; b: 4-", {"a", "b"}), all);
  EXPECT_THAT(status.message(), HasSubstr("'b: dp=4,tp=1,pp=1' has 4 ranks, "
                                          "but strategy 'a: dp=2"));
}

} // namespace
