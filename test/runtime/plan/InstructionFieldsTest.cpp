//===- InstructionFieldsTest.cpp - Every field of every instruction -------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/InstructionBlocks.h"
#include "runtime/plan/PlanVerifier.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

/// Changes one field at a time: all that a field may not be is refused.
class Walk {
public:
  void run(const ExecutableGraph &graph, plan::Plan plan,
           const std::vector<int64_t> &lengths) {
    VerifyOptions options = {enoughBytes};
    Status good = verifyPlan(graph, plan, lengths, options);
    ASSERT_TRUE(good.isOk()) << good.message();
    for (plan::RankProgram &program : *plan.mutable_ranks()) {
      const ManifestView &view = graph.replicaView(program.rank());
      std::map<Instruction::Op, int> tried;
      for (int index = 0; index < program.instructions_size(); ++index) {
        Instruction &i = *program.mutable_instructions(index);
        if (++tried[i.op()] > 2)
          continue;
        seen.insert(i.op());
        unsigned used = 0;
        for (const BlockUse &use :
             InstructionBlocks(view, plan, program).uses(index))
          used |= 1u << static_cast<int>(use.field);
        for (int field = 0; field < fieldCount; ++field) {
          const Instruction kept = i;
          bool isUsed = used >> field & 1;
          std::string word = change(i, static_cast<Field>(field), isUsed);
          Status status = verifyPlan(graph, plan, lengths, options);
          EXPECT_FALSE(status.isOk())
              << describeInstruction(kept) << ": " << word;
          if (!status.isOk())
            EXPECT_THAT(status.message(), HasSubstr(word))
                << describeInstruction(kept);
          i = kept;
        }
      }
    }
  }
  std::set<Instruction::Op> seen;

private:
  /// What the message then says.
  std::string change(Instruction &i, Field field, bool isUsed) {
    bool isOffset = field >= Field::Kept;
    int64_t value = fieldOf(i, field);
    std::string name = "'" + std::string(fieldName(field)) + "'";
    if (!hasField(i.op(), field)) {
      setField(i, field, field == Field::Recompute ? plan::RECOMPUTE_FULL : 64);
      return std::string("has no ") + name;
    }
    if (isOffset && !isUsed) {
      setField(i, field, 64);
      return name + " is 64, but there is no such block";
    }
    if (needsField(i.op(), field)) {
      setField(i, field, 0);
      return "needs " + name;
    }
    if (field == Field::Recompute)
      setField(i, field, plan::RECOMPUTE_FULL + 1);
    else
      setField(i, field, value + 1);
    return "plan: ";
  }
};

TEST(InstructionFieldsTest, WhatAnInstructionHasNotIsRefused) {
  Walk walk;
  for (const char *text : {"dp=1", "dp=2,zero=1", "dp=2,pp=2,layers=3+2,zero=1",
                           "pp=2,layers=3+2"}) {
    ExecutableGraph graph =
        *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(text));
    Planner planner(graph);
    PlanOptions options = tinyPlanOptions();
    walk.run(graph, *planner.evaluation(equalLengths, 100, options),
             equalLengths);
    for (auto mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE})
      for (bool split : {false, true}) {
        options.recompute = {mode};
        options.splitBackward = split;
        walk.run(graph, *planner.training(equalLengths, 100, options),
                 equalLengths);
      }
  }
  TinyOptions narrow;
  narrow.compute = plan::BF16;
  ManifestView view = *ManifestView::create(tinyManifest(narrow));
  ExecutableGraph graph = *ExecutableGraph::create(view, Strategy());
  walk.run(graph, *Planner(view).cast(), {});
  // No instruction was forgotten.
  EXPECT_EQ(walk.seen.size(), static_cast<size_t>(Instruction::Op_MAX));
}

TEST(InstructionFieldsTest, NumbersOfOtherInstructionsHaveNothing) {
  for (int op : {-1, 0, static_cast<int>(Instruction::Op_MAX) + 1}) {
    auto unknown = static_cast<Instruction::Op>(op);
    EXPECT_STREQ(instructionName(unknown), "unknown instruction");
    EXPECT_EQ(listFields(unknown), "nothing");
  }
}

} // namespace
