//===- PlanVerifierTest.cpp - Every rule of a plan, broken once -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/plan/verify/OrderChecker.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/place/AssignMemory.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/plan/PlanEditor.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const std::vector<int64_t> lengths = {30, 5, 40, 12, 33};

const Model &model() {
  // Without its bias the head owns no parameter.
  static const Model model = [] {
    TinyOptions options;
    options.headBias = false;
    return *Model::create(tinyManifest(options));
  }();
  return model;
}

plan::Plan goodPlan(plan::Recompute mode, bool split) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 48;
  options.recompute = {mode};
  options.splitBackward = split;
  options.inFlight = 2;
  return *Planner(model()).training(lengths, 100, options);
}

Status verify(const plan::Plan &plan, int64_t limit = INT64_C(1) << 30) {
  VerifyOptions options;
  options.limits = {limit};
  return verifyPlan(onOneRank(model()), plan, lengths, options);
}

/// No two blocks at one place, ever, so that only the order is wrong where some
/// are never given back.
void placeApart(Editor e) {
  int64_t next = 0;
  for (Instruction &i : e.instructions)
    for (int64_t &place : i.places)
      if (place != plan::noPlace)
        place = std::exchange(next, next + (1 << 14));
  e.program.dynamicBytes = next;
}

struct Case {
  const char *message;
  std::function<void(Editor)> spoil;
  plan::Recompute mode = plan::RECOMPUTE_SELECTIVE;
  bool split = false;
};

const Case cases[] = {
    // P1
    {"made for model 0000000000000001",
     [](Editor e) { e.plan.manifestHash = 1; }},
    {"made for strategy 'pp=2', but this is 'dp=1,tp=1,pp=1",
     [](Editor e) { e.plan.graph = "pp=2"; }},
    {"expects one rank, but has 2",
     [](Editor e) { e.plan.ranks.emplace_back(); }},
    // P2
    {"names sample 9 of 5", [](Editor e) { e.segment(0).sample = 9; }},
    {"takes tokens [5, +30) of sample 0, which has 30",
     [](Editor e) { e.segment(0).begin = 5; }},
    {"micro-batches have only the first 7 of 30 tokens of sample 0",
     [](Editor e) { e.segment(0).length = 7; }},
    {"micro-batch 0 takes tokens of sample 0 from 20 on, but micro-batches "
     "before it end at 0",
     [](Editor e) {
       e.segment(0).begin = 20;
       e.segment(0).length = 10;
     }},
    {"micro-batch 0 takes tokens of stream 1 of sample 0: a model has stream 0 "
     "alone",
     [](Editor e) { e.segment(0).stream = 1; }},
    {"micro-batch 0 takes tokens of stream -1",
     [](Editor e) { e.segment(0).stream = -1; }},
    {"micro-batch 0 gives sample 0 keys of stream 1: cross-attention is not "
     "supported",
     [](Editor e) { e.segment(0).keyStream = 1; }},
    {"micro-batch 0 gives sample 0 keys [0, +29), but its tokens up to "
     "the segment's last are [0, +30)",
     [](Editor e) { e.segment(0).keyEnd = 29; }},
    {"micro-batch 0 gives sample 0 keys [0, +31), but its tokens up to "
     "the segment's last are [0, +30)",
     [](Editor e) { e.segment(0).keyEnd = 31; }},
    {"micro-batch 0 gives sample 0 keys [1, +29), but its tokens up to "
     "the segment's last are [0, +30)",
     [](Editor e) { e.segment(0).keyBegin = 1; }},
    {"micro-batch 0 gives sample 0 keys [-1, +31), but its tokens up to "
     "the segment's last are [0, +30)",
     [](Editor e) { e.segment(0).keyBegin = -1; }},
    {"micro-batch 0 gives sample 0 keys out of range",
     [](Editor e) {
       e.segment(0).keyBegin = std::numeric_limits<int64_t>::min();
     }},
    {"micro-batch 0 gives sample 0 keys out of range",
     [](Editor e) {
       e.segment(0).keyEnd = std::numeric_limits<int64_t>::max();
     }},
    {"micro-batch 0 pads sample 0 to 65 tokens, at most 64 are possible",
     [](Editor e) { e.segment(0).length = 65; }},
    {"is in two segments",
     [](Editor e) { e.plan.microBatches[1].segments.push_back(e.segment(0)); }},
    {"has 1048577 micro-batches, at most 1048576 are possible",
     [](Editor e) { e.plan.microBatches.resize(plan::maxMicroBatches + 1); }},
    {"is in no micro-batch",
     [](Editor e) { e.plan.microBatches[0].segments.clear(); }},
    {"counts 146 targets, but the mini-batch has 120 tokens",
     [](Editor e) { e.plan.targetTokens = 146; }},
    {"counts no targets, but a loss is divided by their number",
     [](Editor e) { e.plan.targetTokens = 0; }},
    {"counts -1 targets", [](Editor e) { e.plan.targetTokens = -1; }},
    // Instructions that mean nothing.
    {"is not known",
     [](Editor e) { e.program.instructions[0].op = Instruction::OP_UNKNOWN; }},
    {"there are 5 layers",
     [](Editor e) { e.program.instructions[3].layer = 5; }},
    {"there are 3 micro-batches",
     [](Editor e) { e.program.instructions[3].microBatch = -1; }},
    {"'embedding' has no such function",
     [](Editor e) {
       turnInto(e.at(Instruction::BACKWARD, 0), Instruction::BACKWARD_WEIGHT);
     }},
    {"unknown recompute mode",
     [](Editor e) {
       e.at(Instruction::FORWARD, 1).recompute =
           static_cast<plan::Recompute>(9);
     }},
    // P3
    {"not loaded yet", [](Editor e) { e.remove(Instruction::LOAD, 0, 0); }},
    {"loaded twice", [](Editor e) { e.repeat(Instruction::LOAD, 0, 0); }},
    {"expects layer 2 next",
     [](Editor e) { e.remove(Instruction::FORWARD, 2, 1); }},
    {"expects layer 5 next",
     [](Editor e) { e.repeat(Instruction::FORWARD, 4, 1); }},
    {"only 4 of 5 layers have passed forward",
     [](Editor e) {
       e.move(Instruction::BACKWARD, 4, 0, e.find(Instruction::FORWARD, 4, 0));
     }},
    {"expects layer 2 next",
     [](Editor e) {
       e.remove(Instruction::BACKWARD, 2);
       e.remove(Instruction::FREE, 2);
     },
     plan::RECOMPUTE_NONE},
    {"backward is complete already",
     [](Editor e) { e.repeat(Instruction::BACKWARD, 0, 2); }},
    {"freed before its backward",
     [](Editor e) {
       e.move(Instruction::FREE, 3, 0, e.find(Instruction::BACKWARD, 3, 0));
     }},
    {"freed twice", [](Editor e) { e.repeat(Instruction::FREE, 3, 0); }},
    {"is never freed", [](Editor e) { e.remove(Instruction::FREE, 0, 2); }},
    {"either trained on or evaluated",
     [](Editor e) {
       turnInto(e.at(Instruction::FORWARD, 3), Instruction::EVALUATE);
     }},
    {"BACKWARD_INPUT of this layer comes first",
     [](Editor e) {
       e.move(Instruction::BACKWARD_WEIGHT, 2, 0,
              e.find(Instruction::BACKWARD_INPUT, 2, 0));
     },
     plan::RECOMPUTE_NONE, true},
    {"was added already",
     [](Editor e) {
       e.move(Instruction::BACKWARD_WEIGHT, 2, 0,
              e.find(Instruction::BACKWARD_WEIGHT, 1, 0), true);
     },
     plan::RECOMPUTE_NONE, true},
    {"has not added its gradient of layer 2",
     [](Editor e) {
       e.remove(Instruction::BACKWARD_WEIGHT, 2, 2);
       e.remove(Instruction::FREE, 2, 2);
       placeApart(e);
     },
     plan::RECOMPUTE_NONE, true},
    // P4
    {"not recomputed yet",
     [](Editor e) { e.remove(Instruction::RECOMPUTE, 3, 0); }},
    {"recomputed twice",
     [](Editor e) {
       e.move(Instruction::RECOMPUTE, 3, 0, e.find(Instruction::BACKWARD, 3, 0),
              true);
     }},
    {"in another mode",
     [](Editor e) {
       e.at(Instruction::RECOMPUTE, 3).recompute = plan::RECOMPUTE_FULL;
     }},
    {"nothing to recompute",
     [](Editor e) {
       int at = e.find(Instruction::BACKWARD, 3);
       e.move(Instruction::BACKWARD, 3, 0, at, true);
       Instruction &i = e.instructions[at];
       turnInto(i, Instruction::RECOMPUTE);
       i.recompute = plan::RECOMPUTE_SELECTIVE;
     },
     plan::RECOMPUTE_NONE},
    {"recomputed before forward",
     [](Editor e) {
       e.move(Instruction::RECOMPUTE, 3, 0, e.find(Instruction::FORWARD, 3, 0));
     }},
    {"no recomputation of this mode",
     [](Editor e) {
       e.at(Instruction::FORWARD, 0).recompute = plan::RECOMPUTE_FULL;
     }},
    // P5
    {"has not added its gradient",
     [](Editor e) {
       e.move(Instruction::UPDATE, 1, 0, e.find(Instruction::LOAD, 0, 2));
     }},
    {"updated twice", [](Editor e) { e.repeat(Instruction::UPDATE, 1); }},
    {"layer 1 is not updated",
     [](Editor e) { e.remove(Instruction::UPDATE, 1); }},
    {"updated without the gradient norm of layer 1",
     [](Editor e) { e.remove(Instruction::GRAD_NORM, 1); }},
    {"updated without the gradient norm of layer 2",
     [](Editor e) { e.move(Instruction::GRAD_NORM, 2, 0, e.program.count()); }},
    {"updated without the gradient norm of layer 0",
     [](Editor e) { removeNorms(e.program); }},
    {"the only rank has no norms to combine",
     [](Editor e) {
       e.move(Instruction::GRAD_NORM, 3, 0, e.find(Instruction::UPDATE, 0),
              true);
       turnInto(e.instructions[e.find(Instruction::UPDATE, 0) - 1],
                Instruction::COMBINE_NORM);
     }},
    {"owns no parameters",
     [](Editor e) { e.at(Instruction::UPDATE, 0).layer = 4; }},
    // P6
    {"'late' is 64, but it takes no such block here",
     [](Editor e) {
       placeOf(e.at(Instruction::FORWARD, 2), Operand::Late) = 64;
     },
     plan::RECOMPUTE_NONE},
    {"'a place' is 64, but it takes no such block here",
     [](Editor e) { e.at(Instruction::FREE, 2).places[2] = 64; }},
    {"not a multiple of 64",
     [](Editor e) { ++placeOf(e.at(Instruction::FORWARD, 2), Operand::Late); }},
    {"ends past the region",
     [](Editor e) {
       placeOf(e.at(Instruction::BACKWARD, 2), Operand::Workspace) =
           e.program.dynamicBytes;
     }},
    // It begins inside.
    {"ends past the region",
     [](Editor e) {
       placeOf(e.at(Instruction::BACKWARD, 2), Operand::Workspace) =
           e.program.dynamicBytes / 64 * 64 - 64;
     }},
    {"negative",
     [](Editor e) {
       placeOf(e.at(Instruction::BACKWARD, 2), Operand::Workspace) = -64;
     }},
    {"has no place: it needs 'workspace'",
     [](Editor e) {
       placeOf(e.at(Instruction::BACKWARD, 2), Operand::Workspace) =
           plan::noPlace;
     }},
    // P7
    {"overlaps the kept block of layer 1 micro-batch 0",
     [](Editor e) {
       placeOf(e.at(Instruction::BACKWARD, 3), Operand::Workspace) =
           placeOf(e.at(Instruction::FORWARD, 0), Operand::Next);
     }},
    // From behind: the block begins inside another, whose offset is lower.
    {"overlaps the kept block of layer",
     [](Editor e) {
       int64_t last = 0;
       for (Instruction &i : e.instructions)
         if (i.op == Instruction::FORWARD && i.layer < 3)
           last = std::max(last, placeOf(i, Operand::Next));
       e.program.dynamicBytes += 1 << 20;
       placeOf(e.at(Instruction::BACKWARD, 3), Operand::Workspace) = last + 64;
     }},
    {"overlaps the gradient block",
     [](Editor e) {
       placeOf(e.at(Instruction::BACKWARD, 2), Operand::Gradient) =
           placeOf(e.at(Instruction::BACKWARD, 3), Operand::Gradient);
     }},
    {"overlaps the batch block of micro-batch 0",
     [](Editor e) {
       placeOf(e.at(Instruction::FORWARD, 3), Operand::Late) =
           placeOf(e.at(Instruction::LOAD, 0), Operand::Batch);
     }},
};

TEST(PlanVerifierTest, GoodPlansPass) {
  for (auto mode :
       {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
    for (bool split : {false, true}) {
      Status status = verify(goodPlan(mode, split));
      EXPECT_TRUE(status.isOk()) << status.message();
    }
}

TEST(PlanVerifierTest, EveryRuleIsEnforced) {
  for (const Case &bad : cases) {
    plan::Plan plan = goodPlan(bad.mode, bad.split);
    ASSERT_TRUE(verify(plan).isOk());
    bad.spoil(Editor(plan));
    EXPECT_THAT(verify(plan).message(), HasSubstr(bad.message));
    EXPECT_EQ(verify(plan).code(), StatusCode::InvalidArgument) << bad.message;
  }
}

// P5: whoever wants no norms says so, and then has none.
TEST(PlanVerifierTest, NormsAreLeftOutOnRequest) {
  VerifyOptions options;
  options.updates.needsNorms = false;
  auto check = [&](const std::function<void(Editor)> &change) {
    plan::Plan plan = goodPlan(plan::RECOMPUTE_SELECTIVE, false);
    change(Editor(plan));
    return verifyPlan(onOneRank(model()), plan, lengths, options).message();
  };
  EXPECT_EQ(check([](Editor) {}), "");
  EXPECT_EQ(check([](Editor e) { removeNorms(e.program); }), "");
  EXPECT_THAT(check([](Editor e) { e.remove(Instruction::GRAD_NORM, 1); }),
              HasSubstr("the gradient norm of layer 1 is missing (P5)"));
  EXPECT_THAT(check([](Editor e) {
                e.move(Instruction::GRAD_NORM, 2, 0, e.program.count());
              }),
              HasSubstr("a gradient norm after an update (P5)"));
}

// P5
TEST(PlanVerifierTest, GradientsAreNotLeftIfThePlanMustUpdate) {
  VerifyOptions options;
  plan::Plan plan = goodPlan(plan::RECOMPUTE_SELECTIVE, false);
  options.updates.mustUpdate = true;
  EXPECT_TRUE(verifyPlan(onOneRank(model()), plan, lengths, options).isOk());
  auto &list = plan.ranks[0].instructions;
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const Instruction &i) {
                              return i.op == Instruction::UPDATE;
                            }),
             list.end());
  EXPECT_THAT(
      verifyPlan(onOneRank(model()), plan, lengths, options).message(),
      HasSubstr("layer 0 is not updated: the gradients of the step are lost "
                "(P5)"));
  options.updates.mustUpdate = false;
  EXPECT_TRUE(verifyPlan(onOneRank(model()), plan, lengths, options).isOk());
}

// P8
TEST(PlanVerifierTest, TheLimitHoldsToTheByte) {
  plan::Plan plan = goodPlan(plan::RECOMPUTE_NONE, false);
  int64_t bytes = plan.ranks[0].dynamicBytes;
  EXPECT_TRUE(verify(plan, bytes).isOk());
  EXPECT_THAT(verify(plan, bytes - 1).message(), HasSubstr("but the limit is"));
  // Beyond what any region may have, that is the limit, whatever was given.
  plan.ranks[0].dynamicBytes = INT64_MAX;
  EXPECT_THAT(verify(plan, INT64_MAX).message(),
              HasSubstr("but the limit is " + std::to_string(maxBlockBytes)));
}

// P2
TEST(PlanVerifierTest, TargetsAreThoseOfTheMiniBatch) {
  plan::Plan plan = goodPlan(plan::RECOMPUTE_NONE, false);
  VerifyOptions options;
  options.targets = 100;
  EXPECT_TRUE(verifyPlan(onOneRank(model()), plan, lengths, options).isOk());
  options.targets = 99;
  EXPECT_THAT(verifyPlan(onOneRank(model()), plan, lengths, options).message(),
              HasSubstr("counts 100 targets, but the mini-batch has 99"));
}

// P2
TEST(PlanVerifierTest, SamplesAreNoLongerThanThePositions) {
  plan::Plan plan = goodPlan(plan::RECOMPUTE_NONE, false);
  TinyOptions options;
  options.headBias = false;
  plan::Manifest manifest = tinyManifest(options);
  for (auto [positions, fits] : {std::pair(0, true), {40, true}, {39, false}}) {
    manifest.mutable_facts()->set_positions(positions);
    Model model = *Model::create(manifest);
    plan.manifestHash = model.hash();
    Status status = verifyPlan(onOneRank(model), plan, lengths, {});
    EXPECT_EQ(status.isOk(), fits) << status.message();
    if (!fits)
      EXPECT_THAT(status.message(), HasSubstr("sample 2 has 40 tokens, but the "
                                              "model has 39 positions"));
  }
}

/// Makes the last micro-batch one that is evaluated, from instruction `from` of
/// its forwards on at the end of the program.
void evaluateLast(plan::Plan &plan, int from) {
  const int last = plan.microBatchCount() - 1;
  plan::RankProgram &program = plan.ranks[0], before = program;
  std::vector<Instruction> late;
  program.instructions.clear();
  for (Instruction i : before.instructions) {
    if (isPerMicroBatch(i.op) && i.microBatch == last) {
      if (i.op != Instruction::LOAD && i.op != Instruction::FORWARD)
        continue;
      if (i.op == Instruction::FORWARD)
        turnInto(i, Instruction::EVALUATE);
      if (i.op == Instruction::EVALUATE && i.layer >= from) {
        late.push_back(i);
        continue;
      }
    }
    program.instructions.push_back(i);
  }
  for (const Instruction &i : late)
    program.instructions.push_back(i);
  ASSERT_TRUE(
      assignMemory(RankView::whole(model()), plan, program, nullptr).isOk());
}

// P3, P5
TEST(PlanVerifierTest, WhatIsEvaluatedIsNotTrainedOn) {
  plan::Plan plan = goodPlan(plan::RECOMPUTE_NONE, false);
  evaluateLast(plan, 5);
  EXPECT_THAT(verify(plan).message(),
              HasSubstr("micro-batch 2 is only evaluated and gives no "
                        "gradient"));
  // Some of it, or all, after the update.
  plan = goodPlan(plan::RECOMPUTE_NONE, false);
  evaluateLast(plan, 2);
  EXPECT_THAT(verify(plan).message(), HasSubstr("is only evaluated"));
  plan = goodPlan(plan::RECOMPUTE_NONE, false);
  evaluateLast(plan, 0);
  EXPECT_THAT(verify(plan).message(), HasSubstr("has not added its gradient"));
  // Without an update.
  PlanOptions options;
  options.maxTokensPerMicroBatch = 48;
  options.update = false;
  plan = *Planner(model()).training(lengths, 100, options);
  ASSERT_TRUE(verify(plan).isOk());
  evaluateLast(plan, 5);
  EXPECT_THAT(verify(plan).message(),
              HasSubstr("micro-batch 2 is evaluated, but micro-batch 0 is "
                        "trained on: a plan trains on all or evaluates all"));
}

// P3: a micro-batch passes the layers once, for one purpose.
TEST(PlanVerifierTest, NothingIsEvaluatedTwice) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 48;
  for (bool trains : {false, true})
    for (bool loads : {false, true})
      for (bool first : {false, true}) {
        Planner planner(model());
        plan::Plan plan = trains ? *planner.training(lengths, 100, options)
                                 : *planner.evaluation(lengths, 100, options);
        ASSERT_TRUE(verify(plan).isOk());
        std::vector<Instruction> more;
        for (int layer = loads ? -1 : 0; layer < model().layers(); ++layer) {
          Instruction &i = more.emplace_back();
          i.op = layer < 0 ? Instruction::LOAD : Instruction::EVALUATE;
          i.layer = std::max(layer, 0);
        }
        std::vector<Instruction> &all = plan.ranks[0].instructions;
        all.insert(first ? all.begin() : all.end(), more.begin(), more.end());
        ASSERT_TRUE(
            assignMemory(RankView::whole(model()), plan, plan.ranks[0], nullptr)
                .isOk());
        EXPECT_THAT(
            verify(plan).message(),
            testing::AnyOf(
                HasSubstr("loaded twice"), HasSubstr("not loaded yet"),
                HasSubstr("expects layer 5 next"), HasSubstr("is there twice"),
                HasSubstr("either trained on or"), HasSubstr("overlaps")));
      }
}

// P2: sums of lengths do not overflow, whatever a file says.
TEST(PlanVerifierTest, LengthsAreTokensOfAMicroBatch) {
  TinyOptions options;
  plan::Manifest manifest = tinyManifest(options);
  manifest.mutable_facts()->set_positions(0);
  Model model = *Model::create(manifest);
  plan::Plan plan = *Planner(model).training({8}, 8, {});
  std::vector<int64_t> huge = {8};
  for (int copies = 0; copies < 4; ++copies) {
    huge.push_back(INT64_C(1) << 62);
    plan.microBatches[0].segments.push_back({copies + 1, 0, huge.back()});
  }
  EXPECT_THAT(verifyPlan(onOneRank(model), plan, huge, {}).message(),
              HasSubstr("sample 1 has 4611686018427387904 tokens, but 0 to "
                        "16777216 are possible"));
}

TEST(PlanVerifierTest, OtherMiniBatchesAreNoticed) {
  plan::Plan plan = goodPlan(plan::RECOMPUTE_NONE, false);
  std::vector<int64_t> longer = lengths;
  longer[3] += 1;
  EXPECT_FALSE(verifyPlan(onOneRank(model()), plan, longer, {}).isOk());
  longer = lengths;
  longer.push_back(4);
  EXPECT_THAT(verifyPlan(onOneRank(model()), plan, longer, {}).message(),
              HasSubstr("sample 5 is in no micro-batch"));
}

TEST(PlanVerifierTest, MessagesNameTheInstruction) {
  plan::Plan plan = goodPlan(plan::RECOMPUTE_SELECTIVE, false);
  Editor(plan).remove(Instruction::RECOMPUTE, 3, 0);
  EXPECT_THAT(verify(plan).message(),
              testing::MatchesRegex("plan: instruction [0-9]+ \\(BACKWARD "
                                    "layer 3 micro-batch 0\\): not recomputed "
                                    "yet \\(P4\\)"));
}

/// One that is in the table, but in no rule yet, is not taken for another.
TEST(PlanVerifierTest, AnInstructionWithoutARuleMayNeverCome) {
  ExecutableGraph graph = onOneRank(model());
  const std::vector<int> none;
  auto order = OrderChecker::create(graph.replicaView(0), none, {});
  Instruction unlisted;
  unlisted.op = static_cast<Instruction::Op>(Instruction::Op_MAX + 1);
  EXPECT_THAT(order->step(unlisted).message(), HasSubstr("no rule says"));
}

} // namespace
