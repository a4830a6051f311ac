//===- PlanTranslationTest.cpp - Plans to exec, to text, and back ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/PlanTranslation.h"
#include "mlir/Parser/Parser.h"
#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/planner/PartitionLayers.h"
#include "runtime/planner/Planner.h"
#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
namespace plan = ::dyna::plan;

namespace {

struct PlanTranslationTest : testing::Test {
  PlanTranslationTest() { context.loadDialect<exec::ExecDialect>(); }

  /// A module with the plan; null if it is refused, with the message.
  OwningOpRef<ModuleOp> import(const plan::Plan &plan) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    Location location = UnknownLoc::get(&context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(location);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    if (failed(exec::importPlan(builder, location, plan)))
      return nullptr;
    return module;
  }

  /// The plan behind exec, its text, and exec again.
  plan::Plan throughText(const plan::Plan &plan) {
    OwningOpRef<ModuleOp> module = import(plan);
    if (!module) {
      ADD_FAILURE() << message;
      return {};
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    auto parsed = parseSourceString<ModuleOp>(text, &context);
    if (!parsed) {
      ADD_FAILURE() << text;
      return {};
    }
    return exec::exportPlan(*parsed->getOps<exec::PlanOp>().begin());
  }

  MLIRContext context;
  std::string message;
};

TEST_F(PlanTranslationTest, PlansOfRandomStrategies) {
  std::mt19937 random(7);
  auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    ::dyna::TinyOptions tiny;
    tiny.blocks = draw(1, 4);
    auto model = ::dyna::Model::create(::dyna::tinyManifest(tiny));
    ASSERT_TRUE(model.isOk()) << model.status().message();
    ::dyna::Strategy strategy;
    strategy.dp = draw(1, 3);
    strategy.pp = draw(1, 3);
    strategy.zero = draw(0, 1) == 1;
    auto cut = ::dyna::chooseLayers(::dyna::CostModel(*model), strategy);
    ASSERT_TRUE(cut.isOk()) << cut.status().message();
    auto graph = ::dyna::ExecutableGraph::create(*model, cut->strategy);
    ASSERT_TRUE(graph.isOk()) << graph.status().message();
    ::dyna::PlanOptions options;
    options.recompute = {static_cast<plan::Recompute>(draw(0, 2))};
    options.maxTokensPerMicroBatch = 16;
    options.schedule = draw(0, 1) ? ::dyna::Schedule::OneForwardOneBackward
                                  : ::dyna::Schedule::GPipe;
    options.inFlight = draw(1, 3);
    options.splitBackward = draw(0, 1) == 1;
    std::vector<int64_t> lengths;
    for (int sample = draw(strategy.dp, 12); sample > 0; --sample)
      lengths.push_back(draw(1, 16));
    ::dyna::Planner planner(*graph);
    auto made = draw(0, 3) ? planner.training(lengths, 100, options)
                           : planner.evaluation(lengths, 100, options);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    made->name = "p\xff 7"; // quoted in text
    made->fallback = draw(0, 1) ? "a \"schedule\"" : "";
    if (draw(0, 1))
      made->lengths = lengths;
    EXPECT_EQ(::dyna::writePlan(throughText(*made)), ::dyna::writePlan(*made));
  }
}

TEST_F(PlanTranslationTest, EveryFieldOfEveryInstruction) {
  std::mt19937_64 random(11);
  auto number = [&]() { return static_cast<int64_t>(random() >> 1); };
  auto index = [&]() { return static_cast<int32_t>(random() >> 33); };
  plan::Plan plan;
  plan.manifestHash = ~uint64_t(0);
  plan.targetTokens = number();
  plan.name = "p";
  plan.graph = "dp=2,tp=1,pp=1,layers=4";
  plan.lengths = {number()};
  plan.microBatches.push_back({{{number(), number(), number()}}, index()});
  for (bool takes : {false, true}) {
    plan::RankProgram &program = plan.ranks.emplace_back();
    program.dynamicBytes = number();
    for (int op = 1; op <= plan::Instruction::Op_MAX; ++op) {
      plan::Instruction &i = program.instructions.emplace_back();
      i.op = static_cast<plan::Instruction::Op>(op);
      for (int number = 0; number < ::dyna::fieldCount; ++number)
        if (auto field = static_cast<::dyna::Field>(number);
            hasField(i.op, field))
          setField(i, field,
                   field == ::dyna::Field::Recompute ? plan::RECOMPUTE_FULL
                                                     : index());
      for (int place = 0; takes && place < ::dyna::takenBy(i.op).count; ++place)
        i.places[place] = number() / 64 * 64;
    }
  }
  plan::Plan again = throughText(plan);
  EXPECT_EQ(::dyna::writePlan(again), ::dyna::writePlan(plan));
  ASSERT_EQ(again.rankCount(), plan.rankCount());
  for (int rank = 0; rank < plan.rankCount(); ++rank)
    EXPECT_TRUE(again.ranks[rank].instructions ==
                plan.ranks[rank].instructions);
}

TEST_F(PlanTranslationTest, WhatExecCannotSayIsRefused) {
  plan::Plan plan;
  plan::Instruction &i = plan.ranks.emplace_back().instructions.emplace_back();
  EXPECT_FALSE(import(plan)); // an instruction of the number 0
  i.op = plan::Instruction::COMBINE_NORM;
  EXPECT_TRUE(import(plan));
  i.layer = 1;
  EXPECT_FALSE(import(plan));
  EXPECT_NE(message.find("has no 'layer'"), std::string::npos) << message;
}

} // namespace
