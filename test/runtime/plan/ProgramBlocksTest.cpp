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

//===----------------------------------------------------------------------===//
// Kinds that the product does not have: lives across micro-batches
//===----------------------------------------------------------------------===//

constexpr auto keysKind = static_cast<BlockKind>(0);
constexpr auto sumKind = static_cast<BlockKind>(1);

/// Micro-batches 0 and 2 have a part of sample 0 each, micro-batch 1 has sample 1.
int sampleOf(const BlockContext &at, bool) {
  return isPerMicroBatch(at.i.op)
             ? static_cast<int>(
                   at.plan.microBatches[at.i.microBatch].segments[0].sample)
             : -1;
}

BlockRules ruleOfKeys(Instruction::Op op) {
  static const BlockRule forward[] = {{Operand::Kept, BlockRule::Take |
                                                          BlockRule::IfAbsent |
                                                          BlockRule::Write}};
  static const BlockRule backward[] = {
      {Operand::Kept, BlockRule::Read},
      {Operand::Gradient,
       BlockRule::Take | BlockRule::IfAbsent | BlockRule::Write}};
  static const BlockRule update[] = {{Operand::Gradient, BlockRule::Give}};
  static const BlockRule norm[] = {{Operand::Gradient, BlockRule::Read}};
  switch (op) {
  case Instruction::FORWARD:
    return {forward, 1};
  case Instruction::BACKWARD:
    return {backward, 2};
  case Instruction::UPDATE:
    return {update, 1};
  case Instruction::GRAD_NORM:
    return {norm, 1};
  default:
    return {nullptr, 0};
  }
}

/// Keys of a sample's layer end with the last instruction on them. Sums of a layer
/// are given back by UPDATE. Neither key has a micro-batch.
BlockTables tablesOfKeys() {
  BlockTables tables = BlockTables::standard();
  const unsigned layer = 1u << static_cast<int>(KeyColumn::Layer);
  const unsigned sample = 1u << static_cast<int>(KeyColumn::MicroBatch);
  tables.columns[static_cast<size_t>(KeyColumn::MicroBatch)] = {"sample",
                                                                sampleOf};
  tables.kinds = {
      {"keys", layer | sample, BlockLife::ByKey,
       [](const BlockContext &at, const BlockName &) -> int64_t {
         return 128 * at.plan.microBatches[at.i.microBatch].segments[0].length;
       }},
      {"sum", layer, BlockLife::ByRow,
       [](const BlockContext &, const BlockName &) -> int64_t { return 256; }}};
  tables.operands.fill({keysKind, false});
  tables.operands[static_cast<size_t>(Operand::Gradient)] = {sumKind, false};
  tables.rules = ruleOfKeys;
  return tables;
}

struct BlocksAcrossMicroBatches : ProgramBlocksTest {
  BlocksAcrossMicroBatches() {
    plan.microBatches = {{{{0, 0, 4}}, 0}, {{{1, 0, 8}}, 0}, {{{0, 4, 6}}, 0}};
  }

  void add(Instruction::Op op, int layer, int microBatch) {
    ProgramBlocksTest::add(op, layer);
    plan.ranks[0].instructions.back().microBatch = microBatch;
  }
  /// Forward and backward of all micro-batches on layer 1, then its update.
  void addAll() {
    for (int m : {0, 1, 2})
      add(Instruction::FORWARD, 1, m);
    for (int m : {2, 1, 0})
      add(Instruction::BACKWARD, 1, m);
    add(Instruction::UPDATE, 1, 0);
  }
  ProgramBlocks table() const {
    return {view, plan, plan.ranks[0], nullptr, tables};
  }
  Status check() const {
    const ProgramBlocks blocks = table();
    MemoryChecker checker(blocks, plan.ranks[0].dynamicBytes);
    for (int index = 0; index < plan.ranks[0].count(); ++index)
      if (Status status =
              checker.step(index, plan.ranks[0].instructions[index]);
          !status.isOk())
        return status;
    return checker.finish();
  }
  std::string wrong() {
    EXPECT_TRUE(assignMemory(table(), plan.ranks[0]).isOk());
    return check().message();
  }

  BlockTables tables = tablesOfKeys();
};

TEST_F(BlocksAcrossMicroBatches, LiveFromTheFirstUseToTheLastOfAKey) {
  addAll();
  std::vector<std::string> lives;
  const ProgramBlocks blocks = table();
  for (const Block &block : blocks.blocks())
    lives.push_back(tables.describe(block.name) + " " +
                    std::to_string(block.bytes) + " bytes " +
                    std::to_string(block.first) + "-" +
                    std::to_string(block.last));
  EXPECT_THAT(lives,
              ElementsAre("keys block of layer 1 sample 0 512 bytes 0-5",
                          "keys block of layer 1 sample 1 1024 bytes 1-4",
                          "sum block of layer 1 256 bytes 3-6"));
  EXPECT_THAT(blocks.liveBytes(),
              ElementsAre(512, 1536, 1536, 1792, 1792, 768, 256));
  EXPECT_THAT(blocks.liveBytes(sumKind),
              ElementsAre(0, 0, 0, 256, 256, 256, 256));
  // Every use has the bytes of its block, whichever micro-batch has taken it.
  for (int index = 0; index < plan.ranks[0].count(); ++index)
    for (const BlockUse &use : blocks.uses(index))
      EXPECT_EQ(use.bytes, blocks.blocks()[use.block].bytes);
}

TEST_F(BlocksAcrossMicroBatches, ArePlacedForTheirWholeLives) {
  addAll();
  EXPECT_EQ(wrong(), "");
  EXPECT_GE(plan.ranks[0].dynamicBytes, 1792);
  const ProgramBlocks blocks = table();
  EXPECT_EQ(blocks.place(5, Operand::Kept), blocks.place(0, Operand::Kept));
  // Only who takes a block says where it lies.
  EXPECT_NE(plan.ranks[0].instructions[0].places[0], plan::noPlace);
  EXPECT_EQ(plan.ranks[0].instructions[2].places[0], plan::noPlace);
  // What is taken between the micro-batches of a sample may not lie in its block.
  plan.ranks[0].instructions[1].places[0] =
      plan.ranks[0].instructions[0].places[0];
  EXPECT_THAT(check().message(), HasSubstr("overlaps the keys block of layer 1 "
                                           "sample 0"));
}

TEST_F(BlocksAcrossMicroBatches, UsedBeforeTaken) {
  add(Instruction::BACKWARD, 1, 0);
  add(Instruction::FORWARD, 1, 2);
  EXPECT_THAT(wrong(), HasSubstr("the keys block of layer 1 sample 0 is used "
                                 "but is not there"));
}

TEST_F(BlocksAcrossMicroBatches, GivenBackTwice) {
  addAll();
  add(Instruction::UPDATE, 1, 0);
  EXPECT_THAT(wrong(),
              HasSubstr("the sum block of layer 1 is used but is not there"));
}

TEST_F(BlocksAcrossMicroBatches, UsedAfterItIsGivenBack) {
  addAll();
  add(Instruction::GRAD_NORM, 1, 0);
  EXPECT_THAT(wrong(),
              HasSubstr("the sum block of layer 1 is used but is not there"));
}

TEST_F(BlocksAcrossMicroBatches, NeverGivenBack) {
  addAll();
  plan.ranks[0].instructions.pop_back();
  EXPECT_THAT(wrong(),
              HasSubstr("the sum block of layer 1 is never given back"));
}

TEST_F(BlocksAcrossMicroBatches, TakenTwice) {
  add(Instruction::FORWARD, 1, 0);
  add(Instruction::FORWARD, 1, 2);
  static const BlockRule takes[] = {
      {Operand::Kept, BlockRule::Take | BlockRule::Write}};
  tables.rules = [](Instruction::Op op) -> BlockRules {
    return op == Instruction::FORWARD ? BlockRules{takes, 1} : ruleOfKeys(op);
  };
  EXPECT_THAT(wrong(),
              HasSubstr("the keys block of layer 1 sample 0 is taken twice"));
}

} // namespace
