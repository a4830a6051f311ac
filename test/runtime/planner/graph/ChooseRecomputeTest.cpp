//===- ChooseRecomputeTest.cpp - What is computed again, to save memory ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/ChooseRecompute.h"
#include "runtime/planner/order/MakespanWithin.h"

#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/planner/Draw.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

constexpr plan::Recompute none = plan::RECOMPUTE_NONE;
constexpr plan::Recompute selective = plan::RECOMPUTE_SELECTIVE;
constexpr plan::Recompute full = plan::RECOMPUTE_FULL;

/// The more is computed again, the less is kept and the longer it takes. Limits
/// are such that all fits with everything recomputed, more or less often.
ModeProblems drawn(Draw &draw, int stages, int microBatches) {
  ModeProblems problems;
  for (PipelineProblem &problem : problems) {
    problem.forward.assign(stages, std::vector<double>(microBatches));
    problem.backward = problem.forward;
    problem.recompute = problem.forward;
    problem.kept.assign(stages, std::vector<int64_t>(microBatches));
  }
  for (int s = 0; s < stages; ++s) {
    int64_t most = 0;
    for (int m = 0; m < microBatches; ++m) {
      int size = 1 + draw.below(20);
      double again = 0;
      int64_t kept = 10 * size + draw.below(size);
      for (PipelineProblem &problem : problems) {
        problem.forward[s][m] = size;
        problem.backward[s][m] = 2 * size + again;
        problem.kept[s][m] = kept;
        again += draw.below(size) + (draw.below(2) ? 1 : 0);
        kept = std::max<int64_t>(1, kept / (2 + draw.below(4)));
      }
      most = std::max(most, problems[draw.below(3)].kept[s][m]);
    }
    problems[0].limits.push_back(draw.below(16) ? most + draw.below(200) : 9);
  }
  for (PipelineProblem &problem : problems)
    problem.limits = problems[0].limits;
  return problems;
}

TEST(ChooseRecomputeTest, MixesRows) {
  Draw draw(7);
  ModeProblems problems = drawn(draw, 2, 3);
  StageModes modes = {{none, full, selective}, {full, full, none}};
  PipelineProblem mixed = mixModes(problems, modes);
  for (size_t s = 0; s < 2; ++s)
    for (size_t m = 0; m < 3; ++m) {
      const PipelineProblem &of = problems[modes[s][m]];
      EXPECT_EQ(mixed.backward[s][m], of.backward[s][m]);
      EXPECT_EQ(mixed.recompute[s][m], of.recompute[s][m]);
      EXPECT_EQ(mixed.kept[s][m], of.kept[s][m]);
    }
  EXPECT_EQ(mixed.limits, problems[0].limits);
  EXPECT_TRUE(mixed.weight.empty());
}

// All modes of all micro-batches on all stages, by the same makespans.
TEST(ChooseRecomputeTest, NearTheBestOfAll) {
  int optimal = 0, mixed = 0, cases = 0, tighter = 0, asGood = 0;
  double worst = 1;
  for (uint64_t seed = 0; seed < 240; ++seed) {
    Draw draw(seed);
    int stages = 1 + draw.below(3), count = 1 + draw.below(6 / stages);
    ModeProblems problems = drawn(draw, stages, count);
    Schedule schedule =
        seed % 3 ? Schedule::Adaptive : Schedule::OneForwardOneBackward;
    auto modes = searchModes(problems, schedule);
    double best = INFINITY, uniform = INFINITY;
    int cells = stages * count;
    for (int code = 0; code < std::pow(3, cells); ++code) {
      StageModes all(stages, std::vector<plan::Recompute>(count));
      int rest = code;
      bool same = true;
      for (auto &row : all)
        for (auto &mode : row) {
          mode = static_cast<plan::Recompute>(rest % 3);
          rest /= 3;
          same &= mode == all[0][0];
        }
      double makespan = makespanWithin(mixModes(problems, all), schedule);
      best = std::min(best, makespan);
      if (same)
        uniform = std::min(uniform, makespan);
    }
    SCOPED_TRACE(seed);
    ASSERT_EQ(modes.isOk(), best < INFINITY);
    if (!modes.isOk()) {
      EXPECT_EQ(modes.status().code(), StatusCode::ResourceExhausted);
      continue;
    }
    double found = makespanWithin(mixModes(problems, modes->modes), schedule);
    ASSERT_EQ(found, modes->makespan);
    ASSERT_GE(found, best);
    ASSERT_LE(found, uniform);
    ++cases;
    optimal += found == best;
    mixed += best < uniform;
    worst = std::max(worst, found / best);
    // With less room, from what was found for more, which may not fit any more.
    for (PipelineProblem &problem : problems)
      for (int64_t &limit : problem.limits)
        limit = limit * 4 / 5;
    auto cold = searchModes(problems, schedule);
    auto warm = searchModes(problems, schedule, modes->modes);
    ASSERT_EQ(warm.isOk(), cold.isOk());
    if (!cold.isOk())
      continue;
    ASSERT_EQ(warm->makespan,
              makespanWithin(mixModes(problems, warm->modes), schedule));
    ++tighter;
    asGood += warm->makespan <= cold->makespan * 1.001;
    EXPECT_LE(warm->makespan, cold->makespan * 1.5);
  }
  EXPECT_GT(tighter, 50);
  EXPECT_GE(asGood, tighter * 8 / 10) << tighter;
  RecordProperty("optimal", optimal);
  RecordProperty("cases", cases);
  RecordProperty("mixed", mixed);
  RecordProperty("worst_percent", static_cast<int>(100 * worst));
  EXPECT_GT(cases, 150);
  EXPECT_GT(mixed, cases / 4); // one mode for all is not enough
  EXPECT_GE(optimal, cases * 85 / 100) << cases << " " << worst;
  EXPECT_LE(worst, 1.35);
}

// The first stage holds the most micro-batches, so there is the most to save.
TEST(ChooseRecomputeTest, StagesThatHoldMoreRecomputeMore) {
  ModeProblems problems;
  for (size_t mode = 0; mode < 3; ++mode) {
    PipelineProblem &problem = problems[mode];
    double again = 0.5 * static_cast<double>(mode);
    problem.forward.assign(4, std::vector<double>(8, 1));
    problem.backward.assign(4, std::vector<double>(8, 2 + again));
    problem.kept.assign(4, std::vector<int64_t>(8, 12 >> mode));
    problem.limits.assign(4, 30);
  }
  auto modes = searchModes(problems, Schedule::OneForwardOneBackward);
  ASSERT_TRUE(modes.isOk());
  auto recomputed = [&](int stage) {
    return 8 - std::count(modes->modes[stage].begin(),
                          modes->modes[stage].end(), none);
  };
  EXPECT_GT(recomputed(0), recomputed(3));
  EXPECT_EQ(recomputed(3), 0); // holds one at a time
}

// Three at a time have room for 12 bytes. In memory that is left, two of 4 bytes
// save 1.9 s each; one of 10 bytes that saves 2 s would leave them none.
TEST(ChooseRecomputeTest, KeepsWhatSavesMostForItsBytes) {
  ModeProblems problems;
  for (PipelineProblem &problem : problems) {
    problem.forward = {{1, 1, 1}};
    problem.backward = {{4, 3.9, 3.9}};
    problem.kept = {{1, 1, 1}};
    problem.limits = {12};
    problem.inFlight = 3;
  }
  problems[none].backward = {{2, 2, 2}};
  problems[none].kept = {{10, 4, 4}};
  auto modes = searchModes(problems, Schedule::GPipe);
  ASSERT_TRUE(modes.isOk());
  EXPECT_DOUBLE_EQ(modes->makespan, 3 * 1 + 4 + 2 + 2);
  EXPECT_NE(modes->modes[0][0], none);
  EXPECT_EQ(modes->modes[0][1], none);
  EXPECT_EQ(modes->modes[0][2], none);
}

// In plans: as much as memory asks for, and verified.
TEST(ChooseRecomputeTest, PlansRecomputeAsMuchAsMemoryAsks) {
  TinyOptions tiny;
  tiny.blocks = 4;
  Model model = *Model::create(tinyManifest(tiny));
  for (const char *strategy :
       {"dp=1", "pp=2,layers=3+3", "dp=2,pp=3,layers=2+2+2"}) {
    SCOPED_TRACE(strategy);
    Planner planner(*ExecutableGraph::create(model, *parseStrategy(strategy)));
    PlanOptions options;
    options.maxTokensPerMicroBatch = 100;
    options.schedule =
        planner.graph().stages() > 1 ? Schedule::Adaptive : Schedule::GPipe;
    options.inFlight = 3;
    options.chooseRecompute = true;
    std::vector<int64_t> lengths;
    for (int i = 0; i < 40; ++i)
      lengths.push_back(5 + 17 * i % 60);
    auto most = planner.largestDynamicBytes(options, true);
    auto least = planner.leastDynamicBytes(options, true);
    ASSERT_TRUE(most.isOk() && least.isOk());
    int64_t first = -1, before = -1;
    for (int share = 8; share >= 0; --share) {
      options.dynamicLimits.clear();
      for (size_t rank = 0; rank < most->size(); ++rank) {
        ASSERT_LT((*least)[rank], (*most)[rank]);
        options.dynamicLimits.push_back(
            (*least)[rank] + ((*most)[rank] - (*least)[rank]) * share / 8);
      }
      auto plan = planner.training(lengths, 9, options);
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      for (int rank = 0; rank < plan->rankCount(); ++rank)
        EXPECT_LE(plan->ranks[rank].dynamicBytes, options.dynamicLimits[rank]);
      Status proof = verifyPlan(planner.graph(), *plan, lengths, {*most});
      EXPECT_TRUE(proof.isOk()) << proof.message();
      EXPECT_NE(plan->fallback, "adaptive");
      if (plan->fallback == "sequential")
        continue;
      int64_t again = 0;
      for (const plan::RankProgram &program : plan->ranks)
        for (const plan::Instruction &i : program.instructions)
          if (i.op == plan::Instruction::FORWARD)
            again += i.recompute;
      if (share == 8)
        first = again;
      before = std::max(before, again);
    }
    EXPECT_GT(before, first);
  }
}

// A call costs much, what is computed again selectively next to nothing, and all
// of it ten calls: micro-batches as large as have room with the second.
TEST(ChooseRecomputeTest, MicroBatchesAreCutForTheBestMode) {
  std::string text;
  for (auto [direction, seconds] : {std::pair("FORWARD", 100),
                                    {"BACKWARD", 100},
                                    {"RECOMPUTE_SELECTIVE", 1},
                                    {"RECOMPUTE_FULL", 1000}})
    text += "entries { kind: \"block\" direction: " + std::string(direction) +
            " points { tokens: 32 seconds: " + std::to_string(seconds) +
            " } points { tokens: 1024 seconds: " + std::to_string(seconds + 1) +
            " } } ";
  Model model = *Model::create(tinyManifest());
  Planner planner(
      *ExecutableGraph::create(model, Strategy()),
      *CostModel::create(model, *CostTable::parse(text, "costs.txt")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 1024;
  options.dynamicLimits = {450000};
  const std::vector<int64_t> lengths(24, 32);
  auto sizes = [&] {
    std::vector<size_t> sizes;
    auto cut = planner.cut(lengths, 1, options, true);
    EXPECT_TRUE(cut.isOk()) << cut.status().message();
    for (const plan::MicroBatch &microBatch : cut->microBatches)
      sizes.push_back(microBatch.segments.size());
    return sizes;
  };
  std::vector<std::vector<size_t>> uniform;
  for (plan::Recompute mode : {none, selective, full}) {
    options.recompute = {mode};
    uniform.push_back(sizes());
  }
  EXPECT_GT(uniform[none].size(), uniform[selective].size());
  options.recompute = {none};
  options.chooseRecompute = true;
  EXPECT_EQ(sizes(), uniform[selective]);
  auto plan = planner.training(lengths, 1, options);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  int again = 0;
  for (const plan::Instruction &i : plan->ranks[0].instructions)
    if (i.op == plan::Instruction::FORWARD && i.recompute != none) {
      EXPECT_EQ(i.recompute, selective);
      ++again;
    }
  EXPECT_GT(again, 0);
  // What micro-batches keep would fit here, too, but not what comes beside it.
  options.dynamicLimits = {150000};
  const auto chosen = sizes();
  options.chooseRecompute = false;
  EXPECT_EQ(chosen, sizes());
  options.recompute = {selective};
  EXPECT_LT(sizes().size(), chosen.size());
}

// Within what 1F1B needs, where stages that run as far ahead as they may do not fit, an
// order that goes by memory takes little longer: messages, which 1F1B does not count.
TEST(ChooseRecomputeTest, TheMemoryOf1F1BIsNearlyEnoughForItsTime) {
  Model model = *Model::create(tinyManifest());
  Planner planner(
      *ExecutableGraph::create(model, *parseStrategy("pp=3,layers=2+2+1")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 64;
  options.batching = Batching::Samples;
  options.schedule = Schedule::OneForwardOneBackward;
  const std::vector<int64_t> lengths(12, 64);
  auto seconds = [&](const plan::Plan &plan) {
    auto expected = planner.expect(plan, options);
    EXPECT_TRUE(expected.isOk()) << expected.status().message();
    return makespanOf(expected->front().schedule.stages);
  };
  auto fixed = planner.training(lengths, 1, options);
  ASSERT_TRUE(fixed.isOk()) << fixed.status().message();
  const double most = seconds(*fixed);
  for (const plan::RankProgram &program : fixed->ranks)
    options.dynamicLimits.push_back(program.dynamicBytes);
  // One that does not fit there gives way to it.
  options.schedule = Schedule::GPipe;
  options.inFlight = static_cast<int>(lengths.size());
  auto adapts = planner.training(lengths, 1, options);
  ASSERT_TRUE(adapts.isOk()) << adapts.status().message();
  EXPECT_EQ(adapts->fallback, "adaptive");
  EXPECT_LE(seconds(*adapts), 1.25 * most);
}

// Where memory is not limited there is nothing to gain.
TEST(ChooseRecomputeTest, NoLimitNoRecomputation) {
  Model model = *Model::create(tinyManifest());
  PlanOptions options, none;
  options.chooseRecompute = true;
  auto chosen = Planner(model).training({30, 40}, 9, options);
  auto plain = Planner(model).training({30, 40}, 9, none);
  ASSERT_TRUE(chosen.isOk() && plain.isOk());
  ASSERT_EQ(chosen->ranks[0].count(), plain->ranks[0].count());
  for (int i = 0; i < plain->ranks[0].count(); ++i)
    EXPECT_EQ(chosen->ranks[0].instructions[i].recompute,
              plain->ranks[0].instructions[i].recompute);
}

// What is asked for and does not fit is replaced, and said.
TEST(ChooseRecomputeTest, OtherOrdersAreSaid) {
  Model model = *Model::create(tinyManifest());
  Planner planner(
      *ExecutableGraph::create(model, *parseStrategy("pp=2,layers=3+2")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 100;
  options.schedule = Schedule::GPipe;
  options.inFlight = 8;
  std::vector<int64_t> lengths(8, 100);
  auto least = planner.leastDynamicBytes(options, true);
  auto most = planner.largestDynamicBytes(options, true);
  ASSERT_TRUE(least.isOk() && most.isOk());
  options.dynamicLimits = *most;
  auto plan = planner.training(lengths, 9, options);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->fallback, "");
  for (size_t rank = 0; rank < least->size(); ++rank)
    options.dynamicLimits[rank] = ((*least)[rank] + (*most)[rank]) / 2;
  plan = planner.training(lengths, 9, options);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->fallback, "adaptive");
  options.dynamicLimits = *least;
  plan = planner.training(lengths, 9, options);
  ASSERT_TRUE(plan.isOk());
  EXPECT_NE(plan->fallback, "");
  // Nothing at all fits beside it.
  options.dynamicLimits[0] = 1;
  auto refused = planner.training(lengths, 9, options);
  ASSERT_FALSE(refused.isOk());
  EXPECT_THAT(refused.status().message(),
              HasSubstr("sample 0 of 100 tokens needs"));
}

} // namespace
