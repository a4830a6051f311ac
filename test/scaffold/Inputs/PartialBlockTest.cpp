//===- PartialBlockTest.cpp - The scaffolded kind of memory ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyRun.h"
#include "test/runtime/plan/PlanEditor.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

struct PartialBlockTest : testing::Test {
  PartialBlockTest() { EXPECT_OK(run.step(0, batch, result)); }

  static PlanOptions options() {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 32;
    return options;
  }

  TinyRun run{options(), {}, true};
  MiniBatch batch = tinyBatch({32, 9, 17});
  StepResult result;
};

TEST_F(PartialBlockTest, HasAPlaceInPlans) {
  const plan::RankProgram &program = run.lastPlan.ranks[0];
  const RankView &view = run.graph->replicaView(0);
  ProgramBlocks blocks(view, run.lastPlan, program);
  int norms = 0, partials = 0;
  for (const Instruction &i : program.instructions)
    norms += i.op == Instruction::GRAD_NORM;
  for (const Block &block : blocks.blocks()) {
    if (block.name.kind != BlockKind::Partial)
      continue;
    ++partials;
    EXPECT_EQ(describeBlock(block.name),
              "partial block of layer " +
                  std::to_string(block.name.at(KeyColumn::Layer)));
    EXPECT_EQ(block.bytes, 128);
    EXPECT_GE(block.place, 0);
    EXPECT_EQ(program.instructions[block.first].op, Instruction::GRAD_NORM);
  }
  EXPECT_GT(norms, 0);
  EXPECT_EQ(partials, norms);
}

TEST_F(PartialBlockTest, TheMemoryCheckFollowsIt) {
  int seen = 0;
  for (const BlockReport &block : run.executor->memoryReport().blocks)
    if (block.name.kind == BlockKind::Partial) {
      ++seen;
      EXPECT_EQ(block.assigned, 128);
      EXPECT_EQ(block.releasedBy, Instruction::GRAD_NORM);
    }
  EXPECT_GT(seen, 0);
}

TEST_F(PartialBlockTest, WithoutAPlaceThePlanIsRefused) {
  plan::Plan plan = run.lastPlan;
  Editor edit(plan);
  placeOf(edit.at(Instruction::GRAD_NORM, 0), Operand::Partial) = plan::noPlace;
  Status status = run.run(plan, batch, TinyRun::scalars(0), result);
  EXPECT_THAT(status.message(), HasSubstr("the partial block of layer 0 has no "
                                          "place: it needs 'partial'"));
}

} // namespace
