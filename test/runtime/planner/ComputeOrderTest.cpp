//===- ComputeOrderTest.cpp - Plans made in steps, and ordered anew -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/write/ComputeOrder.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/graph/RankMemory.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const std::vector<int64_t> someLengths = {16, 3, 9, 12, 1, 7, 16, 5, 11, 8};

ExecutableGraph graphOf(const Model &model, const std::string &strategy) {
  auto cut = chooseLayers(CostModel(model), *parseStrategy(strategy));
  EXPECT_TRUE(cut.isOk()) << cut.status().message();
  return *ExecutableGraph::create(model, cut->strategy);
}

Status verify(const ExecutableGraph &graph, const plan::Plan &plan,
              const std::vector<int64_t> &lengths = someLengths) {
  return verifyPlan(graph, plan, lengths, {});
}

PlanOptions drawOptions(Draw &draw) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 16 + draw.below(3) * 8;
  options.schedule = allSchedules()[draw.below(allSchedules().size())];
  options.batching = allBatchings()[draw.below(allBatchings().size())];
  options.inFlight = 1 + draw.below(4);
  options.recompute = {static_cast<plan::Recompute>(draw.below(3))};
  options.splitBackward = draw.below(2);
  return options;
}

const char *const strategies[] = {"pp=1",        "dp=2",
                                  "pp=2",        "pp=3",
                                  "dp=2,pp=2",   "tp=2,pp=2",
                                  "dp=3,pp=2",   "dp=2,pp=3,zero=1",
                                  "pp=5",        "dp=2,tp=2,pp=2,zero=1",
                                  "dp=4,zero=1", "tp=2,sp=1,pp=3"};

TEST(ComputeOrderTest, StepsMakeTheWholePlan) {
  int limited = 0, fallbacks = 0;
  for (int round = 0; round < 400; ++round) {
    Draw draw(round);
    const ExecutableGraph graph =
        graphOf(modelWithDegrees(), strategies[round % std::size(strategies)]);
    Planner planner(graph);
    PlanOptions options = drawOptions(draw);
    const bool trains = draw.below(5) > 0;
    if (trains && draw.below(2)) {
      auto most = planner.largestDynamicBytes(options, true);
      auto least = planner.leastDynamicBytes(options, true);
      ASSERT_TRUE(most.isOk() && least.isOk());
      const int part = draw.below(5);
      for (size_t rank = 0; rank < most->size(); ++rank)
        options.dynamicLimits.push_back(std::max(
            (*least)[rank],
            (*least)[rank] + ((*most)[rank] - (*least)[rank]) * part / 4));
      options.chooseRecompute = draw.below(2);
      ++limited;
    }
    SCOPED_TRACE(formatText("round %d, %s, %s", round, graph.name(),
                            ruleOf(options.schedule).name));
    auto whole = trains ? planner.training(someLengths, 40, options)
                        : planner.evaluation(someLengths, 40, options);
    ASSERT_TRUE(whole.isOk()) << whole.status().message();
    auto cut = planner.cut(someLengths, 40, options, trains);
    ASSERT_TRUE(cut.isOk()) << cut.status().message();
    for (const plan::RankProgram &program : cut->ranks)
      EXPECT_EQ(program.count(), 0);
    auto scheduled = planner.schedule(*cut, options, trains);
    ASSERT_TRUE(scheduled.isOk()) << scheduled.status().message();
    for (const plan::RankProgram &program : scheduled->ranks)
      for (const Instruction &i : program.instructions)
        EXPECT_TRUE(isCompute(i.op)) << describeInstruction(i);
    EXPECT_EQ(scheduled->fallback, whole->fallback);
    auto ordered = planner.orderCommunication(*scheduled, options);
    ASSERT_TRUE(ordered.isOk()) << ordered.status().message();
    EXPECT_EQ(writePlan(*ordered), writePlan(*whole));
    fallbacks += !whole->fallback.empty();
  }
  EXPECT_GE(limited, 50);
  EXPECT_GE(fallbacks, 5);
}

// What a stage has not to do is no item: the order of its messages does not
// depend on it, and its gradients are reduced when they are there.
TEST(ComputeOrderTest, StagesWithoutWeightGradientsHaveNoItemsForThem) {
  const ExecutableGraph graph = graphOf(modelWithDegrees(), "pp=2,layers=1+4");
  PlanOptions options = tinyPlanOptions(Schedule::Adaptive);
  options.splitBackward = true;
  auto plan = Planner(graph).training(equalLengths, 40, options);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  auto order = readComputeOrder(graph, *plan, options);
  ASSERT_TRUE(order.isOk()) << order.status().message();
  int weights[2] = {0, 0};
  for (int stage = 0; stage < 2; ++stage)
    for (const PipelineItem &item : order->replicas[0][stage])
      weights[stage] += item.kind == ItemKind::Weight;
  EXPECT_EQ(weights[0], 0); // the embedding alone
  EXPECT_EQ(weights[1], static_cast<int>(equalLengths.size()));
}

// Plans of others, whatever their schedule was, under the rules of any.
TEST(ComputeOrderTest, CommunicationIsOrderedAnew) {
  int apart = 0;
  for (int round = 0; round < 200; ++round) {
    Draw draw(round);
    const ExecutableGraph graph =
        graphOf(modelWithDegrees(), strategies[round % std::size(strategies)]);
    Planner planner(graph);
    const PlanOptions made = drawOptions(draw);
    SCOPED_TRACE(formatText("round %d, %s, %s", round, graph.name(),
                            ruleOf(made.schedule).name));
    auto plan = draw.below(5) > 0 ? planner.training(someLengths, 40, made)
                                  : planner.evaluation(someLengths, 40, made);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    PlanOptions other;
    other.maxTokensPerMicroBatch = made.maxTokensPerMicroBatch;
    other.schedule = allSchedules()[draw.below(allSchedules().size())];
    if (made.splitBackward && ruleOf(made.schedule).adapts) {
      // Weight gradients apart are kept only where a schedule may have them.
      const ScheduleRule &rule = ruleOf(other.schedule);
      auto refused = planner.orderCommunication(*plan, other);
      if (!rule.adapts && !refused.isOk()) {
        EXPECT_THAT(refused.status().message(),
                    HasSubstr(formatText("'%s' does not", rule.name)));
        ++apart;
      }
      other.schedule = made.schedule;
    }
    auto ordered = planner.orderCommunication(*plan, other);
    ASSERT_TRUE(ordered.isOk()) << ordered.status().message();
    EXPECT_TRUE(checkSameCompute(*plan, *ordered).isOk());
    Status status = verify(graph, *ordered);
    EXPECT_TRUE(status.isOk()) << status.message();
  }
  EXPECT_GE(apart, 3);
}

// Both ends send at one time, and each waits for the other to receive (DynaPipe,
// figure 8b).
TEST(ComputeOrderTest, NaiveMessagesAreRefused) {
  int refused = 0;
  for (int stages = 2; stages <= 5; ++stages)
    for (Schedule schedule : allSchedules()) {
      const ExecutableGraph graph =
          graphOf(modelWithDegrees(), formatText("pp=%d", stages));
      Planner planner(graph);
      PlanOptions options = tinyPlanOptions(schedule);
      auto plan = planner.training(equalLengths, 40, options);
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      options.naiveMessages = true;
      auto naive = planner.orderCommunication(*plan, options);
      ASSERT_TRUE(naive.isOk()) << naive.status().message();
      Status status = verify(graph, *naive, equalLengths);
      // One micro-batch after the other never meets another one's messages.
      // One direction of Chimera is like GPipe on few stages.
      if (schedule == Schedule::Sequential || schedule == Schedule::GPipe ||
          (schedule == Schedule::Chimera && stages <= 3)) {
        refused += !status.isOk();
      } else {
        EXPECT_FALSE(status.isOk()) << ruleOf(schedule).name;
        EXPECT_THAT(status.message(), HasSubstr("both ends of a channel need "
                                                "one order; rank 0 waits for "
                                                "rank 1, and that one for "
                                                "rank 0"));
        ++refused;
      }
      options.naiveMessages = false;
      auto again = planner.orderCommunication(*naive, options);
      ASSERT_TRUE(again.isOk()) << again.status().message();
      EXPECT_EQ(writePlan(*again), writePlan(*plan));
    }
  EXPECT_GE(refused, 12);
}

class BadOrderTest : public testing::Test {
protected:
  BadOrderTest()
      : graph_(graphOf(modelWithDegrees(), "dp=2,pp=2")), planner_(graph_),
        options_(tinyPlanOptions()) {
    plan_ = *planner_.schedule(*planner_.cut(equalLengths, 40, options_, true),
                               options_, true);
  }

  std::vector<Instruction> &program(int rank) {
    return plan_.ranks[rank].instructions;
  }
  size_t find(int rank, Instruction::Op op) {
    for (size_t k = 0; k < program(rank).size(); ++k)
      if (program(rank)[k].op == op)
        return k;
    ADD_FAILURE();
    return 0;
  }
  std::string message() {
    auto ordered = planner_.orderCommunication(plan_, options_);
    return ordered.isOk() ? "accepted" : ordered.status().message();
  }

  ExecutableGraph graph_;
  Planner planner_;
  PlanOptions options_;
  plan::Plan plan_;
};

TEST_F(BadOrderTest, IsSaid) {
  EXPECT_EQ(message(), "accepted");
  const plan::Plan good = plan_;
  auto &first = program(0);
  const size_t forward = find(0, Instruction::FORWARD);

  first.erase(first.begin() + forward);
  EXPECT_THAT(message(),
              HasSubstr("rank 0: forward of micro-batch 0 stands there 0 "
                        "times, expects 1"));
  plan_ = good;
  first.push_back(first[forward]);
  EXPECT_THAT(message(), HasSubstr("stands there 2 times, expects 1"));
  plan_ = good;
  first[forward].layer = graph_.stage(1).firstLayer;
  EXPECT_THAT(message(), HasSubstr("its stage has layers 0 to"));
  plan_ = good;
  first[forward].microBatch = plan_.microBatchCount();
  EXPECT_THAT(message(), HasSubstr("is none of its replica"));
  plan_ = good;
  for (int m = 0; m < plan_.microBatchCount(); ++m)
    if (plan_.microBatches[m].replica == 1)
      first[forward].microBatch = m;
  EXPECT_THAT(message(), HasSubstr("is none of its replica"));
  plan_ = good;
  first[forward].op = Instruction::EVALUATE;
  EXPECT_THAT(message(), HasSubstr("trains on all micro-batches or evaluates "
                                   "all"));
  // Layers of two micro-batches in turn; a mode that the layer has not.
  plan_ = good;
  std::swap(first[forward + 1], first[forward + 4]);
  EXPECT_THAT(message(), HasSubstr("where a planner's program has"));
  plan_ = good;
  const size_t free = find(0, Instruction::FREE);
  std::swap(first[free], first[free + 1]);
  EXPECT_THAT(message(), HasSubstr("where a planner's program has"));
  // A shard or rank less; backwards that wait for each other.
  plan_ = good;
  plan_.ranks.pop_back();
  EXPECT_THAT(message(), HasSubstr("programs of 3 ranks, but the strategy has "
                                   "4"));
  plan_ = good;
  std::reverse(first.begin(), first.end());
  EXPECT_NE(message(), "accepted");
  // What is not there may not be asked for either.
  plan_ = good;
  plan_.fallback = "zigzag";
  EXPECT_THAT(message(), HasSubstr("but got 'zigzag'"));
}

TEST(ComputeOrderTest, ExpectedPipelinesAreThoseOfTheirSchedule) {
  const ExecutableGraph graph = graphOf(modelWithDegrees(), "pp=5");
  Planner planner(graph);
  const PlanOptions options = tinyPlanOptions();
  auto scheduled = planner.schedule(
      *planner.cut(equalLengths, 40, options, true), options, true);
  ASSERT_TRUE(scheduled.isOk()) << scheduled.status().message();
  auto pipelines = planner.expect(*scheduled, options);
  ASSERT_TRUE(pipelines.isOk()) << pipelines.status().message();
  ASSERT_EQ(pipelines->size(), 1u);
  auto expected = schedulePipeline(pipelines->front().problem, options, true);
  ASSERT_TRUE(expected.isOk());
  for (int stage = 0; stage < 5; ++stage) {
    const auto &items = pipelines->front().schedule.stages[stage];
    ASSERT_EQ(items.size(), expected->stages[stage].size());
    for (size_t k = 0; k < items.size(); ++k) {
      EXPECT_EQ(items[k].microBatch, expected->stages[stage][k].microBatch);
      EXPECT_EQ(items[k].start, expected->stages[stage][k].start);
    }
  }
}

} // namespace
