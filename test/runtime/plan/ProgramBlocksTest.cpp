//===- ProgramBlocksTest.cpp - Tables of blocks ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/verify/MemoryChecker.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using plan::Instruction;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// One block between embedding and head, one sample.
struct ProgramBlocksTest : testing::Test {
  ProgramBlocksTest() {
    TinyOptions tiny;
    tiny.blocks = 1;
    model = *Model::create(tinyManifest(tiny));
    plan.microBatches.push_back({{{0, 0, 10}}, 0});
    plan.ranks.emplace_back();
  }

  void add(Instruction::Op op, int layer = 0) {
    Instruction i;
    i.op = op;
    i.layer = layer;
    plan.ranks[0].instructions.push_back(i);
  }
  ProgramBlocks table() const { return {view, plan, plan.ranks[0]}; }
  /// What is wrong with a program that is placed, first.
  std::string wrong() {
    EXPECT_TRUE(assignMemory(view, plan, plan.ranks[0], nullptr).isOk());
    ProgramBlocks blocks = table();
    MemoryChecker checker(blocks, plan.ranks[0].dynamicBytes);
    for (int index = 0; index < plan.ranks[0].count(); ++index)
      if (Status status =
              checker.step(index, plan.ranks[0].instructions[index]);
          !status.isOk())
        return status.message();
    return checker.finish().message();
  }

  Model model = *Model::create(tinyManifest());
  RankView view = RankView::whole(model);
  plan::Plan plan;
};

// By hand: what is taken when, and until when it is there.
TEST_F(ProgramBlocksTest, AnEvaluation) {
  add(Instruction::LOAD);
  for (int layer : {0, 1, 2})
    add(Instruction::EVALUATE, layer);
  ProgramBlocks blocks = table();
  std::vector<std::string> lives;
  for (const Block &block : blocks.blocks()) {
    EXPECT_GT(block.bytes, 0);
    if (block.name.kind == BlockKind::Workspace)
      EXPECT_EQ(block.first, block.last);
    else
      lives.push_back(describeBlock(block.name) + " " +
                      std::to_string(block.first) + "-" +
                      std::to_string(block.last));
  }
  EXPECT_THAT(lives, ElementsAre("batch block of micro-batch 0 0-3",
                                 "kept block of layer 0 micro-batch 0 0-1",
                                 "kept block of layer 1 micro-batch 0 1-2",
                                 "kept block of layer 2 micro-batch 0 2-3"));
  const Load &load = blocks.load(0);
  int64_t batch = blocks.blocks()[0].bytes;
  std::vector<int64_t> live = blocks.liveBytes(BlockKind::Batch);
  EXPECT_THAT(live, ElementsAre(batch, batch, batch, batch));
  int64_t in[3];
  for (int layer : {0, 1, 2})
    in[layer] = view.inputBytes(layer, load);
  EXPECT_THAT(blocks.liveBytes(BlockKind::Kept),
              ElementsAre(in[0], in[0] + in[1], in[1] + in[2], in[2]));
  EXPECT_EQ(wrong(), "");
}

// FREE, which comes last, says nothing of the batch, and gives it back.
TEST_F(ProgramBlocksTest, TheLastInstructionOfAMicroBatchGivesTheRest) {
  add(Instruction::LOAD);
  for (int layer : {0, 1, 2})
    add(Instruction::FORWARD, layer);
  for (int layer : {2, 1, 0})
    add(Instruction::BACKWARD, layer);
  for (int layer : {2, 1, 0})
    add(Instruction::FREE, layer);
  ProgramBlocks blocks = table();
  EXPECT_EQ(blocks.blocks()[0].name.kind, BlockKind::Batch);
  EXPECT_EQ(blocks.blocks()[0].last, 9);
  auto given = [&](int index) {
    std::vector<BlockKind> kinds;
    for (const BlockUse &use : blocks.uses(index))
      if (use.gives)
        kinds.push_back(use.name.kind);
    return kinds;
  };
  EXPECT_THAT(given(8), ElementsAre(BlockKind::Kept));
  EXPECT_THAT(given(9), ElementsAre(BlockKind::Kept, BlockKind::Batch));
  EXPECT_EQ(wrong(), "");
}

// The table of the planner's programs against the words of Instructions.def:
// every use lies in the life of its block, which its first use takes.
TEST_F(ProgramBlocksTest, LivesAreFromTheFirstUseToTheLast) {
  for (const char *text : {"pp=2,layers=3+2", "dp=2,tp=2,sp=1,zero=1"})
    for (auto mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL})
      for (bool split : {false, true}) {
        ExecutableGraph graph =
            *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(text));
        PlanOptions options = tinyPlanOptions();
        options.recompute = {mode};
        options.splitBackward = split;
        plan::Plan plan = *Planner(graph).training(equalLengths, 100, options);
        for (int rank = 0; rank < plan.rankCount(); ++rank) {
          const plan::RankProgram &program = plan.ranks[rank];
          ProgramBlocks blocks(graph.replicaView(rank), plan, program);
          std::vector<int> seen(blocks.blocks().size(), -1);
          for (int index = 0; index < program.count(); ++index)
            for (const BlockUse &use : blocks.uses(index)) {
              ASSERT_GE(use.block, 0);
              EXPECT_FALSE(use.isThereAlready);
              EXPECT_EQ(use.takes, seen[use.block] < 0);
              EXPECT_EQ(use.gives, blocks.blocks()[use.block].last == index);
              EXPECT_EQ(blocks.place(index, use.operand),
                        blocks.blocks()[use.block].place);
              seen[use.block] = index;
            }
          for (size_t block = 0; block < seen.size(); ++block)
            EXPECT_EQ(seen[block], blocks.blocks()[block].last);
        }
      }
}

TEST_F(ProgramBlocksTest, WhatIsNotThereIsNoticed) {
  add(Instruction::LOAD);
  add(Instruction::FREE, 1);
  EXPECT_EQ(table().uses(1).begin()[0].block, -1);
  EXPECT_THAT(wrong(), HasSubstr("the kept block of layer 1 micro-batch 0 is "
                                 "used but is not there"));
}

TEST_F(ProgramBlocksTest, WhatIsTakenAgainIsNoticed) {
  add(Instruction::LOAD);
  add(Instruction::LOAD);
  EXPECT_THAT(wrong(), HasSubstr("the batch block of micro-batch 0 is taken "
                                 "twice"));
}

TEST_F(ProgramBlocksTest, WhatIsLeftIsNoticed) {
  add(Instruction::LOAD);
  EXPECT_THAT(wrong(), HasSubstr("the kept block of layer 0 micro-batch 0 is "
                                 "never given back"));
}

} // namespace
