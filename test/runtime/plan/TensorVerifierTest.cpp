//===- TensorVerifierTest.cpp - What layer functions exchange, verified ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans in which every rank's program is legal by itself, but not beside the
// others': exchanges inside layer functions meet others than they should, or
// groups and messages come in orders that not every transport can carry out.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/PlanVerifier.h"
#include "test/runtime/plan/PlanEditor.h"
#include "test/runtime/plan/TinyPlans.h"

#include <functional>
#include <gmock/gmock.h>
#include <random>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const std::vector<int64_t> &lengths = equalLengths;
constexpr int64_t enough = enoughBytes;

ExecutableGraph graphOf(const std::string &strategy) {
  return *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(strategy));
}

plan::Plan planOf(const std::string &strategy,
                  const PlanOptions &chosen = tinyPlanOptions()) {
  return *Planner(graphOf(strategy)).training(lengths, 100, chosen);
}

struct Case {
  const char *message;
  std::function<void(plan::Plan &)> spoil;
  const char *strategy = "tp=2";
};

/// One rank runs the program that other options give.
std::function<void(plan::Plan &)>
withProgramOf(int rank, const char *strategy,
              const std::function<void(PlanOptions &)> &change) {
  return [=](plan::Plan &p) {
    PlanOptions changed = tinyPlanOptions();
    change(changed);
    p.ranks[rank] = planOf(strategy, changed).ranks[rank];
  };
}

/// All ranks recompute everything, but one a single layer only in part.
std::function<void(plan::Plan &)> inAnotherMode(const char *strategy) {
  return [=](plan::Plan &p) {
    PlanOptions full = tinyPlanOptions();
    full.recompute = {plan::RECOMPUTE_FULL};
    p = planOf(strategy, full);
    Editor e(p, 1);
    for (Instruction::Op op : {Instruction::FORWARD, Instruction::RECOMPUTE}) {
      ASSERT_EQ(e.at(op, 2, 3).recompute, plan::RECOMPUTE_FULL);
      e.at(op, 2, 3).recompute = plan::RECOMPUTE_SELECTIVE;
    }
  };
}

void exchangeMicroBatches(plan::RankProgram &program, int a, int b) {
  for (Instruction &i : program.instructions)
    if (isPerMicroBatch(i.op) && (i.microBatch == a || i.microBatch == b))
      i.microBatch = a + b - i.microBatch;
}

constexpr const char *sameCalls =
    "tensor-parallel ranks run the same layers of the same micro-batches in "
    "the same modes and order";
constexpr const char *waits = "the ranks wait for each other: ";
constexpr const char *pipeline = "tp=2,pp=2,layers=2+3";

const Case cases[] = {
    // P10. The second shard of the last stage runs the forward of micro-batch 1
    // before the backward of 0; both ends of its channel agree.
    {sameCalls,
     [](plan::Plan &p) {
       Editor e(p, 3);
       int target = e.find(Instruction::BACKWARD, 4, 0);
       e.move(Instruction::RECV_ACT_WAIT, 2, 1, target++);
       e.move(Instruction::LOAD, 0, 1, target++);
       for (int layer : {2, 3, 4})
         e.move(Instruction::FORWARD, layer, 1, target++);
     },
     pipeline},
    // Micro-batches of one size change places on one shard.
    {sameCalls, [](plan::Plan &p) { exchangeMicroBatches(p.ranks[1], 2, 3); }},
    {sameCalls, [](plan::Plan &p) { exchangeMicroBatches(p.ranks[1], 0, 1); },
     "tp=2,sp=1"},
    {sameCalls, withProgramOf(1, "tp=2",
                              [](PlanOptions &o) {
                                o.recompute = {plan::RECOMPUTE_FULL};
                              })},
    {sameCalls,
     withProgramOf(
         3, pipeline,
         [](PlanOptions &o) { o.recompute = {plan::RECOMPUTE_SELECTIVE}; }),
     pipeline},
    // The same calls, of which one pair is in another mode. Each rank by itself
    // may: forward and recomputation agree.
    {sameCalls, inAnotherMode("tp=2")},
    {sameCalls, inAnotherMode("tp=2,sp=1"), "tp=2,sp=1"},
    {sameCalls,
     withProgramOf(1, "tp=2", [](PlanOptions &o) { o.splitBackward = true; })},
    {sameCalls, withProgramOf(1, "tp=2",
                              [](PlanOptions &o) {
                                o.schedule = Schedule::GPipe;
                                o.inFlight = 4;
                              })},
    // Weights' gradients exchange nothing, but are added up in one order.
    {sameCalls,
     [](plan::Plan &p) {
       PlanOptions split = tinyPlanOptions();
       split.splitBackward = true;
       p = planOf("tp=2", split);
       Editor e(p, 1);
       e.move(Instruction::BACKWARD_WEIGHT, 2, 0,
              e.find(Instruction::BACKWARD_WEIGHT, 3, 0));
     }},
    // With sp the bias of the head is reduced over the very group that layers
    // exchange in: on one rank before, on the other after a layer's exchange.
    {"all ranks of a group need one order",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::REDUCE_GRADS_START, 4, 0,
              e.find(Instruction::BACKWARD, 2, 7));
     },
     "tp=2,sp=1"},
    // P11. The same with replicas: two groups that share two ranks, each in one
    // order, but not both.
    {waits,
     [](plan::Plan &p) {
       for (int rank : {1, 3}) {
         Editor e(p, rank);
         int m = rank == 1 ? 3 : 7;
         e.move(Instruction::REDUCE_GRADS_START, 4, 0,
                e.find(Instruction::BACKWARD, 2, m));
       }
     },
     "dp=2,tp=2,sp=1"},
    // Two parameters of both stages, each in a group of its own, in opposite
    // orders.
    {waits,
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::REDUCE_GRADS_START, 3, 0,
              e.find(Instruction::REDUCE_GRADS_START, 4));
     },
     "pp=2,layers=3+2"},
    {waits,
     [](plan::Plan &p) {
       Editor e(p, 0);
       e.move(Instruction::GATHER_PARAMS_START, 1, 0,
              e.find(Instruction::GATHER_PARAMS_START, 0));
     },
     "pp=2,layers=3+2,zero=1"},
    // A message and an exchange of the two ranks at its ends: one sends and then
    // reduces, the other reduces and then receives. Nobody waits too early.
    {waits,
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::REDUCE_GRADS_START, 4, 0,
              e.find(Instruction::SEND_GRAD_START, 3, 7));
     },
     "pp=2,layers=3+2"},
};

TEST(TensorVerifierTest, GoodPlansPass) {
  for (const char *strategy :
       {"tp=2", "tp=2,sp=1", "tp=4", pipeline, "dp=2,tp=2,sp=1,zero=1",
        "dp=2,tp=2,pp=2,layers=2+3,zero=1", "pp=3,layers=2+2+1,zero=1"})
    for (Schedule schedule : {Schedule::GPipe, Schedule::OneForwardOneBackward,
                              Schedule::Sequential})
      for (bool split : {false, true}) {
        PlanOptions chosen = tinyPlanOptions();
        chosen.schedule = schedule;
        chosen.splitBackward = split;
        chosen.recompute = {split ? plan::RECOMPUTE_FULL
                                  : plan::RECOMPUTE_SELECTIVE};
        ExecutableGraph graph = graphOf(strategy);
        Planner planner(graph);
        for (const auto &plan : {planner.training(lengths, 100, chosen),
                                 planner.evaluation(lengths, 100, chosen)}) {
          ASSERT_TRUE(plan.isOk()) << plan.status().message();
          VerifyOptions verify;
          verify.targets = 100;
          Status status = verifyPlan(graph, *plan, lengths, verify);
          EXPECT_TRUE(status.isOk()) << strategy << ": " << status.message();
        }
      }
}

// Whatever the lengths, the planner finds one order for all ranks.
TEST(TensorVerifierTest, PlannedPlansPass) {
  std::mt19937_64 random(1);
  auto below = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  const char *const cuts[] = {"5", "2+3", "1+3+1", "2+1+1+1", "1+1+1+1+1"};
  for (int trial = 0; trial < 300; ++trial) {
    int64_t tensor = below(4), pp = 1 + below(5);
    const char *const degrees[] = {"tp=1", "tp=2", "tp=2,sp=1", "tp=4"};
    std::string strategy = degrees[tensor];
    strategy += ",dp=" + std::to_string(1 + below(3)) +
                ",pp=" + std::to_string(pp) + ",layers=" + cuts[pp - 1] +
                ",zero=" + std::to_string(below(2));
    std::vector<int64_t> drawn;
    for (int64_t count = 1 + below(24); count > 0; --count)
      drawn.push_back(1 + below(32));
    PlanOptions chosen = tinyPlanOptions();
    chosen.maxTokensPerMicroBatch = 32;
    chosen.schedule = static_cast<Schedule>(below(3));
    chosen.inFlight = static_cast<int>(1 + below(6));
    chosen.splitBackward = below(2);
    chosen.recompute = {static_cast<plan::Recompute>(below(3))};
    ExecutableGraph graph = graphOf(strategy);
    Planner planner(graph);
    for (const auto &plan : {planner.training(drawn, 1, chosen),
                             planner.evaluation(drawn, 1, chosen)}) {
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      Status status = verifyPlan(graph, *plan, drawn, {});
      EXPECT_TRUE(status.isOk()) << strategy << ": " << status.message();
    }
  }
}

TEST(TensorVerifierTest, EveryRuleIsEnforced) {
  int number = 0;
  for (const Case &bad : cases) {
    SCOPED_TRACE("case " + std::to_string(number++));
    ExecutableGraph graph = graphOf(bad.strategy);
    plan::Plan plan = planOf(bad.strategy);
    ASSERT_TRUE(verifyPlan(graph, plan, lengths, {}).isOk());
    bad.spoil(plan);
    placeAgain(graph, plan);
    Status status = verifyPlan(graph, plan, lengths, {});
    EXPECT_THAT(status.message(), HasSubstr(bad.message));
    if (graph.ranks() > graph.strategy().tp)
      continue;
    // The program itself is legal: all ranks may run it.
    for (int rank = 0; rank < graph.ranks(); ++rank)
      plan.ranks[rank] = plan::RankProgram(plan.ranks[1]);
    status = verifyPlan(graph, plan, lengths, {});
    EXPECT_TRUE(status.isOk()) << status.message();
  }
}

} // namespace
