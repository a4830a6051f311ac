//===- StageMemoryTest.cpp - Micro-batches by the bytes they keep ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageTables.h"
#include "runtime/planner/graph/PlanWriter.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/order/MakespanWithin.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

using namespace dyna;
using testing::HasSubstr;

namespace {

using Lengths = std::vector<int64_t>;
constexpr double never = std::numeric_limits<double>::infinity();

int64_t pick(Draw &draw, int least, int most) {
  return least + draw.below(most - least + 1);
}

const Model &model() {
  static const Model model = *Model::create(tinyManifest());
  return model;
}

/// The same, as if its blocks kept something of every pair.
const Model &modelWithScores() {
  static const Model model = [] {
    plan::Manifest manifest = tinyManifest();
    manifest.mutable_kinds(1)->set_score_bytes_per_pair(7);
    return *Model::create(manifest);
  }();
  return model;
}

ExecutableGraph graphOf(const std::string &strategy,
                        const Model &of = model()) {
  return *ExecutableGraph::create(of, *parseStrategy(strategy));
}

PlanOptions optionsOf(int64_t maxTokens, std::vector<int64_t> limits) {
  PlanOptions options;
  options.batching = Batching::Padded;
  options.maxTokensPerMicroBatch = maxTokens;
  options.schedule = Schedule::Adaptive;
  options.dynamicLimits = std::move(limits);
  return options;
}

// On the stage where it is most beside its limit, but for what rounding each
// block up to the next boundary adds.
TEST(HeldBytesTest, AreThoseOfTheStageWithTheLeastRoom) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    ExecutableGraph graph = graphOf("dp=2,pp=3,layers=2+2+1",
                                    seed % 4 < 2 ? model() : modelWithScores());
    Draw draw(seed);
    std::vector<int64_t> limits;
    for (int rank = 0; rank < graph.ranks(); ++rank)
      limits.push_back(pick(draw, 100000, 900000));
    PlanOptions options = optionsOf(4096, limits);
    options.splitBackward = seed % 2 == 0;
    options.recompute = {static_cast<plan::Recompute>(seed % 3)};
    plan::Plan plan;
    plan::MicroBatch &microBatch = plan.microBatches.emplace_back();
    for (int64_t count = pick(draw, 1, 9); count > 0; --count)
      microBatch.segments.push_back({0, 0, pick(draw, 1, 64)});
    PipelineProblem problem;
    if (options.splitBackward)
      problem.weight.assign(3, {0});
    holdBlocks(problem, graph, plan, {0}, options);
    HeldBytes held(graph, options);
    const int64_t least = *std::min_element(limits.begin(), limits.end());
    EXPECT_EQ(held.limit(), least);
    double most = 0;
    for (int stage = 0; stage < 3; ++stage) {
      const int64_t room = std::min(limits[graph.rankAt({0, stage, 0})],
                                    limits[graph.rankAt({1, stage, 0})]);
      most = std::max(most, static_cast<double>(problem.heldBytes(stage, 0)) *
                                static_cast<double>(least) /
                                static_cast<double>(room));
    }
    auto bytes = static_cast<double>(held.of(loadOf(microBatch)));
    EXPECT_LE(bytes, most + 1);
    const double rounding = 64.0 * (DYNA_TIER_COUNT + 1) * model().layers();
    EXPECT_GE(bytes, most - rounding);
    EXPECT_GT(most, 4 * rounding / 3); // which so hides little
  }
}

/// Bytes while each instruction runs, of what micro-batches and bundles hold.
std::vector<int64_t> heldWhileRunning(const ProgramBlocks &blocks,
                                      bool holdsLate) {
  std::vector<int64_t> sums = blocks.liveBytes(BlockKind::Kept);
  auto add = [&](BlockKind kind) {
    const std::vector<int64_t> bytes = blocks.liveBytes(kind);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += bytes[i];
  };
  add(BlockKind::Keys);
  add(BlockKind::KeyGradients);
  if (holdsLate)
    add(BlockKind::Late);
  return sums;
}

/// Expects that each store ends right behind the backward of the bundle's first slice.
/// Weight gradients, which may come much later, do not need it.
void expectEarlyEnds(const plan::RankProgram &program) {
  int ends = 0;
  for (size_t i = 1; i < program.instructions.size(); ++i) {
    const plan::Instruction &end = program.instructions[i];
    if (end.op != plan::Instruction::FREE_KEYS)
      continue;
    ++ends;
    const plan::Instruction &before = program.instructions[i - 1];
    EXPECT_TRUE(before.op == plan::Instruction::BACKWARD ||
                before.op == plan::Instruction::BACKWARD_INPUT);
    EXPECT_EQ(before.layer, end.layer);
    EXPECT_EQ(before.microBatch, end.microBatch);
  }
  EXPECT_GT(ends, 0);
}

// Schedules go by what a bundle holds, stores and sums included. It is not less than
// its blocks have, and little more. Weight gradients need no store.
TEST(HoldBlocksTest, StoresLiveUntilTheFirstSliceHasRunBackward) {
  const ExecutableGraph graph = graphOf("dp=1");
  const CostModel costs(graph.model());
  for (bool splits : {false, true})
    for (int slices : {2, 3, 5})
      for (plan::Recompute mode :
           {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
        SCOPED_TRACE(testing::Message() << slices << " slices, split " << splits
                                        << ", mode " << mode);
        PlanChoice choice = optionsOf(4096, {INT64_C(1) << 40});
        choice.splitBackward = splits;
        choice.recompute = {mode};
        choice.slices.count = slices;
        plan::MicroBatch whole;
        whole.segments = {{0, 0, 96 * slices}};
        PlanWriter writer(graph, costs);
        plan::Plan plan = writer.empty();
        plan.microBatches = sliceMicroBatches({whole}, choice.slices);
        std::vector<int64_t> held(1, 0);
        ASSERT_TRUE(
            writer.writeEstimated(plan, choice, true, {0}, &held).isOk());
        expectEarlyEnds(plan.ranks[0]);
        const ProgramBlocks blocks(graph.replicaView(0), plan, plan.ranks[0]);
        const auto used = heldWhileRunning(blocks, splits);
        const int64_t most = *std::max_element(used.begin(), used.end());
        // The embedding has no weight gradients apart: what it kept goes when other
        // layers have theirs left, which is not counted.
        const int64_t tokens =
            splits ? graph.replicaView(0).keptBytes(
                         0, mode, loadOf(plan.microBatches.back()))
                   : 0;
        EXPECT_GE(held[0] + tokens, most);
        // Split, slices count what stays for weight gradients from their forward on.
        if (!splits)
          EXPECT_LE(static_cast<double>(held[0]),
                    1.12 * static_cast<double>(most));
        PipelineProblem problem;
        std::vector<int> all(slices);
        std::iota(all.begin(), all.end(), 0);
        holdBlocks(problem, graph, plan, all, choice);
        EXPECT_GT(problem.kept[0][0], problem.kept[0][1]);
        // Sums come with the last backward, and go with the first one.
        EXPECT_LT(problem.late[0][0], splits ? 1 : 0);
        EXPECT_EQ(std::accumulate(problem.late[0].begin(),
                                  problem.late[0].end(), INT64_C(0)),
                  0);
      }
}

/// With a bundle behind another one, sums of the first one are there while slices of the
/// second one run forward. They count from the last backward of a bundle on.
TEST(HoldBlocksTest, TwoBundlesHoldWhatTheirBlocksHave) {
  const ExecutableGraph graph = graphOf("dp=1");
  const CostModel costs(graph.model());
  for (bool splits : {false, true})
    for (int inFlight : {1, 2})
      for (const auto &[first, second] :
           {std::pair(96, 96), {480, 96}, {96, 480}, {960, 7}})
        for (plan::Recompute mode :
             {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
          SCOPED_TRACE(testing::Message()
                       << first << " and " << second << " tokens, split "
                       << splits << ", mode " << mode << ", in flight "
                       << inFlight);
          PlanChoice choice = optionsOf(4096, {INT64_C(1) << 40});
          choice.splitBackward = splits;
          choice.recompute = {mode};
          choice.inFlight = inFlight;
          choice.slices.count = 3;
          std::vector<plan::MicroBatch> whole(2);
          whole[0].segments = {{0, 0, first}};
          whole[1].segments = {{1, 0, second}};
          PlanWriter writer(graph, costs);
          plan::Plan plan = writer.empty();
          plan.microBatches = sliceMicroBatches(whole, choice.slices);
          ASSERT_EQ(plan.microBatchCount(), 6);
          std::vector<int64_t> held(1, 0);
          ASSERT_TRUE(
              writer.writeEstimated(plan, choice, true, {0}, &held).isOk());
          const ProgramBlocks blocks(graph.replicaView(0), plan, plan.ranks[0]);
          const auto used = heldWhileRunning(blocks, splits);
          const int64_t most = *std::max_element(used.begin(), used.end());
          int64_t tokens = 0; // as above
          for (const plan::MicroBatch &microBatch : plan.microBatches)
            if (splits)
              tokens = std::max(tokens, graph.replicaView(0).keptBytes(
                                            0, mode, loadOf(microBatch)));
          EXPECT_GE(held[0] + tokens, most);
          if (!splits)
            EXPECT_EQ(held[0], most);
        }
}

/// Returns the bytes of blocks of the rank's layers at one time, stores and sums included.
/// Messages wait beside them.
int64_t mostOfLayers(const ProgramBlocks &blocks, const RankView &view) {
  std::map<int, int64_t> changes;
  for (const Block &block : blocks.blocks()) {
    const int layer = block.name.at(KeyColumn::Layer);
    const BlockKind kind = block.name.kind;
    if ((kind != BlockKind::Kept && kind != BlockKind::Keys &&
         kind != BlockKind::KeyGradients) ||
        layer < view.firstLayer() || layer >= view.endLayer())
      continue;
    changes[block.first] += block.bytes;
    changes[block.last + 1] -= block.bytes;
  }
  int64_t sum = 0, most = 0;
  for (const auto &[time, change] : changes)
    most = std::max(most, sum += change);
  return most;
}

/// Drawn steps of sliced samples. The first stage holds what its instructions have at one
/// time, and a few percent more: what a backward needs beside counts before it runs.
TEST(HoldBlocksTest, DrawnBundlesHoldWhatTheirBlocksHave) {
  double sum = 0;
  constexpr int cases = 120;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    Draw draw(seed);
    const char *strategies[] = {"dp=1", "pp=2,layers=3+2", "pp=3,layers=2+2+1"};
    const ExecutableGraph graph = graphOf(strategies[seed % 3]);
    const CostModel costs(graph.model());
    PlanChoice choice =
        optionsOf(4096, std::vector<int64_t>(graph.ranks(), INT64_C(1) << 40));
    const Schedule schedules[] = {Schedule::Adaptive,
                                  Schedule::OneForwardOneBackward,
                                  Schedule::Cyclic, Schedule::GPipe};
    choice.schedule = schedules[seed / 3 % 4];
    choice.inFlight = static_cast<int>(pick(draw, 1, 3));
    choice.slices.count = pick(draw, 2, 5);
    std::vector<plan::MicroBatch> whole(pick(draw, 1, 4));
    for (size_t m = 0; m < whole.size(); ++m)
      for (int part = 0; part < pick(draw, 1, 2); ++part)
        whole[m].segments.push_back(
            {static_cast<int64_t>(2 * m) + part, 0, pick(draw, 7, 700)});
    PlanWriter writer(graph, costs);
    plan::Plan plan = writer.empty();
    plan.microBatches = sliceMicroBatches(whole, choice.slices);
    for (int m = 0; m < plan.microBatchCount(); ++m)
      choice.microBatchRecompute.push_back(RecomputeModes(
          model().layers(), static_cast<plan::Recompute>(pick(draw, 0, 2))));
    std::vector<int64_t> held(graph.ranks(), 0), beside = held;
    ASSERT_TRUE(
        writer.writeEstimated(plan, choice, true, beside, &held).isOk());
    // Inputs wait on stages behind the first.
    const ProgramBlocks blocks(graph.replicaView(0), plan, plan.ranks[0]);
    const int64_t most = mostOfLayers(blocks, graph.replicaView(0));
    EXPECT_GE(held[0], most) << "case " << seed;
    sum += static_cast<double>(held[0]) / static_cast<double>(most);
  }
  EXPECT_LE(sum / cases, 1.06);
}

/// Fixed orders reserve nothing. They fit what the first stage needs at one time and a little
/// more, and never less. Sums of gradients that all bundles reserved would not fit.
TEST(HoldBlocksTest, FixedOrdersFitWhatTheirBlocksHave) {
  int aboveReserved = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    Draw draw(seed);
    const char *strategies[] = {"dp=1", "pp=2,layers=3+2", "pp=3,layers=2+2+1"};
    const ExecutableGraph graph = graphOf(strategies[seed % 3]);
    const CostModel costs(graph.model());
    PlanChoice choice =
        optionsOf(4096, std::vector<int64_t>(graph.ranks(), INT64_C(1) << 40));
    choice.schedule =
        seed % 2 == 0 ? Schedule::GPipe : Schedule::OneForwardOneBackward;
    choice.recompute = {static_cast<plan::Recompute>(pick(draw, 0, 2))};
    choice.slices.count = pick(draw, 2, 5);
    std::vector<plan::MicroBatch> whole(pick(draw, 2, 6));
    choice.inFlight = static_cast<int>(whole.size());
    for (size_t m = 0; m < whole.size(); ++m)
      whole[m].segments.push_back(
          {static_cast<int64_t>(m), 0, pick(draw, 64, 900)});
    PlanWriter writer(graph, costs);
    plan::Plan plan = writer.empty();
    plan.microBatches = sliceMicroBatches(whole, choice.slices);
    const std::vector<int64_t> none(graph.ranks(), 0);
    ASSERT_TRUE(writer.writeEstimated(plan, choice, true, none).isOk());
    const ProgramBlocks blocks(graph.replicaView(0), plan, plan.ranks[0]);
    const int64_t most = mostOfLayers(blocks, graph.replicaView(0));
    std::vector<int> own(plan.microBatches.size());
    std::iota(own.begin(), own.end(), 0);
    PipelineProblem problem = estimateStages(graph, costs, plan, own, choice);
    problem.inFlight = choice.inFlight;
    PipelineProblem reserved = problem;
    PipelineProblem::Bytes beside;
    holdBlocks(problem, graph, plan, own, choice, &beside);
    holdBlocks(reserved, graph, plan, own, choice);
    problem.limits.assign(graph.stages(), INT64_C(1) << 40);
    problem.limits[0] = most - 1;
    EXPECT_EQ(makespanWithin(problem, choice.schedule, &beside), never);
    problem.limits[0] = most + most / 20;
    EXPECT_LT(makespanWithin(problem, choice.schedule, &beside), never)
        << "case " << seed;
    reserved.limits = problem.limits;
    aboveReserved += makespanWithin(reserved, choice.schedule) == never;
  }
  EXPECT_GT(aboveReserved, 8); // which would fit
}

// The ranks of a stage run one order, which has to fit all of them.
TEST(LimitStagesTest, AStageHasTheRoomOfItsFullestRank) {
  ExecutableGraph graph =
      graphOf("dp=2,tp=2,pp=2,layers=3+2", modelWithDegrees());
  PlanOptions options;
  std::vector<int64_t> beside;
  options.dynamicLimits.assign(8, 1000);
  beside.assign(8, 0);
  auto rank = [&](int replica, int stage, int shard) {
    return graph.rankAt({replica, stage, shard});
  };
  options.dynamicLimits[rank(0, 0, 1)] = 600; // less of its own
  options.dynamicLimits[rank(0, 1, 0)] = 900;
  beside[rank(0, 1, 1)] = 300;               // more beside
  options.dynamicLimits[rank(1, 1, 1)] = 50; // nothing is left
  beside[rank(1, 1, 1)] = 60;
  PipelineProblem one, two;
  limitStages(one, graph, 0, options, beside);
  limitStages(two, graph, 1, options, beside);
  EXPECT_EQ(one.limits, (std::vector<int64_t>{600, 700}));
  EXPECT_EQ(two.limits, (std::vector<int64_t>{1000, 0}));
  EXPECT_EQ(HeldBytes(graph, options).limit(), 50);
}

/// The least (stages - 1) * max t + sum t / replicas of all cuts of samples in
/// order of length; infinity where there is none.
double bestCut(const BatchingProblem &problem) {
  Lengths lengths = problem.lengths;
  std::sort(lengths.begin(), lengths.end());
  double best = never;
  const size_t gaps = lengths.size() - 1;
  for (size_t ends = 0; ends < size_t(1) << gaps; ++ends) {
    double sum = 0, largest = 0;
    size_t begin = 0;
    for (size_t end = 1; end <= lengths.size(); ++end) {
      if (end <= gaps && !(ends >> (end - 1) & 1))
        continue;
      const auto samples = static_cast<int64_t>(end - begin);
      const Load load = times(loadOfSample(lengths[end - 1]), samples);
      begin = end;
      const int64_t room =
          samples > 1 ? std::min(problem.share, problem.limit) : problem.limit;
      if (problem.held(load) > room ||
          (samples > 1 && load.queries > problem.maxTokens))
        sum = never;
      double seconds = problem.seconds(load);
      sum += seconds;
      largest = std::max(largest, seconds);
    }
    best =
        std::min(best, (problem.stages - 1) * largest + sum / problem.replicas);
  }
  return best;
}

double objectiveOf(const MicroBatches &cut, const BatchingProblem &problem) {
  double sum = 0, largest = 0;
  for (const plan::MicroBatch &microBatch : cut) {
    const double seconds = problem.seconds(loadOf(microBatch));
    sum += seconds;
    largest = std::max(largest, seconds);
  }
  return (problem.stages - 1) * largest + sum / problem.replicas;
}

// Bytes of the fullest stage, a share of them for several samples, tokens too:
// the padded cut is the best of all that fit, and there is none where a sample
// alone is above the limit.
TEST(HeldBytesTest, PaddedCutsAreTheBestThatFit) {
  ExecutableGraph graph = graphOf("pp=3,layers=2+2+1");
  CostModel costs(model());
  int infeasible = 0, alone = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    PlanOptions options =
        optionsOf(pick(draw, 20, 120),
                  {pick(draw, 40000, 200000), pick(draw, 40000, 200000),
                   pick(draw, 40000, 200000)});
    StageTables tables(graph, costs, options, true, 4096);
    HeldBytes held(graph, options);
    BatchingProblem problem;
    for (int64_t count = pick(draw, 1, 7); count > 0; --count)
      problem.lengths.push_back(pick(draw, 1, 64));
    problem.stages = static_cast<int>(pick(draw, 1, 4));
    problem.replicas = static_cast<int>(pick(draw, 1, 2));
    problem.maxTokens = options.maxTokensPerMicroBatch;
    problem.rowTokens = 64;
    problem.seconds = [&](const Load &load) { return tables.slowest(load); };
    problem.held = [&](const Load &load) { return held.of(load); };
    problem.limit = held.limit() / (seed % 3 == 0 ? 4 : 1);
    problem.share = std::max<int64_t>(1, problem.limit / pick(draw, 1, 5));
    auto cut = ruleOf(Batching::Padded).cut(problem);
    const double best = bestCut(problem);
    if (best == never) {
      ++infeasible;
      ASSERT_FALSE(cut.isOk());
      EXPECT_EQ(cut.status().code(), StatusCode::ResourceExhausted);
      EXPECT_THAT(cut.status().message(), HasSubstr("tokens needs"));
      continue;
    }
    ASSERT_TRUE(cut.isOk()) << cut.status().message();
    EXPECT_NEAR(objectiveOf(*cut, problem) / best, 1, 1e-12);
    for (const plan::MicroBatch &microBatch : *cut)
      alone += microBatch.segments.size() == 1 &&
               held.of(loadOf(microBatch)) > problem.share;
  }
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(alone, 100);
}

// Where memory is short a micro-batch has fewer tokens than where it is not, and
// within its share what stages keep together fits.
TEST(HeldBytesTest, ScarceMemoryMakesSmallerMicroBatches) {
  ExecutableGraph graph = graphOf("pp=3,layers=2+2+1");
  Planner planner(graph);
  Lengths lengths(60, 16);
  for (Batching batching : {Batching::Ragged, Batching::Padded}) {
    PlanOptions options = optionsOf(480, {});
    options.batching = batching;
    auto least = planner.leastDynamicBytes(options, true);
    ASSERT_TRUE(least.isOk());
    options.dynamicLimits = *least;
    auto scarce = planner.training(lengths, 9, options);
    for (int64_t &limit : options.dynamicLimits)
      limit *= 100;
    auto plenty = planner.training(lengths, 9, options);
    ASSERT_TRUE(scarce.isOk() && plenty.isOk());
    EXPECT_EQ(scarce->fallback, "") << ruleOf(batching).name;
    HeldBytes held(graph, options);
    int64_t largest = 0;
    for (const plan::MicroBatch &microBatch : scarce->microBatches)
      largest = std::max<int64_t>(largest, microBatch.segments.size());
    // Three of them fit the first stage.
    EXPECT_LE(3 * held.of(times(loadOfSample(16), largest)),
              held.limit() / 100);
    EXPECT_GE(scarce->microBatchCount(), plenty->microBatchCount());
  }
}

} // namespace
