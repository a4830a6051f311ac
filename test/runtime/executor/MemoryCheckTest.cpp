//===- MemoryCheckTest.cpp - Formulas against touched bytes ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/SegmentLoad.h"
#include "test/runtime/executor/TinyRun.h"

#include <gmock/gmock.h>

#include <map>

using namespace dyna;
using testing::HasSubstr;

namespace {

class MemoryCheckTest : public testing::Test {
protected:
  void TearDown() override { tinyFault = TinyFault(); }

  static PlanOptions options(plan::Recompute mode, bool split, int inFlight) {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 40;
    options.recompute = {mode};
    options.splitBackward = split;
    options.inFlight = inFlight;
    return options;
  }
};

// Nothing reads memory before it was written (it would be NaN), nothing writes
// outside its blocks, and the formulas are not larger than what is touched but
// for alignment: micro-batches of 32 tokens, several in flight.
TEST_F(MemoryCheckTest, TouchedBytesAreThoseOfTheFormulas) {
  for (auto mode :
       {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
    for (bool split : {false, true})
      for (int inFlight : {1, 3}) {
        TinyRun run(options(mode, split, inFlight), {}, true);
        MiniBatch batch = tinyBatch({32, 32, 32, 32});
        StepResult result;
        ASSERT_TRUE(run.step(0, batch, result).isOk())
            << run.step(0, batch, result).message();
        EXPECT_TRUE(std::isfinite(result.lossSum));
        const MemoryReport &report = run.executor->memoryReport();
        EXPECT_LE(report.touchedEnd, result.dynamicBytes);
        EXPECT_GT(report.touchedEnd, result.dynamicBytes - 2048);
        EXPECT_LE(result.liveBytes, result.dynamicBytes);
        for (const BlockReport &block : report.blocks) {
          EXPECT_LE(block.touchedEnd, block.assigned);
          // Layer 1 is a block: all tiers of it are used up.
          if (block.name.kind == BlockKind::Kept &&
              block.name.at(KeyColumn::Layer) == 1)
            EXPECT_EQ(block.touchedEnd, block.assigned) << mode << split;
        }
      }
}

TEST_F(MemoryCheckTest, PoisonedMemoryGivesTheSameNumbers) {
  TinyRun plain(options(plan::RECOMPUTE_SELECTIVE, true, 2));
  TinyRun checked(options(plan::RECOMPUTE_SELECTIVE, true, 2), {}, true);
  EXPECT_EQ(plain.train(2), checked.train(2));
}

// What code asks for beside segments has its bytes in plans, all of them are
// written, and nothing else changes; the tiny model's functions look at it.
TEST_F(MemoryCheckTest, TablesOfMicroBatchesAreInTheFormulas) {
  for (int64_t tokensOfSample : {32, 12}) {
    std::map<uint32_t, double> losses;
    for (uint32_t tables : {0u, uint32_t(DYNA_BATCH_TABLES)}) {
      TinyOptions tiny;
      tiny.batchTables = tables;
      TinyRun run(options(plan::RECOMPUTE_SELECTIVE, true, 2), tiny, true);
      MiniBatch batch = tinyBatch(std::vector<int64_t>(5, tokensOfSample));
      StepResult result;
      Status status = run.step(0, batch, result);
      ASSERT_TRUE(status.isOk()) << status.message();
      losses[tables] = result.lossSum;
      int blocks = 0;
      for (const BlockReport &block : run.executor->memoryReport().blocks) {
        if (block.name.kind != BlockKind::Batch)
          continue;
        const auto &microBatch =
            run.lastPlan.microBatches[block.name.at(KeyColumn::MicroBatch)];
        EXPECT_EQ(block.assigned,
                  batchLayout(loadOf(microBatch), tables).bytes);
        EXPECT_EQ(block.touchedEnd, block.assigned);
        ++blocks;
      }
      EXPECT_GT(blocks, 1);
    }
    EXPECT_EQ(losses[0], losses[DYNA_BATCH_TABLES]);
  }
}

TEST_F(MemoryCheckTest, StrayWritesAreFound) {
  auto message = [](TinyFault::Kind kind, int role, int64_t layer) {
    TinyRun run(options(plan::RECOMPUTE_NONE, false, 1), {}, true);
    tinyFault = {kind, role, layer};
    StepResult result;
    return run.step(0, tinyBatch({32}), result).message();
  };
  std::string behindOutput =
      message(TinyFault::Kind::WriteBehindOutput, DYNA_ROLE_BACKWARD, 2);
  EXPECT_THAT(behindOutput, HasSubstr("BACKWARD layer 2"));
  EXPECT_THAT(behindOutput, HasSubstr("wrote where it must not"));
  EXPECT_THAT(message(TinyFault::Kind::WriteParameter, DYNA_ROLE_FORWARD, 1),
              HasSubstr("byte 576 of the parameters"));
}

// A layer function that writes into a block which its role only reads.
TEST_F(MemoryCheckTest, BlocksThatAreOnlyReadAreProtected) {
  TinyRun run(options(plan::RECOMPUTE_NONE, false, 1), {}, true);
  MiniBatch batch = tinyBatch({32});
  auto plan =
      Planner(*run.graph).training(batch.lengths(), batch.targets, run.options);
  ASSERT_TRUE(plan.isOk());
  // 64 blocks behind the workspace of BACKWARD lies something alive.
  tinyFault = {TinyFault::Kind::WriteBehindWorkspace, DYNA_ROLE_BACKWARD, 3};
  StepResult result;
  Status status = run.run(*plan, batch, TinyRun::scalars(0), result);
  EXPECT_THAT(status.message(), HasSubstr("wrote where it must not"));
}

/// Changes a place, a field or the order of a plan somewhere.
void mutate(plan::Plan &plan, uint64_t &counter) {
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  plan::RankProgram &program = plan.ranks[0];
  int count = program.count();
  int index = static_cast<int>(random(count));
  plan::Instruction &i = program.instructions[index];
  auto place = [&](plan::Instruction &of) -> int64_t & {
    return of.places[random(of.places.size())];
  };
  auto &list = program.instructions;
  switch (random(6)) {
  case 0:
    place(i) += 64 * (static_cast<int64_t>(random(41)) - 20);
    break;
  case 1:
    std::swap(i, list[std::min(index + 1, count - 1)]);
    break;
  case 2:
    std::swap(i, list[random(count)]);
    break;
  case 3:
    i.recompute = static_cast<plan::Recompute>(random(3));
    break;
  case 4:
    i.layer = static_cast<int>(random(5));
    break;
  default:
    place(i) = place(list[random(count)]);
  }
}

// Whatever the verifier lets pass runs without a stray byte and computes the
// same: it is not enough that it refuses some bad plans.
TEST_F(MemoryCheckTest, VerifiedPlansAreSound) {
  TinyRun run(options(plan::RECOMPUTE_SELECTIVE, true, 2), {}, true);
  run.options.update = false;
  MiniBatch batch = tinyBatch({32, 9, 17, 20, 5});
  StepResult expected, result;
  ASSERT_TRUE(run.step(0, batch, expected).isOk());
  std::vector<double> gradients = run.readAll(ParameterPart::Gradient);
  const plan::Plan good = run.lastPlan;
  uint64_t counter = 0;
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    plan::Plan plan = good;
    for (uint64_t change = dyna_mix64(++counter) % 2 + 1; change > 0; --change)
      mutate(plan, counter);
    EXPECT_OK(run.executor->seat().clearGradients());
    Status status = run.run(plan, batch, TinyRun::scalars(0), result);
    if (!status.isOk()) {
      ASSERT_THAT(status.message(), testing::StartsWith("plan: "));
      continue;
    }
    ++accepted;
    ASSERT_EQ(result.microBatchLosses, expected.microBatchLosses);
    std::vector<double> now = run.readAll(ParameterPart::Gradient);
    for (size_t g = 0; g < now.size(); ++g)
      ASSERT_NEAR(now[g], gradients[g], 1e-13);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 2500);
}

} // namespace
