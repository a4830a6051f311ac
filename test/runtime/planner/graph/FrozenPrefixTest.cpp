//===- FrozenPrefixTest.cpp - Plans of models with frozen layers ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/model/FreezeLayers.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "test/runtime/plan/PlanEditor.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const Model &compiled() {
  static const Model model = [] {
    TinyOptions options;
    options.hidden = 12;
    options.untied = options.freezable = true;
    options.degrees = {{2, false}, {2, true}};
    return *Model::create(tinyManifest(options));
  }();
  return model;
}

/// Embedding, three blocks and a head.
Model frozen(FrozenLayers layers) {
  StatusOr<Model> model = freezeLayers(compiled(), layers);
  EXPECT_TRUE(model.isOk()) << model.status().message();
  return *model;
}

int countOf(const plan::Plan &plan, Instruction::Op op, int layer) {
  int count = 0;
  for (const plan::RankProgram &program : plan.ranks)
    for (const Instruction &i : program.instructions)
      count += i.op == op && i.layer == layer;
  return count;
}

TEST(FrozenPrefixTest, KindsFollowFromWhatIsFrozen) {
  auto kindsOf = [](const FrozenLayers &layers) {
    const Model model = frozen(layers);
    std::string kinds;
    for (int l = 0; l < model.layers(); ++l)
      kinds += (l == 0 ? "" : " ") + model.kind(l).name();
    return kinds;
  };
  EXPECT_EQ(kindsOf({0, 0, 0, 0, 0}), "embedding block block block head");
  EXPECT_EQ(kindsOf({1, 0, 0, 0, 0}),
            "embedding.alone block.first block block head");
  EXPECT_EQ(kindsOf({1, 1, 0, 1, 0}),
            "embedding.alone block.alone block.first block.passing head");
  EXPECT_EQ(kindsOf({1, 1, 1, 1, 0}),
            "embedding.alone block.alone block.alone block.alone head.first");
  EXPECT_EQ(kindsOf({0, 1, 0, 0, 1}),
            "embedding block.passing block block head.passing");
  const Model model = frozen({1, 1, 0, 1, 0});
  EXPECT_EQ(layersForwardAlone(model), 2);
  EXPECT_EQ(describeLayers(model, {1, 1, 0, 1, 0}), "embedding+h.0+h.2");
  EXPECT_EQ(*parseLayers(model, "embedding-h.1+head"),
            (FrozenLayers{1, 1, 1, 0, 1}));
  EXPECT_NE(model.hash(), compiled().hash());
  EXPECT_EQ(model.compiledHash(), compiled().hash());
  EXPECT_EQ(frozen({0, 0, 0, 0, 0}).hash(), compiled().hash());
}

/// Schedules reserve memory from forward to backward. A layer without a backward gives
/// everything back after its forward.
TEST(FrozenPrefixTest, SchedulesReserveNothingForIt) {
  plan::Plan plan;
  plan.microBatches.emplace_back().segments.push_back({0, 0, 16});
  auto keptOf = [&](const FrozenLayers &layers) {
    const Model model = frozen(layers);
    const ExecutableGraph graph =
        *ExecutableGraph::create(model, *parseStrategy("pp=2,layers=2+3"));
    PipelineProblem problem;
    holdBlocks(problem, graph, plan, {0}, tinyPlanOptions(Schedule::Adaptive));
    return std::pair(problem.kept[0][0], problem.kept[1][0]);
  };
  const auto [front, back] = keptOf({0, 0, 0, 0, 0});
  EXPECT_GT(front, 0);
  EXPECT_EQ(keptOf({1, 1, 0, 0, 0}), std::pair(int64_t{0}, back));
  const auto [alone, part] = keptOf({1, 1, 1, 0, 0});
  EXPECT_EQ(alone, 0);
  EXPECT_LT(part, back);
}

/// Every schedule, with stages that begin inside of the prefix and behind it.
TEST(FrozenPrefixTest, PlansHaveNoBackwardThereAndAreVerified) {
  const Model model = frozen({1, 1, 0, 1, 0});
  for (const char *strategy :
       {"dp=1", "pp=2,layers=2+3", "pp=2,layers=1+4", "pp=2,layers=3+2",
        "pp=3,layers=1+1+3", "pp=4,layers=1+1+1+2", "dp=2,tp=2,zero=1",
        "tp=2,sp=1,pp=2,layers=2+3", "dp=2,pp=2,mirror=1,layers=2+3",
        "dp=2,pp=4,mirror=1,layers=1+1+1+2"})
    for (Schedule schedule : allSchedules())
      for (bool split : {false, true}) {
        SCOPED_TRACE(std::string(strategy) + " " + ruleOf(schedule).name);
        const ExecutableGraph graph =
            *ExecutableGraph::create(model, *parseStrategy(strategy));
        const Planner planner(graph);
        PlanOptions options = tinyPlanOptions(schedule);
        options.splitBackward = split;
        auto limits = planner.largestDynamicBytes(options, true);
        ASSERT_TRUE(limits.isOk()) << limits.status().message();
        options.dynamicLimits = *limits;
        auto plan = planner.training(equalLengths, 128, options);
        ASSERT_TRUE(plan.isOk()) << plan.status().message();
        VerifyOptions verify;
        verify.limits = *limits;
        const Status status = verifyPlan(graph, *plan, equalLengths, verify);
        EXPECT_TRUE(status.isOk()) << status.message();
        const int calls =
            static_cast<int>(equalLengths.size()) * graph.strategy().tp;
        for (int l = 0; l < model.layers(); ++l) {
          EXPECT_EQ(countOf(*plan, Instruction::FORWARD, l), calls);
          EXPECT_EQ(countOf(*plan, Instruction::FREE, l), calls);
          EXPECT_EQ(countOf(*plan, Instruction::BACKWARD, l) +
                        countOf(*plan, Instruction::BACKWARD_INPUT, l),
                    l < 2 ? 0 : calls);
          const bool isFrozen = l < 2 || l == 3;
          EXPECT_EQ(countOf(*plan, Instruction::UPDATE, l) > 0, !isFrozen);
          if (isFrozen) {
            EXPECT_EQ(countOf(*plan, Instruction::BACKWARD_WEIGHT, l), 0);
          }
          if (l <= 2) { // messages of edges to layers behind the prefix
            EXPECT_EQ(countOf(*plan, Instruction::SEND_GRAD_START, l), 0);
          }
        }
      }
}

/// Nothing of the prefix lies in memory when its forward is over, on whatever stage.
TEST(FrozenPrefixTest, KeepsNothing) {
  const Model model = frozen({1, 1, 0, 0, 0});
  for (const char *strategy : {"dp=1", "pp=2,layers=2+3", "pp=2,layers=3+2"}) {
    SCOPED_TRACE(strategy);
    const ExecutableGraph graph =
        *ExecutableGraph::create(model, *parseStrategy(strategy));
    auto plan = Planner(graph).training(equalLengths, 128,
                                        tinyPlanOptions(Schedule::GPipe));
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      const auto &list = plan->ranks[rank].instructions;
      for (size_t at = 0; at + 1 < list.size(); ++at) {
        if (list[at].op != Instruction::FORWARD || list[at].layer > 1)
          continue;
        EXPECT_EQ(list[at + 1].op, Instruction::FREE);
        EXPECT_EQ(list[at + 1].layer, list[at].layer);
      }
    }
  }
}

struct Broken {
  const char *strategy;
  void (*breakIt)(plan::Plan &plan);
  const char *said;
};

/// Plans of the model without frozen layers, and others that are wrong.
TEST(FrozenPrefixTest, WrongPlansAreRefused) {
  const Model model = frozen({1, 1, 0, 1, 0});
  const Broken broken[] = {
      {"dp=1",
       [](plan::Plan &plan) {
         turnInto(Editor(plan).at(Instruction::FREE, 1), Instruction::BACKWARD);
       },
       "its layer kind 'block.alone' has no such function"},
      {"dp=1",
       [](plan::Plan &plan) {
         Editor edit(plan);
         edit.instructions.erase(edit.instructions.begin() +
                                 edit.find(Instruction::FREE, 1));
       },
       "the kept block of layer 1 micro-batch 0 at offset"},
      {"dp=1",
       [](plan::Plan &plan) {
         Editor edit(plan);
         std::swap(edit.at(Instruction::FREE, 1),
                   edit.at(Instruction::FORWARD, 1));
       },
       "freed before its backward is complete"},
      {"dp=1",
       [](plan::Plan &plan) {
         Editor edit(plan);
         edit.at(Instruction::UPDATE, 2).layer = 3;
       },
       "its layer kind 'block.passing' has no such function"},
      {"dp=1",
       [](plan::Plan &plan) {
         Editor(plan).at(Instruction::GRAD_NORM, 2).layer = 1;
       },
       "its layer kind 'block.alone' has no such function"},
      {"pp=2,layers=2+3",
       [](plan::Plan &plan) {
         Editor edit(plan, 1);
         const int at = edit.find(Instruction::BACKWARD, 2);
         Instruction send = edit.instructions[at];
         turnInto(send, Instruction::SEND_GRAD_START);
         edit.instructions.insert(edit.instructions.begin() + at + 1, send);
       },
       "the layer before takes no gradient"},
  };
  for (const Broken &one : broken) {
    SCOPED_TRACE(one.said);
    const ExecutableGraph graph =
        *ExecutableGraph::create(model, *parseStrategy(one.strategy));
    auto plan = Planner(graph).training(equalLengths, 128, tinyPlanOptions());
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    one.breakIt(*plan);
    const Status status =
        verifyPlan(graph, *plan, equalLengths,
                   {std::vector<int64_t>(static_cast<size_t>(graph.ranks()),
                                         enoughBytes)});
    EXPECT_THAT(status.message(), HasSubstr(one.said));
  }
  // A plan for trained layers is of another model.
  const ExecutableGraph all = onOneRank(compiled());
  auto plan = Planner(all).training(equalLengths, 128, tinyPlanOptions());
  ASSERT_TRUE(plan.isOk());
  EXPECT_FALSE(
      verifyPlan(onOneRank(model), *plan, equalLengths, {{enoughBytes}})
          .isOk());
}

TEST(FrozenPrefixTest, ManifestsThatContradictThemselvesAreRefused) {
  auto refuse = [](const plan::Manifest &manifest, const char *said) {
    plan::Manifest changed = manifest;
    changed.set_hash(manifestHash(changed));
    EXPECT_THAT(checkManifest(changed).message(), HasSubstr(said));
  };
  plan::Manifest manifest = frozen({1, 1, 0, 1, 0}).manifest();
  manifest.mutable_layers(2)->set_kind(1); // block instead of block.first
  refuse(manifest, "gives a gradient of its input, but the layer before has no "
                   "backward");
  manifest = compiled().manifest();
  manifest.mutable_layers(2)->set_kind(4); // block.first
  refuse(manifest, "gives no gradient of its input, but the layer before has a "
                   "backward");
  manifest = compiled().manifest();
  manifest.mutable_layers(2)->set_kind(5); // block.passing
  refuse(manifest, "adds to no gradient, but a layer of it has trained");
  manifest = compiled().manifest();
  manifest.mutable_layers(0)->set_kind(3); // embedding.alone
  refuse(manifest, "layer kind 'embedding.alone'");
}

TEST(FrozenPrefixTest, WhatCannotBeFrozenIsRefused) {
  EXPECT_THAT(freezeLayers(compiled(), {1, 1, 1, 1, 1}).status().message(),
              HasSubstr("nothing is left to train"));
  TinyOptions options;
  options.freezable = true; // the head has the embedding's table
  const Model tied = *Model::create(tinyManifest(options));
  EXPECT_THAT(
      freezeLayers(tied, {1, 0, 0, 0, 0}).status().message(),
      HasSubstr("freezes layer 'embedding' and not 'head', but both use "
                "'wte'"));
  const Model plain = *Model::create(tinyManifest());
  EXPECT_THAT(freezeLayers(plain, {0, 1, 0, 0, 0}).status().message(),
              HasSubstr("compile the model with dynac --freezable"));
  EXPECT_THAT(parseLayers(plain, "h.0+h.3").status().message(),
              HasSubstr("'h.3' is no layer and no range of layers"));
}

/// Parked parameters keep all but the gradient; with ZeRO the values are whole.
TEST(FrozenPrefixTest, ParkedStateIsLaidOutAndSwitched) {
  const Model model = frozen({1, 0, 0, 0, 0});
  const Strategy strategy = *parseStrategy("dp=2,zero=1");
  const ExecutableGraph before = *ExecutableGraph::create(compiled(), strategy);
  const ExecutableGraph after = *ExecutableGraph::create(model, strategy);
  const int wte = model.findParameter("wte");
  const int64_t gradient = dyna_align_block(8 * model.elements(wte));
  for (int rank : {0, 1}) {
    const PersistentLayout was = persistentLayout(before.rankView(rank));
    const PersistentLayout is = persistentLayout(after.rankView(rank));
    EXPECT_EQ(was.bytes - is.bytes, gradient);
    EXPECT_LT(is.parameters[wte].gradient, 0);
    EXPECT_GE(is.parameters[wte].m, 0);
    EXPECT_EQ(after.rankView(rank).owner(wte), -1);
  }
  auto same = [](const std::vector<RankBox> &a, const std::vector<RankBox> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const RankBox &one, const RankBox &other) {
                        return one.rank == other.rank && one.box == other.box;
                      });
  };
  EXPECT_TRUE(same(after.currentBoxes(wte), after.boxes(wte)));
  EXPECT_TRUE(same(after.updatedBoxes(wte), before.currentBoxes(wte)));
  EXPECT_FALSE(same(after.updatedBoxes(wte), after.boxes(wte)));
}

} // namespace
