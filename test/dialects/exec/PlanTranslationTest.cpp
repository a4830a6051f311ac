//===- PlanTranslationTest.cpp - Plans to exec, to text, and back ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/SwitchTranslation.h"
#include "mlir/Parser/Parser.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/graph/Planner.h"
#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
namespace plan = ::dyna::plan;

namespace dyna {
static bool operator==(const RankBox &a, const RankBox &b) {
  return a.rank == b.rank && a.box == b.box;
}
static bool operator==(const SwitchTensor &a, const SwitchTensor &b) {
  return std::tie(a.parameter, a.part, a.elementBytes, a.delivery, a.from,
                  a.to) == std::tie(b.parameter, b.part, b.elementBytes,
                                    b.delivery, b.from, b.to);
}
static bool operator==(const SwitchTransfer &a, const SwitchTransfer &b) {
  return std::tie(a.tensor, a.from, a.to, a.source, a.target, a.box) ==
         std::tie(b.tensor, b.from, b.to, b.source, b.target, b.box);
}
} // namespace dyna

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
  for (int set = 0; set < 16; ++set) {
    plan::Segment segment = {number(), number(), number()};
    segment.stream = set & 1 ? index() : 0;
    segment.keyStream = set & 2 ? index() : 0;
    segment.keyBegin = set & 4 ? number() : 0;
    segment.keyEnd = set & 8 ? number() / 2 : plan::Segment::ownEnd;
    // Alone, and beside one that has nothing of it.
    plan.microBatches.push_back({{segment}, 0});
    plan.microBatches.push_back({{{1, 2, 3}, segment}, 0});
  }
  for (bool takes : {false, true}) {
    plan::RankProgram &program = plan.ranks.emplace_back();
    program.dynamicBytes = number();
    if (takes)
      program.places = {number() / 64 * 64, number() / 64 * 64, plan::noPlace,
                        number() / 64 * 64, number() / 64 * 64};
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
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    EXPECT_TRUE(again.ranks[rank].instructions ==
                plan.ranks[rank].instructions);
    EXPECT_TRUE(again.ranks[rank].places == plan.ranks[rank].places);
  }
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

//===----------------------------------------------------------------------===//
// Steps of several graphs
//===----------------------------------------------------------------------===//

using ::dyna::Box;
using ::dyna::SwitchPlace;

/// Nothing that does what it should, but within the words of exec.
TEST_F(PlanTranslationTest, EveryFieldOfSwitches) {
  std::mt19937 random(5);
  auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  auto box = [&] {
    return Box{{below(9), below(9)}, {below(1 << 20), below(1 << 20)}};
  };
  auto model = ::dyna::Model::create(::dyna::tinyManifest());
  ASSERT_TRUE(model.isOk()) << model.status().message();
  for (int round = 0; round < 40; ++round) {
    const bool gradients = below(2) == 1;
    std::vector<::dyna::SwitchTensor> tensors(below(5));
    for (::dyna::SwitchTensor &tensor : tensors) {
      tensor.parameter = below(model->parameters());
      tensor.part = gradients  ? ::dyna::ParameterPart::Gradient
                    : below(2) ? ::dyna::ParameterPart::Copy
                               : ::dyna::ParameterPart::Master;
      tensor.elementBytes = 1 + below(8);
      tensor.delivery =
          gradients ? ::dyna::Delivery::Once : ::dyna::Delivery::All;
      for (auto *boxes : {&tensor.from, &tensor.to})
        for (int count = below(3); count > 0; --count)
          boxes->push_back({below(9), box()});
    }
    ::dyna::SwitchPlan plan;
    plan.buckets.resize(below(4));
    for (::dyna::SwitchBucket &bucket : plan.buckets) {
      bucket.after = below(4) - 1;
      for (int count = below(5); count > 0; --count)
        bucket.transfers.push_back(
            {below(9), below(9), below(9), static_cast<SwitchPlace>(below(3)),
             static_cast<SwitchPlace>(1 + below(2)), box()});
    }
    OpBuilder builder(&context);
    OwningOpRef<exec::SwitchPlanOp> op = exec::importSwitch(
        builder, UnknownLoc::get(&context),
        {gradients ? exec::Moved::Gradients : exec::Moved::Values, "a",
         gradients ? "" : "b", "c"},
        *model, tensors, plan);
    EXPECT_EQ(op->getGraph(), "a");
    EXPECT_EQ(op->getHome(), "c");
    EXPECT_EQ(static_cast<bool>(op->getBehindAttr()), !gradients);
    const auto again = exec::exportTensors(*op, &*model);
    ASSERT_EQ(again.size(), tensors.size());
    for (size_t t = 0; t < tensors.size(); ++t)
      EXPECT_TRUE(again[t] == tensors[t]) << t;
    const ::dyna::SwitchPlan same = exec::exportSwitch(*op);
    ASSERT_EQ(same.buckets.size(), plan.buckets.size());
    for (size_t b = 0; b < plan.buckets.size(); ++b) {
      EXPECT_EQ(same.buckets[b].after, plan.buckets[b].after);
      EXPECT_TRUE(same.buckets[b].transfers == plan.buckets[b].transfers);
    }
  }
}

TEST_F(PlanTranslationTest, StepsOfRandomPhases) {
  std::mt19937 random(3);
  auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  auto model = ::dyna::Model::create(::dyna::tinyManifest());
  ASSERT_TRUE(model.isOk()) << model.status().message();
  for (int round = 0; round < 20; ++round) {
    plan::StepPlan step;
    int64_t number = 0;
    for (int phases = 1 + below(3); phases > 0; --phases) {
      plan::Phase &phase = step.phases.emplace_back();
      std::vector<int64_t> lengths;
      for (int count = 2 + below(4); count > 0; --count) {
        phase.samples.push_back(number++);
        lengths.push_back(1 + below(16));
      }
      ::dyna::Strategy strategy;
      strategy.dp = 1 + below(2);
      auto graph = ::dyna::ExecutableGraph::create(*model, strategy);
      ASSERT_TRUE(graph.isOk()) << graph.status().message();
      auto made = ::dyna::Planner(*graph).training(lengths, 100, {});
      ASSERT_TRUE(made.isOk()) << made.status().message();
      phase.plan = std::move(*made);
      phase.plan.name = "phase " + std::to_string(phases);
      if (below(2))
        phase.plan.lengths = lengths;
      plan::Instruction start;
      start.op = plan::Instruction::SWITCH_GRADS_START;
      start.phase = below(9);
      start.bucket = below(9);
      phase.plan.ranks[0].instructions.push_back(start);
      std::shuffle(phase.samples.begin(), phase.samples.end(), random);
    }
    Location location = UnknownLoc::get(&context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(location);
    ASSERT_TRUE(succeeded(exec::importStep(*module, location, "step", step)));
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    auto parsed = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(::dyna::writeStepPlan(
                  exec::exportStep(*parsed->getOps<exec::StepOp>().begin())),
              ::dyna::writeStepPlan(step));
  }
}

TEST_F(PlanTranslationTest, PhasesNeedNamesOfTheirOwn) {
  plan::StepPlan step;
  step.phases.resize(2);
  step.phases[0].plan.name = step.phases[1].plan.name = "p";
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  Location location = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  EXPECT_TRUE(failed(exec::importStep(*module, location, "step", step)));
  EXPECT_NE(message.find("phase 1 has the plan 'p'"), std::string::npos)
      << message;
  // Without names they get some.
  module = ModuleOp::create(location);
  step.phases[0].plan.name = step.phases[1].plan.name = "";
  auto made = exec::importStep(*module, location, "step", step);
  ASSERT_TRUE(succeeded(made)) << message;
  EXPECT_EQ(exec::plansOf(*made)[1].getSymName(), "step.phase1");
  EXPECT_EQ(exec::findPhase(exec::plansOf(*made)[1]).getPlan(), "step.phase1");
}

} // namespace
