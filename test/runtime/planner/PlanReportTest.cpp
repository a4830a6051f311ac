//===- PlanReportTest.cpp - What plans are worth, in numbers --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/PlanReport.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/planner/graph/Planner.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Ten tokens take `block` seconds forward in a block and in the head, twice
/// that backward; the embedding and all exchanges take none.
CostModel costsOf(double block, double head,
                  std::string text = "cluster {}\n") {
  for (auto [kind, seconds] :
       {std::pair("embedding", 0.0), {"block", block}, {"head", head}})
    for (auto [direction, factor] :
         {std::pair("FORWARD", 1.0), {"BACKWARD", 2.0}, {"UPDATE", 0.0}})
      text += formatText("entries { kind: \"%s\" direction: %s points { "
                         "tokens: 10 seconds: %g } }\n",
                         kind, direction, seconds * factor);
  return *CostModel::create(modelWithDegrees(),
                            *CostTable::parse(text, "costs"));
}

struct Reported {
  Reported(const std::string &strategy, const std::vector<int64_t> &lengths,
           const CostModel &costs, const SliceChoice &slices = {})
      : graph(
            *ExecutableGraph::create(costs.model(), *parseStrategy(strategy))) {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 10;
    options.schedule = Schedule::OneForwardOneBackward;
    options.slices = slices;
    plan = *Planner(graph, costs).training(lengths, 9, options);
    report = *reportPlan(graph, plan, costs);
  }
  ExecutableGraph graph;
  plan::Plan plan;
  PlanReport report;
};

// Two stages of two seconds forward and four backward, four micro-batches: five
// times six seconds, of which each is busy for four.
TEST(PlanReportTest, EqualStagesHaveABubbleAlone) {
  CostModel costs = costsOf(1, 1);
  Reported two("pp=2,layers=3+2", {10, 10, 10, 10}, costs);
  const PlanReport &report = two.report;
  EXPECT_EQ(report.samples, 4);
  EXPECT_EQ(report.tokens, 40);
  EXPECT_EQ(report.microBatches, 4);
  EXPECT_EQ(report.largestMicroBatch, 10);
  EXPECT_DOUBLE_EQ(report.seconds, 30);
  EXPECT_DOUBLE_EQ(report.bound, 24);
  EXPECT_DOUBLE_EQ(report.tokensPerSecond(), 40.0 / 30);
  EXPECT_DOUBLE_EQ(report.bubble(), 6.0 / 30);
  for (int stage : {0, 1}) {
    EXPECT_DOUBLE_EQ(report.stages[stage].busy, 24);
    EXPECT_DOUBLE_EQ(report.imbalance(stage), 0);
    EXPECT_EQ(report.stages[stage].peakBytes,
              persistentLayout(two.graph.rankView(stage)).bytes +
                  two.plan.ranks[stage].dynamicBytes);
  }
  // 1F1B of equal stages is what its bound says: figure 11a has no stock.
  EXPECT_DOUBLE_EQ(report.loadBound, 30);
  EXPECT_DOUBLE_EQ(report.pathBound, 12);
  EXPECT_DOUBLE_EQ(report.stock(1), 0);
  EXPECT_EQ(report.rankBytes.size(), 2u);
  EXPECT_EQ(report.rankBytes[1], report.stages[1].peakBytes);
  EXPECT_EQ(report.peakBytes(),
            std::max(report.stages[0].peakBytes, report.stages[1].peakBytes));
}

// The second stage has half of the work: it waits for want of work and for the
// bubble, which is what the first one waits.
TEST(PlanReportTest, ImbalanceIsApart) {
  CostModel costs = costsOf(1, 0);
  Reported two("pp=2,layers=3+2", {10, 10, 10, 10}, costs);
  const PlanReport &report = two.report;
  EXPECT_DOUBLE_EQ(report.stages[0].busy, 24);
  EXPECT_DOUBLE_EQ(report.stages[1].busy, 12);
  EXPECT_DOUBLE_EQ(report.imbalance(0), 0);
  EXPECT_DOUBLE_EQ(report.imbalance(1), 12 / report.seconds);
  EXPECT_DOUBLE_EQ(report.bubble(), (report.seconds - 24) / report.seconds);
  EXPECT_GT(report.seconds, 24);
}

// A replica without work: the bound is that of the other.
TEST(PlanReportTest, ReplicasCountBySlowest) {
  Reported replicas("dp=2", {10}, costsOf(1, 1));
  EXPECT_DOUBLE_EQ(replicas.report.seconds, 3 * 4);
  EXPECT_DOUBLE_EQ(replicas.report.bound, 3 * 4);
  EXPECT_DOUBLE_EQ(replicas.report.bubble(), 0);
}

// Behind the last micro-batch there is nothing but exchanges and updates; alone, or
// where exchanges take no time, ranks wait for nothing there.
TEST(PlanReportTest, ExchangesBehindMicroBatchesAreToldApart) {
  EXPECT_DOUBLE_EQ(Reported("dp=1", {10}, costsOf(1, 1)).report.exchange, 0);
  CostModel costs =
      costsOf(1, 1, "cluster { inside { bytes_per_second: 1e3 } }\n");
  Reported alone("pp=2,layers=3+2", {10, 10}, costs);
  Reported both("dp=2,pp=2,layers=3+2", {10, 10}, costs);
  const PlanReport &report = both.report;
  EXPECT_GT(report.exchange, alone.report.exchange);
  EXPECT_LE(report.exchangeShare(), report.bubble());
  EXPECT_GT(report.exchangeShare(), 0);
  EXPECT_DOUBLE_EQ(parseJson(report.json("x").text())->find("exchange")->number,
                   std::round(1e6 * report.exchangeShare()) / 1e6);
}

TEST(PlanReportTest, StepsAddUp) {
  CostModel costs = costsOf(1, 1);
  Reported one("pp=2,layers=3+2", {10, 10, 10, 10}, costs);
  Reported other("pp=2,layers=3+2", {10}, costs);
  PlanReport sum = one.report;
  sum.add(other.report);
  EXPECT_EQ(sum.steps, 2);
  EXPECT_EQ(sum.samples, 5);
  EXPECT_EQ(sum.microBatches, 5);
  EXPECT_DOUBLE_EQ(sum.seconds, 30 + 12);
  EXPECT_DOUBLE_EQ(sum.bound, 24 + 6);
  EXPECT_DOUBLE_EQ(sum.stages[1].busy, 24 + 6);
  EXPECT_EQ(sum.peakBytes(),
            std::max(one.report.peakBytes(), other.report.peakBytes()));
  StatusOr<JsonValue> json = parseJson(sum.json("1f1b").text());
  ASSERT_TRUE(json.isOk()) << json.status().message();
  // The bound that people read is the largest that is known.
  EXPECT_GT(sum.loadBound, sum.bound);
  EXPECT_DOUBLE_EQ(json->find("bound_seconds")->number, sum.loadBound);
  EXPECT_DOUBLE_EQ(json->find("busy_bound_seconds")->number, sum.bound);
  EXPECT_EQ(json->find("stages")->items.size(), 2u);
  EXPECT_TRUE(json->find("stages")->items[1].find("safety_stock"));
  EXPECT_TRUE(json->find("plan"));
  EXPECT_FALSE(parseJson(sum.json("").text())->find("plan"));
  std::string table = describeReports({{"1f1b", sum}});
  EXPECT_THAT(table, HasSubstr("1f1b"));
  EXPECT_THAT(table, HasSubstr("imbalance and peak by stage: 0.0%"));
}

// Updates follow what no order can do better; bounds hold for every schedule.
TEST(PlanReportTest, SlicesAreListed) {
  CostModel costs = costsOf(1, 1);
  SliceChoice uneven;
  uneven.lengths = {6, 3};
  Reported sliced("pp=2,layers=3+2", {10, 10, 2}, costs, uneven);
  const PlanReport &report = sliced.report;
  EXPECT_EQ(report.samples, 3);
  EXPECT_EQ(report.microBatches, 7);
  ASSERT_EQ(report.cuts.size(), 2u);
  double seconds = 0;
  for (int sample : {0, 1}) {
    const ReportedCut &cut = report.cuts[sample];
    EXPECT_EQ(cut.sample, sample);
    EXPECT_EQ(cut.tokens(), 10);
    ASSERT_EQ(cut.slices.size(), 3u);
    const int64_t tokens[] = {6, 3, 1}, contexts[] = {0, 6, 9};
    for (int n : {0, 1, 2}) {
      EXPECT_EQ(cut.slices[n].tokens, tokens[n]);
      EXPECT_EQ(cut.slices[n].context, contexts[n]);
      EXPECT_GT(cut.slices[n].forward, 0);
      EXPECT_DOUBLE_EQ(cut.slices[n].backward, 2 * cut.slices[n].forward);
      seconds += cut.slices[n].forward + cut.slices[n].backward;
    }
  }
  // Both stages take as long. The rest is the short sample's.
  const Reported alone("pp=2,layers=3+2", {2}, costs);
  EXPECT_NEAR(report.stages[0].busy, seconds + alone.report.stages[0].busy,
              1e-9 * seconds);
  EXPECT_THAT(
      report.json("a").text(),
      HasSubstr("\"cuts\": [{\"sample\": 0, \"replica\": 0, \"slices\": "
                "[{\"tokens\": 6, \"context\": 0, "));
  EXPECT_THAT(describeReport("a", report),
              HasSubstr("2 samples of 10 tokens in slices: 6 behind 0 ("));
  // The flops of a sample are those that it has whole.
  Reported whole("pp=2,layers=3+2", {10, 10, 2}, costs);
  EXPECT_DOUBLE_EQ(report.flops, whole.report.flops);
  EXPECT_TRUE(whole.report.cuts.empty());
  EXPECT_THAT(whole.report.json("a").text(), Not(HasSubstr("cuts")));
  EXPECT_THAT(describeReport("a", whole.report), Not(HasSubstr("in slices")));
}

TEST(PlanReportTest, NoPlanIsBelowItsBounds) {
  for (Schedule schedule : allSchedules())
    for (const char *strategy :
         {"dp=1", "pp=2,layers=3+2", "dp=2,pp=4,layers=1+2+1+1,zero=1",
          "tp=2,pp=2,layers=2+3"})
      for (plan::Recompute recompute :
           {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL})
        for (bool split : {false, true}) {
          auto table = CostTable::parse(
              "device { name: \"d\" f64_flops: 1e6 f32_flops: 1e6 bf16_flops: "
              "1e6 bytes_per_second: 1e6 launch_seconds: 1e-4 } cluster { "
              "inside "
              "{ latency_seconds: 1e-4 bytes_per_second: 1e6 } }",
              "costs");
          CostModel costs =
              *CostModel::create(modelWithDegrees(), std::move(*table));
          auto graph =
              *ExecutableGraph::create(costs.model(), *parseStrategy(strategy));
          PlanOptions options;
          options.maxTokensPerMicroBatch = 20;
          options.schedule = schedule;
          options.recompute = {recompute};
          options.splitBackward = split;
          auto plan = *Planner(graph, costs)
                           .training({10, 5, 20, 3, 8, 20, 17, 2}, 9, options);
          PlanReport report = *reportPlan(graph, plan, costs);
          SCOPED_TRACE(std::string(strategy) + " " + ruleOf(schedule).name);
          EXPECT_LE(report.loadBound, report.seconds * (1 + 1e-9));
          EXPECT_LE(report.pathBound, report.seconds * (1 + 1e-9));
          EXPECT_GT(report.pathBound, 0);
          if (graph.ranks() == 1)
            EXPECT_NEAR(report.loadBound, report.seconds,
                        1e-6 * report.seconds);
        }
}

TEST(PlanReportTest, ReportsAreTextForPeople) {
  Reported one("dp=1", {4, 6, 10}, costsOf(1, 1));
  PlanReport padded = one.report;
  padded.padding = 5;
  EXPECT_DOUBLE_EQ(padded.paddingShare(), 5.0 / 25);
  std::string text = describeReport("1f1b", padded);
  EXPECT_THAT(text,
              HasSubstr("1f1b: 1 step of 2.0 micro-batches, 3 samples, "
                        "20 tokens, beside them 20.0% of all as padding"));
  EXPECT_THAT(text, HasSubstr("  peak of ranks: 0 "));
}

} // namespace
