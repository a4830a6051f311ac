//===- InstructionFieldsTest.cpp - Every field of every instruction -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
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
    VerifyOptions options;
    Status good = verifyPlan(graph, plan, lengths, options);
    ASSERT_TRUE(good.isOk()) << good.message();
    for (plan::RankProgram &program : plan.ranks) {
      std::map<Instruction::Op, int> tried;
      for (int index = 0; index < program.count(); ++index) {
        Instruction &i = program.instructions[index];
        if (++tried[i.op] > 2)
          continue;
        seen.insert(i.op);
        for (int field = 0; field < fieldCount; ++field)
          refuses(graph, plan, i, lengths,
                  [&] { return change(i, static_cast<Field>(field)); });
        for (int place = 0; place < Instruction::maxTaken; ++place)
          refuses(graph, plan, i, lengths,
                  [&] { return changePlace(i, place); });
      }
    }
  }
  std::set<Instruction::Op> seen;

private:
  /// `change` says what the message then says.
  static void refuses(const ExecutableGraph &graph, const plan::Plan &plan,
                      Instruction &i, const std::vector<int64_t> &lengths,
                      const std::function<std::string()> &change) {
    const Instruction kept = i;
    std::string word = change();
    Status status = verifyPlan(graph, plan, lengths, {});
    EXPECT_FALSE(status.isOk()) << describeInstruction(kept) << ": " << word;
    if (!status.isOk())
      EXPECT_THAT(status.message(), HasSubstr(word))
          << describeInstruction(kept);
    i = kept;
  }

  static std::string change(Instruction &i, Field field) {
    int64_t value = fieldOf(i, field);
    std::string name = "'" + std::string(fieldName(field)) + "'";
    if (!hasField(i.op, field)) {
      setField(i, field, field == Field::Recompute ? plan::RECOMPUTE_FULL : 64);
      return "has no " + name;
    }
    if (needsField(i.op, field)) {
      setField(i, field, 0);
      return "needs " + name;
    }
    if (field == Field::Recompute)
      setField(i, field, plan::RECOMPUTE_FULL + 1);
    else if (field == Field::Parameter)
      setField(i, field, 64); // the first one may be all that there is
    else
      setField(i, field, value + 1);
    return "plan: ";
  }

  static std::string changePlace(Instruction &i, int place) {
    const TakenOperands taken = takenBy(i.op);
    const char *name =
        place < taken.count ? operandName(taken.operands[place]) : "a place";
    if (i.places[place] != plan::noPlace) {
      i.places[place] = plan::noPlace;
      return std::string("has no place: it needs '") + name + "'";
    }
    i.places[place] = 64;
    return formatText("'%s' is 64, but it takes no such block here", name);
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
  plan::Manifest stores = tinyManifest();
  stores.mutable_kinds(1)->set_key_bytes(64);
  stores.mutable_kinds(1)->set_key_gradient_bytes(128);
  stores.set_hash(manifestHash(stores));
  const Model sliced = *Model::create(stores);
  for (const char *text : {"dp=1", "pp=2,layers=3+2"}) {
    ExecutableGraph graph =
        *ExecutableGraph::create(sliced, *parseStrategy(text));
    PlanOptions options = tinyPlanOptions();
    options.slices.count = 3;
    walk.run(graph, *Planner(graph).training(equalLengths, 100, options),
             equalLengths);
    walk.run(graph, *Planner(graph).evaluation(equalLengths, 100, options),
             equalLengths);
  }
  TinyOptions narrow;
  narrow.compute = plan::BF16;
  Model model = *Model::create(tinyManifest(narrow));
  ExecutableGraph graph = *ExecutableGraph::create(model, Strategy());
  walk.run(graph, *Planner(model).cast(), {});
  // No instruction was forgotten.
  // Switches stand in steps alone: StepRulesTest.
  for (int op = 1; op <= Instruction::Op_MAX; ++op)
    if (!exchangeOf(static_cast<Instruction::Op>(op)).isSwitch())
      EXPECT_EQ(walk.seen.count(static_cast<Instruction::Op>(op)), 1u)
          << "no plan has "
          << instructionName(static_cast<Instruction::Op>(op));
}

TEST(InstructionFieldsTest, NumbersOfOtherInstructionsHaveNothing) {
  for (int op : {255, 0, static_cast<int>(Instruction::Op_MAX) + 1}) {
    auto unknown = static_cast<Instruction::Op>(op);
    EXPECT_STREQ(instructionName(unknown), "unknown instruction");
    EXPECT_EQ(listFields(unknown), "nothing");
  }
}

} // namespace
