//===- ExchangeVerifierTest.cpp - Bad plans of several ranks -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "test/runtime/plan/PlanEditor.h"
#include "test/runtime/plan/TinyPlans.h"

#include <functional>
#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const std::vector<int64_t> &lengths = equalLengths;

const Model &model() {
  static const Model model = *Model::create(tinyManifest());
  return model;
}

ExecutableGraph graphOf(const std::string &strategy) {
  return *ExecutableGraph::create(model(), *parseStrategy(strategy));
}

struct Case {
  const char *message;
  std::function<void(plan::Plan &)> spoil;
  const char *strategy = "pp=2,layers=3+2";
};

// Layers 0-2 on rank 0, 3-4 on rank 1: activations and gradients of layer 3
// cross. With dp=2 those are ranks 0, 1 and 2, 3.
const Case cases[] = {
    // P1
    {"expects 2 ranks, but has 1", [](plan::Plan &p) { p.ranks.pop_back(); }},
    {"this rank has layers 0 to 2",
     [](plan::Plan &p) { std::swap(p.ranks[0], p.ranks[1]); }},
    {"is for replica 2 of 1",
     [](plan::Plan &p) { p.microBatches[0].replica = 2; }},
    // P3
    {"this rank has layers 0 to 2",
     [](plan::Plan &p) { Editor(p).at(Instruction::FORWARD, 2).layer = 3; }},
    {"belongs to another replica",
     [](plan::Plan &p) { p.microBatches[0].replica = 1; },
     "dp=2,pp=2,layers=3+2"},
    {"rank 1: instruction",
     [](plan::Plan &p) { Editor(p, 1).remove(Instruction::FORWARD, 4, 1); }},
    {"expects layer 3 next",
     [](plan::Plan &p) { Editor(p, 1).remove(Instruction::FORWARD, 3, 1); }},
    {"expects layer 5 next",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::FORWARD, 4, 1, e.find(Instruction::BACKWARD, 4, 1),
              true);
     }},
    {"its input has not been received yet",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::RECV_ACT_WAIT, 3, 0,
              e.find(Instruction::FORWARD, 4, 0));
     }},
    {"the gradient of its output has not been received yet",
     [](plan::Plan &p) {
       Editor e(p);
       e.move(Instruction::RECV_GRAD_WAIT, 3, 0,
              e.find(Instruction::BACKWARD, 1, 0));
     }},
    {"sent before its forward",
     [](plan::Plan &p) {
       Editor e(p);
       e.move(Instruction::SEND_ACT_START, 3, 0,
              e.find(Instruction::FORWARD, 2, 0));
     }},
    {"sent before its backward",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::SEND_GRAD_START, 3, 0,
              e.find(Instruction::BACKWARD, 3, 0));
     }},
    {"waited for before it is started",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::RECV_ACT_WAIT, 3, 0,
              e.find(Instruction::RECV_ACT_START, 3, 0));
     }},
    {"the send is never waited for",
     [](plan::Plan &p) {
       Editor(p, 1).remove(Instruction::SEND_GRAD_WAIT, 3, 7);
     }},
    {"there is no stage before this one",
     [](plan::Plan &p) {
       Editor(p).at(Instruction::SEND_ACT_START, 3).op =
           Instruction::RECV_ACT_START;
     }},
    // P5
    {"not reduced yet",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.remove(Instruction::REDUCE_GRADS_START, 3);
       e.remove(Instruction::REDUCE_GRADS_WAIT, 3);
     },
     "dp=2,pp=2,layers=3+2"},
    {"has not added its gradient of layer 3 yet",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::REDUCE_GRADS_START, 3, 0,
              e.find(Instruction::BACKWARD, 3, 1));
     },
     "dp=2,pp=2,layers=3+2"},
    {"no other rank has the parameters",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::GRAD_NORM, 3, 0, e.find(Instruction::UPDATE, 3),
              true);
       e.at(Instruction::GRAD_NORM, 3).op = Instruction::REDUCE_GRADS_START;
     }},
    {"updated before the gradient norms of the ranks are combined",
     [](plan::Plan &p) { Editor(p).remove(Instruction::COMBINE_NORM, 0); }},
    {"updated before the gradient norms of the ranks are combined",
     [](plan::Plan &p) {
       Editor e(p);
       e.move(Instruction::COMBINE_NORM, 0, 0, e.find(Instruction::UPDATE, 1));
     }},
    // A norm that comes later is in no rank's sum.
    {"(COMBINE_NORM): the gradient norm of layer 2 is missing",
     [](plan::Plan &p) {
       Editor e(p);
       e.move(Instruction::GRAD_NORM, 2, 0,
              e.find(Instruction::COMBINE_NORM, 0) + 1);
     }},
    {"rank 1: instruction", [](plan::Plan &p) { removeNorms(p.ranks[1]); }},
    // One of three parameters alone, twice, one that the layer does not update,
    // one that it has not.
    {"waited for when 1 of the 3 parameters that the layer shares are started",
     [](plan::Plan &p) {
       Editor(p).at(Instruction::REDUCE_GRADS_START, 1).parameter = 2;
     },
     "dp=2"},
    {"reduced twice",
     [](plan::Plan &p) {
       Editor e(p);
       int at = e.find(Instruction::REDUCE_GRADS_START, 1);
       e.move(Instruction::REDUCE_GRADS_START, 1, 0, at, true);
       e.instructions[at].parameter = 2;
     },
     "dp=2"},
    {"updates no parameter 1 that other ranks have too",
     [](plan::Plan &p) {
       Editor(p).at(Instruction::REDUCE_GRADS_START, 4).parameter = 1;
     },
     "dp=2"},
    {"its layer has 3 parameters",
     [](plan::Plan &p) {
       Editor(p).at(Instruction::REDUCE_GRADS_START, 1).parameter = 4;
     },
     "dp=2"},
    {"its layer has 3 parameters",
     [](plan::Plan &p) {
       Editor(p).at(Instruction::REDUCE_GRADS_START, 1).parameter = -1;
     },
     "dp=2"},
    {"that other ranks updated are not gathered yet",
     [](plan::Plan &p) {
       Editor e(p);
       e.remove(Instruction::GATHER_PARAMS_START, 1);
       e.remove(Instruction::GATHER_PARAMS_WAIT, 1);
     },
     "dp=2,zero=1"},
    // The ninth replica has no micro-batch, and so no forward that waits.
    {"the rows of this layer are still being gathered",
     [](plan::Plan &p) {
       Editor e(p, 8);
       e.move(Instruction::GATHER_PARAMS_WAIT, 1, 0,
              e.find(Instruction::REDUCE_GRADS_START, 0));
     },
     "dp=9,zero=1"},
    {"has no rows that other ranks update",
     [](plan::Plan &p) {
       Editor e(p);
       e.move(Instruction::UPDATE, 1, 0, 0, true);
       e.program.instructions[0].op = Instruction::GATHER_PARAMS_START;
     },
     "dp=2"},
    // P7: the first stage is fast, so the second receives what it cannot use yet.
    {"overlaps the",
     [](plan::Plan &p) {
       Editor e(p, 1);
       auto place = [&](int m) -> int64_t & {
         return placeOf(e.at(Instruction::RECV_ACT_START, 1, m), Operand::Kept);
       };
       place(1) = place(0);
     },
     "pp=2,layers=1+4"},
    // P10: two receives of equal shape the other way round; a receive before a
    // send at one end, behind it at the other; reductions likewise.
    {"both ends of a channel need one order",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::RECV_ACT_START, 3, 1,
              e.find(Instruction::RECV_ACT_START, 3, 0));
       placeAgain(graphOf("pp=2,layers=3+2"), p);
     }},
    {"both ends of a channel need one order",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::RECV_ACT_START, 3, 3,
              e.find(Instruction::SEND_GRAD_START, 3, 0));
       placeAgain(graphOf("pp=2,layers=3+2"), p);
     }},
    // P5: one rank trains on a micro-batch that the other evaluates.
    {"micro-batch 7 is only evaluated and gives no gradient",
     [](plan::Plan &p) {
       Editor e(p, 1);
       for (int layer : {3, 4}) {
         turnInto(e.at(Instruction::FORWARD, layer, 7), Instruction::EVALUATE);
         e.remove(Instruction::BACKWARD, layer, 7);
         e.remove(Instruction::FREE, layer, 7);
       }
       e.remove(Instruction::SEND_GRAD_START, 3, 7);
       e.remove(Instruction::SEND_GRAD_WAIT, 3, 7);
       placeAgain(graphOf("pp=2,layers=3+2"), p);
     }},
    // What one rank exchanges in one call, the other one exchanges in three.
    {"all ranks of a group need one order",
     [](plan::Plan &p) {
       startOneByOne(graphOf("dp=2").replicaView(1), 2, p.ranks[1]);
     },
     "dp=2"},
    {"all ranks of a group need one order",
     [](plan::Plan &p) {
       Editor e(p, 1);
       e.move(Instruction::REDUCE_GRADS_START, 2, 0,
              e.find(Instruction::REDUCE_GRADS_WAIT, 0));
       e.move(Instruction::REDUCE_GRADS_START, 1, 0,
              e.find(Instruction::REDUCE_GRADS_WAIT, 0));
     },
     "dp=2"},
    // P11: layer 1 is shared by ranks 0 and 2, layer 0 (tied) by all four. Rank
    // 0 waits for layer 1 before it starts layer 0, rank 2 the other way round:
    // each group sees one order, but neither goes on.
    {"the ranks wait for each other: rank 0 instruction",
     [](plan::Plan &p) {
       Editor e(p);
       e.move(Instruction::GATHER_PARAMS_WAIT, 1, 0,
              e.find(Instruction::GATHER_PARAMS_WAIT, 0));
       e.move(Instruction::GATHER_PARAMS_START, 0, 0,
              e.find(Instruction::GATHER_PARAMS_WAIT, 0));
       Editor f(p, 2);
       f.move(Instruction::GATHER_PARAMS_WAIT, 0, 0,
              f.find(Instruction::GATHER_PARAMS_START, 1));
     },
     "dp=2,pp=2,layers=3+2,zero=1"},
};

TEST(ExchangeVerifierTest, GoodPlansPass) {
  for (const char *strategy :
       {"pp=2,layers=3+2", "dp=2,pp=2,layers=3+2", "dp=3,zero=1",
        "dp=2,pp=4,layers=1+2+1+1,zero=1", "pp=5,layers=1+1+1+1+1"})
    for (Schedule schedule : {Schedule::GPipe, Schedule::OneForwardOneBackward})
      for (bool split : {false, true}) {
        Planner planner(graphOf(strategy));
        PlanOptions chosen = tinyPlanOptions(schedule);
        chosen.splitBackward = split;
        auto plan = planner.training(lengths, 100, chosen);
        ASSERT_TRUE(plan.isOk()) << plan.status().message();
        Status status = verifyPlan(planner.graph(), *plan, lengths, {});
        EXPECT_TRUE(status.isOk()) << strategy << ": " << status.message();
        auto evaluation = planner.evaluation(lengths, 100, chosen);
        status = verifyPlan(planner.graph(), *evaluation, lengths, {});
        EXPECT_TRUE(status.isOk()) << strategy << ": " << status.message();
      }
}

TEST(ExchangeVerifierTest, ParametersAreExchangedOneByOneOnAllRanks) {
  Planner planner(graphOf("dp=2,pp=2,layers=3+2,zero=1"));
  plan::Plan plan = *planner.training(lengths, 100, tinyPlanOptions());
  for (int rank = 0; rank < plan.rankCount(); ++rank)
    for (int layer : {0, 1, 2, 3, 4})
      startOneByOne(planner.graph().replicaView(rank), layer, plan.ranks[rank]);
  Status status = verifyPlan(planner.graph(), plan, lengths, {});
  EXPECT_TRUE(status.isOk()) << status.message();
}

TEST(ExchangeVerifierTest, NoRankHasNormsIfTheRunWantsNone) {
  VerifyOptions options;
  options.updates.needsNorms = false;
  Planner planner(graphOf("dp=2,pp=2,layers=3+2"));
  plan::Plan plan = *planner.training(lengths, 100, tinyPlanOptions());
  removeNorms(plan.ranks[1]);
  EXPECT_THAT(verifyPlan(planner.graph(), plan, lengths, options).message(),
              HasSubstr("(P10)"));
  for (plan::RankProgram &program : plan.ranks)
    removeNorms(program);
  Status status = verifyPlan(planner.graph(), plan, lengths, options);
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_THAT(verifyPlan(planner.graph(), plan, lengths, {}).message(),
              HasSubstr("updated without the gradient norm of layer 0"));
  PlanOptions without = tinyPlanOptions();
  without.norms = false;
  plan = *planner.training(lengths, 100, without);
  EXPECT_TRUE(verifyPlan(planner.graph(), plan, lengths, options).isOk());
  EXPECT_FALSE(verifyPlan(planner.graph(), plan, lengths, {}).isOk());
}

TEST(ExchangeVerifierTest, EveryRuleIsEnforced) {
  for (const Case &bad : cases) {
    Planner planner(graphOf(bad.strategy));
    plan::Plan plan = *planner.training(
        lengths, 100, tinyPlanOptions(Schedule::OneForwardOneBackward));
    ASSERT_TRUE(verifyPlan(planner.graph(), plan, lengths, {}).isOk());
    bad.spoil(plan);
    Status status = verifyPlan(planner.graph(), plan, lengths, {});
    EXPECT_THAT(status.message(), HasSubstr(bad.message));
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << bad.message;
  }
}

void insert(plan::Plan &plan, int rank, int target, Instruction::Op op,
            int layer) {
  Instruction added;
  added.op = op;
  added.layer = layer;
  auto &list = plan.ranks[rank].instructions;
  list.insert(list.begin() + target, added);
}

struct CaseWithoutMicroBatches {
  const char *message;
  std::function<void(plan::Plan &)> spoil;
  const char *strategy;
};

// Plans of nothing but an update, in which no forward waits for a gather.
const CaseWithoutMicroBatches updates[] = {
    // P5
    {"the rows of this layer are still being gathered",
     [](plan::Plan &p) {
       for (int rank : {0, 1}) {
         int at = Editor(p, rank).find(Instruction::GRAD_NORM, 0);
         insert(p, rank, at, Instruction::GATHER_PARAMS_START, 1);
         insert(p, rank, p.ranks[rank].count(), Instruction::GATHER_PARAMS_WAIT,
                1);
       }
     },
     "dp=2,zero=1"},
    {"the gradients of this layer are still being reduced",
     [](plan::Plan &p) {
       for (int rank : {0, 1}) {
         int at = Editor(p, rank).find(Instruction::REDUCE_GRADS_WAIT, 0);
         insert(p, rank, at, Instruction::GATHER_PARAMS_START, 1);
         at = Editor(p, rank).find(Instruction::GRAD_NORM, 0);
         insert(p, rank, at, Instruction::GATHER_PARAMS_WAIT, 1);
       }
     },
     "dp=2,zero=1"},
    {"an exchange of the parameters of layer 1 is never waited for",
     [](plan::Plan &p) {
       for (int rank : {0, 1})
         insert(p, rank, p.ranks[rank].count(),
                Instruction::GATHER_PARAMS_START, 1);
     },
     "dp=2,zero=1"},
    // P11: rank 2 waits for rows of rank 0 before the norms are combined, rank
    // 0 sends them afterwards.
    {"the ranks wait for each other: rank 0 instruction",
     [](plan::Plan &p) {
       for (int rank : {0, 2}) {
         int norm = Editor(p, rank).find(Instruction::COMBINE_NORM, 0);
         int at = rank == 0 ? norm + 1 : norm;
         insert(p, rank, at, Instruction::GATHER_PARAMS_START, 1);
         insert(p, rank, at + 1, Instruction::GATHER_PARAMS_WAIT, 1);
       }
     },
     "dp=2,pp=2,layers=3+2,zero=1"},
};

TEST(ExchangeVerifierTest, EveryRuleIsEnforcedInUpdatesAlone) {
  for (const CaseWithoutMicroBatches &bad : updates) {
    SCOPED_TRACE(bad.message);
    Planner planner(graphOf(bad.strategy));
    plan::Plan plan = *planner.update();
    ASSERT_TRUE(verifyPlan(planner.graph(), plan, {}, {}).isOk());
    bad.spoil(plan);
    Status status = verifyPlan(planner.graph(), plan, {}, {});
    EXPECT_THAT(status.message(), HasSubstr(bad.message));
  }
}

// With ZeRO a rank updates rows of its own alone: an evaluation needs those of
// the others, of the update before, and one in the same plan would read stale
// ones.
TEST(ExchangeVerifierTest, EvaluationsSeeTheRowsThatOtherRanksUpdated) {
  Planner planner(graphOf("dp=2,zero=1"));
  auto verify = [&](const plan::Plan &plan) {
    return verifyPlan(planner.graph(), plan, lengths, {});
  };
  const plan::Plan good =
      *planner.evaluation(lengths, 100, tinyPlanOptions(Schedule::GPipe));
  EXPECT_TRUE(verify(good).isOk()) << verify(good).message();
  const plan::Plan update = *planner.update();
  for (int rank : {0, 1}) {
    SCOPED_TRACE(rank);
    const char *stale = "that other ranks updated are not gathered yet";
    int first = good.microBatches[0].replica == rank ? 0 : 1;
    while (good.microBatches[first].replica != rank)
      ++first;
    for (int layer : {0, 1, 4}) {
      plan::Plan bad = good;
      Editor(bad, rank).remove(Instruction::GATHER_PARAMS_START, layer);
      Editor(bad, rank).remove(Instruction::GATHER_PARAMS_WAIT, layer);
      EXPECT_THAT(verify(bad).message(), HasSubstr(stale));
      bad = good;
      Editor e(bad, rank);
      e.move(Instruction::GATHER_PARAMS_WAIT, layer, 0,
             e.find(Instruction::EVALUATE, layer, first) + 1);
      EXPECT_THAT(verify(bad).message(), HasSubstr(stale));
    }
  }
  // Gathers before the update, or between it and the evaluation.
  for (bool gathersAfter : {false, true}) {
    plan::Plan bad = good;
    for (int rank : {0, 1}) {
      auto &all = bad.ranks[rank].instructions;
      auto add = [&](const plan::RankProgram &program, bool gathers) {
        for (const Instruction &i : program.instructions)
          if ((i.op == Instruction::GATHER_PARAMS_START ||
               i.op == Instruction::GATHER_PARAMS_WAIT) == gathers)
            all.push_back(i);
      };
      all.clear();
      if (!gathersAfter)
        add(good.ranks[rank], true);
      add(update.ranks[rank], false);
      if (gathersAfter)
        add(good.ranks[rank], true);
      add(good.ranks[rank], false);
    }
    EXPECT_THAT(verify(bad).message(),
                HasSubstr("has not added its gradient of layer"));
  }
}

// The ninth replica has no micro-batch, and nothing that needs the rows.
TEST(ExchangeVerifierTest, GathersOfIdleReplicasAreWaitedFor) {
  Planner planner(graphOf("dp=9,zero=1"));
  plan::Plan plan =
      *planner.evaluation(lengths, 100, tinyPlanOptions(Schedule::GPipe));
  ASSERT_TRUE(verifyPlan(planner.graph(), plan, lengths, {}).isOk());
  Editor(plan, 8).remove(Instruction::GATHER_PARAMS_WAIT, 1);
  EXPECT_THAT(
      verifyPlan(planner.graph(), plan, lengths, {}).message(),
      HasSubstr("rank 8: an exchange of the parameters of layer 1 is never "
                "waited for"));
}

// A micro-batch of no tokens leaves no block behind that would tell.
TEST(ExchangeVerifierTest, EveryMessageHasTwoEnds) {
  Planner planner(graphOf("pp=2,layers=3+2"));
  plan::Plan plan =
      *planner.evaluation(lengths, 100, tinyPlanOptions(Schedule::GPipe));
  int empty = plan.microBatchCount(), last = empty - 1;
  plan.microBatches.emplace_back();
  for (plan::RankProgram &program : plan.ranks)
    for (int index = 0, count = program.count(); index < count; ++index)
      if (program.instructions[index].microBatch == last) {
        Instruction copy = program.instructions[index];
        copy.microBatch = empty;
        program.instructions.push_back(copy);
      }
  placeAgain(graphOf("pp=2,layers=3+2"), plan);
  Status status = verifyPlan(planner.graph(), plan, lengths, {});
  ASSERT_TRUE(status.isOk()) << status.message();
  for (auto op : {Instruction::RECV_GRAD_START, Instruction::RECV_GRAD_WAIT}) {
    Instruction &message = plan.ranks[0].instructions.emplace_back();
    message.op = op;
    message.layer = 3;
    message.microBatch = empty;
  }
  EXPECT_THAT(
      verifyPlan(planner.graph(), plan, lengths, {}).message(),
      HasSubstr("(RECV_GRAD_START layer 3 micro-batch 8 from rank 1) has no "
                "counterpart on rank 1 (P9)"));
}

TEST(ExchangeVerifierTest, ParametersAreCastOnce) {
  TinyOptions narrow;
  narrow.compute = plan::BF16;
  Model narrowed = *Model::create(tinyManifest(narrow));
  plan::Plan plan = *Planner(narrowed).cast();
  ASSERT_TRUE(verifyPlan(onOneRank(narrowed), plan, {}, {}).isOk());
  Editor(plan).repeat(Instruction::CAST_PARAMS, 1);
  EXPECT_THAT(verifyPlan(onOneRank(narrowed), plan, {}, {}).message(),
              HasSubstr("cast twice"));
}

/// Plans in which every instruction occurs that is not a repetition.
std::vector<std::pair<std::string, PlanOptions>> richPlans() {
  PlanOptions split = tinyPlanOptions(Schedule::GPipe);
  split.splitBackward = true;
  PlanOptions full = tinyPlanOptions(Schedule::OneForwardOneBackward);
  full.recompute = {plan::RECOMPUTE_FULL};
  return {{"dp=2,pp=2,layers=3+2,zero=1", split},
          {"dp=2,pp=2,layers=3+2,zero=1", full},
          {"pp=3,layers=2+2+1", full}};
}

// Nothing in a plan is superfluous: without any one of its instructions, or
// with one of them twice in a row, it is refused.
TEST(ExchangeVerifierTest, NoInstructionCanBeLeftOutOrDoubled) {
  int tried = 0;
  for (const auto &[strategy, chosen] : richPlans()) {
    Planner planner(graphOf(strategy));
    const plan::Plan plan = *planner.training(lengths, 100, chosen);
    ASSERT_TRUE(verifyPlan(planner.graph(), plan, lengths, {}).isOk());
    for (int rank = 0; rank < plan.rankCount(); ++rank)
      for (int at = 0; at < plan.ranks[rank].count(); ++at, ++tried)
        for (bool doubled : {false, true}) {
          plan::Plan spoilt = plan;
          auto &list = spoilt.ranks[rank].instructions;
          if (doubled)
            list.insert(list.begin() + at, Instruction(list[at]));
          else
            list.erase(list.begin() + at);
          EXPECT_FALSE(verifyPlan(planner.graph(), spoilt, lengths, {}).isOk())
              << strategy << ": rank " << rank << " instruction " << at << " ("
              << describeInstruction(plan.ranks[rank].instructions[at]) << ") "
              << (doubled ? "doubled" : "left out");
        }
  }
  EXPECT_GT(tried, 500);
}

// P8
TEST(ExchangeVerifierTest, TheLimitHoldsForEveryRank) {
  Planner planner(graphOf("pp=2,layers=3+2"));
  plan::Plan plan = *planner.training(
      lengths, 100, tinyPlanOptions(Schedule::OneForwardOneBackward));
  int64_t a = plan.ranks[0].dynamicBytes, b = plan.ranks[1].dynamicBytes;
  EXPECT_NE(a, b);
  EXPECT_TRUE(verifyPlan(planner.graph(), plan, lengths, {{a, b}}).isOk());
  EXPECT_THAT(
      verifyPlan(planner.graph(), plan, lengths, {{a, b - 1}}).message(),
      HasSubstr("but the limit is"));
  EXPECT_THAT(
      verifyPlan(planner.graph(), plan, lengths, {{a - 1, b}}).message(),
      HasSubstr("rank 0: needs"));
}

} // namespace
