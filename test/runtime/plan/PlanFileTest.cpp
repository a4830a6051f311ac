//===- PlanFileTest.cpp - Plans as bytes ----------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/Plan.pb.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/write/JoinPhases.h"
#include "test/runtime/plan/NaiveSwitch.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

bool isSame(const plan::Plan &a, const plan::Plan &b) {
  bool same = a.manifestHash == b.manifestHash && a.name == b.name &&
              a.targetTokens == b.targetTokens && a.lengths == b.lengths &&
              a.fallback == b.fallback && a.rankCount() == b.rankCount() &&
              a.microBatches == b.microBatches;
  for (int rank = 0; same && rank < a.rankCount(); ++rank)
    same = a.ranks[rank].dynamicBytes == b.ranks[rank].dynamicBytes &&
           a.ranks[rank].places == b.ranks[rank].places &&
           a.ranks[rank].instructions == b.ranks[rank].instructions;
  return same;
}

plan::Plan planOf(const char *strategy, plan::Recompute mode, bool trains) {
  ExecutableGraph graph =
      *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(strategy));
  PlanOptions options = tinyPlanOptions();
  options.recompute = {mode};
  return trains ? *Planner(graph).training(equalLengths, 100, options)
                : *Planner(graph).evaluation(equalLengths, 100, options);
}

TEST(PlanFileTest, PlansComeBackAsTheyWere) {
  for (const char *strategy : {"dp=1", "dp=2,tp=2,pp=2,layers=2+3,zero=1"})
    for (auto mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL})
      for (bool trains : {false, true}) {
        plan::Plan plan = planOf(strategy, mode, trains);
        plan.name = "a name";
        plan.fallback = "another schedule";
        plan.lengths = equalLengths;
        plan.microBatches[0].segments[0].begin = trains;
        for (Instruction &i : plan.ranks[0].instructions)
          if (i.op == Instruction::REDUCE_GRADS_START)
            i.parameter = 1 + i.layer % 2;
        StatusOr<plan::Plan> again = readPlan(writePlan(plan));
        ASSERT_TRUE(again.isOk()) << again.status().message();
        EXPECT_TRUE(isSame(plan, *again));
        plan.ranks[0].instructions[1].places[1] += 64;
        EXPECT_FALSE(isSame(plan, *again));
      }
}

/// Every field of a segment is compared and comes back, and only fields that are not
/// the default take bytes.
TEST(PlanFileTest, FieldsOfSegmentsComeBack) {
  const plan::Plan plan = planOf("dp=1", plan::RECOMPUTE_NONE, true);
  const plan::Segment whole = plan.microBatches[0].segments[0];
  std::vector<plan::Segment> others(8, whole);
  others[0].sample += 1;
  others[1].begin = 2;
  others[2].length += 1;
  others[3].stream = 1;
  others[4].keyStream = 2;
  others[5].keyBegin = 1;
  others[6].keyEnd = whole.length + 1;
  others[7] = {7, 3, 4, 1, 2, 5, 6};
  for (const plan::Segment &other : others) {
    plan::Plan changed = plan;
    changed.microBatches[0].segments[0] = other;
    EXPECT_FALSE(changed.microBatches == plan.microBatches);
    StatusOr<plan::Plan> again = readPlan(writePlan(changed));
    ASSERT_TRUE(again.isOk()) << again.status().message();
    EXPECT_TRUE(isSame(changed, *again));
  }
  plan::file::Plan file;
  ASSERT_TRUE(file.ParseFromString(writePlan(plan)));
  for (const plan::file::MicroBatch &microBatch : file.micro_batches())
    EXPECT_EQ(microBatch.begins_size() + microBatch.streams_size() +
                  microBatch.key_streams_size() + microBatch.key_begins_size() +
                  microBatch.key_ends_size(),
              0);
  // The usual end may be said in numbers: it means the same keys.
  plan::Plan same = plan;
  same.microBatches[0].segments[0].keyEnd = whole.length;
  EXPECT_TRUE(same.microBatches == plan.microBatches);
}

// What several ranks do alike is there once.
TEST(PlanFileTest, ShardsShareTheirPrograms) {
  plan::file::Plan file;
  ASSERT_TRUE(file.ParseFromString(
      writePlan(planOf("tp=2,pp=2,layers=2+3", plan::RECOMPUTE_NONE, true))));
  EXPECT_EQ(file.ranks_size(), 4);
  EXPECT_EQ(file.programs_size(), 2);
}

/// 65,536 tokens of instruction data on 32 ranks: the share of samples below
/// each length, and between them a straight line in the logarithm.
TEST(PlanFileTest, PlansAreSmall) {
  TinyOptions tiny;
  tiny.blocks = 32;
  tiny.hidden = 1024;
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_facts()->set_positions(0);
  Model model = *Model::create(manifest);
  const double shares[] = {0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
  const double tokens[] = {1, 14, 30, 56, 102, 212, 402, 631, 1100};
  std::mt19937_64 random(7);
  std::vector<int64_t> lengths;
  for (int64_t left = 65536; left > 0; left -= lengths.back()) {
    double u = static_cast<double>(random() >> 11) * 0x1p-53;
    int above = 1;
    while (above < 8 && u > shares[above])
      ++above;
    double part = std::min(1.0, (u - shares[above - 1]) /
                                    (shares[above] - shares[above - 1]));
    double length = std::exp(std::log(tokens[above - 1]) * (1 - part) +
                             std::log(tokens[above]) * part);
    lengths.push_back(
        std::min(std::max<int64_t>(std::llround(length), 1), left));
  }
  ExecutableGraph graph = *ExecutableGraph::create(
      model, *parseStrategy("dp=4,pp=8,layers=4+4+4+4+4+4+5+5"));
  PlanOptions options = tinyPlanOptions();
  options.maxTokensPerMicroBatch = 1100;
  plan::Plan plan = *Planner(graph).training(lengths, 65536, options);
  EXPECT_GE(plan.microBatchCount(), 60);
  EXPECT_LE(writePlan(plan).size(), 64u << 10);
}

// Files outlive versions: these bytes are what they were. Numbers of rows in
// Instructions.def are among them.
TEST(PlanFileTest, TheBytesOfAPlanStay) {
  plan::Plan plan;
  plan.manifestHash = 0x0102030405060708;
  plan.targetTokens = 3;
  plan.name = "p";
  plan.lengths = {4};
  plan.microBatches.push_back({{{0, 0, 4}}, 0});
  for (int rank = 0; rank < 2; ++rank) {
    plan::RankProgram &program = plan.ranks.emplace_back();
    program.dynamicBytes = 256;
    auto add = [&](Instruction::Op op, int layer, plan::Recompute recompute,
                   std::array<int64_t, 3> places) {
      Instruction &i = program.instructions.emplace_back();
      i.op = op;
      i.layer = layer;
      i.recompute = recompute;
      i.places = places;
    };
    add(Instruction::LOAD, 0, plan::RECOMPUTE_NONE, {0, 64, -1});
    add(Instruction::FORWARD, 2, plan::RECOMPUTE_FULL, {-1, 128, -1});
    add(Instruction::GATHER_PARAMS_WAIT, 1, plan::RECOMPUTE_NONE, {-1, -1, -1});
  }
  const unsigned char bytes[] = {
      0x09, 8,  7,    6,    5,    4,    3,  2, 1,             // hash
      0x12, 6,  0x0a, 1,    0,    0x1a, 1,  4,                // micro-batch
      0x1a, 16, 0x0a, 3,    1,    2,    24,                   // program
      0x12, 2,  2,    1,    0x1a, 2,    0,  0, 0x22, 1, 2,    //
      0x22, 10, 0x10, 0x80, 2,    0x1a, 5,  1, 2,    0, 3, 0, // rank 0
      0x22, 10, 0x10, 0x80, 2,    0x1a, 5,  1, 2,    0, 3, 0, // rank 1
      0x28, 3,  0x32, 1,    'p',  0x3a, 1,  4};
  EXPECT_EQ(writePlan(plan),
            std::string(reinterpret_cast<const char *>(bytes), sizeof(bytes)));
}

TEST(PlanFileTest, OtherBytesAreRefused) {
  struct Case {
    const char *message;
    std::function<void(plan::file::Plan &)> spoil;
  };
  const Case cases[] = {
      {"a micro-batch has 1 samples, but 0 begins and 0 lengths",
       [](auto &f) { f.mutable_micro_batches(0)->clear_lengths(); }},
      {"an instruction of the unknown number 0",
       [](auto &f) {
         (*f.mutable_programs(0)->mutable_instructions())[0] = 0;
       }},
      {"an instruction of the unknown number 255",
       [](auto &f) {
         (*f.mutable_programs(0)->mutable_instructions())[0] = '\xff';
       }},
      {"layers, too few for its instructions",
       [](auto &f) { f.mutable_programs(0)->mutable_layers()->RemoveLast(); }},
      {"micro-batches, too few for its instructions",
       [](auto &f) {
         f.mutable_programs(0)->mutable_micro_batches()->RemoveLast();
       }},
      {"recompute modes, too few for its instructions",
       [](auto &f) {
         f.mutable_programs(0)->mutable_recompute()->RemoveLast();
       }},
      {"a recompute mode of the unknown number 3",
       [](auto &f) { f.mutable_programs(0)->set_recompute(0, 3); }},
      {"parameters, too few for its instructions",
       [](auto &f) { f.mutable_programs(0)->add_parameters(1); }},
      {"a rank runs program 2 of 2",
       [](auto &f) { f.mutable_ranks(0)->set_program(2); }},
      {"a rank runs program -1 of 2",
       [](auto &f) { f.mutable_ranks(0)->set_program(-1); }},
      {"places, too few for its instructions",
       [](auto &f) { f.mutable_ranks(0)->mutable_places()->RemoveLast(); }},
      {"a block lies at place -3",
       [](auto &f) { f.mutable_ranks(0)->set_places(0, -3); }},
      {"a block lies at place 9223372036854775807",
       [](auto &f) { f.mutable_ranks(0)->set_places(0, INT64_MAX); }},
      // What would be lost.
      {"say more than this version knows",
       [](auto &f) { f.mutable_ranks(0)->add_places(1); }},
      {"say more than this version knows",
       [](auto &f) { f.mutable_programs(0)->add_layers(1); }},
      {"say more than this version knows",
       [](auto &f) { *f.add_programs() = f.programs(0); }},
      {"say more than this version knows",
       [](auto &f) { f.mutable_micro_batches(0)->add_begins(0); }},
      {"has more than 8388608 instructions",
       [](auto &f) {
         f.mutable_programs(0)->Clear();
         f.mutable_programs(0)->mutable_instructions()->assign(
             1 << 20, static_cast<char>(Instruction::COMBINE_NORM));
         f.mutable_ranks()->Clear();
         for (int rank = 0; rank < 9; ++rank)
           f.add_ranks();
       }},
  };
  const std::string good =
      writePlan(planOf("pp=2,layers=3+2", plan::RECOMPUTE_SELECTIVE, true));
  for (const Case &bad : cases) {
    plan::file::Plan file;
    ASSERT_TRUE(file.ParseFromString(good));
    bad.spoil(file);
    StatusOr<plan::Plan> read = readPlan(file.SerializeAsString());
    ASSERT_FALSE(read.isOk()) << bad.message;
    EXPECT_THAT(read.status().message(), HasSubstr(bad.message));
    EXPECT_EQ(read.status().code(), StatusCode::InvalidArgument);
  }
  // A field of number 15, as a later version may have, and no message at all.
  for (const std::string &bytes :
       {good + std::string("\x78\x01", 2), good.substr(0, good.size() - 1),
        std::string("\xff\xff", 2)})
    EXPECT_FALSE(readPlan(bytes).isOk());
}

//===----------------------------------------------------------------------===//
// Steps of several graphs
//===----------------------------------------------------------------------===//

bool isSame(const plan::StepPlan &a, const plan::StepPlan &b) {
  bool same = a.phaseCount() == b.phaseCount();
  for (int k = 0; same && k < a.phaseCount(); ++k)
    same = isSame(a.phases[k].plan, b.phases[k].plan) &&
           a.phases[k].plan.graph == b.phases[k].plan.graph &&
           a.phases[k].samples == b.phases[k].samples;
  return same;
}

/// Samples 1, 3, 4 and 6 under one graph, the others under another.
plan::StepPlan switchedStep() {
  const ExecutableGraph first = *ExecutableGraph::create(
                            modelWithDegrees(), *parseStrategy("dp=2,tp=2")),
                        home = *ExecutableGraph::create(
                            modelWithDegrees(), *parseStrategy("dp=4,zero=1"));
  plan::StepPlan step;
  for (const ExecutableGraph *graph : {&first, &home}) {
    PlanOptions options = tinyPlanOptions();
    options.switched = graph != &home;
    plan::Phase &phase = step.phases.emplace_back();
    phase.plan = *Planner(*graph).training({16, 16, 16, 16}, 100, options);
    phase.samples = graph == &home ? std::vector<int64_t>{0, 2, 5, 7}
                                   : std::vector<int64_t>{1, 3, 4, 6};
  }
  auto table = SwitchTable::create({&first, &home}, 1, planNaively);
  EXPECT_TRUE(table.isOk()) << table.status().message();
  EXPECT_TRUE(joinPhases(*table, true, step).isOk());
  EXPECT_TRUE(placePhases(*table, {}, step).isOk());
  return step;
}

TEST(PlanFileTest, StepsComeBackAsTheyWere) {
  const plan::StepPlan step = switchedStep();
  auto again = readStepPlan(writeStepPlan(step));
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_TRUE(isSame(step, *again));
  again->phases[1].samples[0] = 9;
  EXPECT_FALSE(isSame(step, *again));
  EXPECT_THAT(readPlan(writeStepPlan(step)).status().message(),
              HasSubstr("they are a step of 2 graphs"));
}

TEST(PlanFileTest, StepsOfOnePhaseAreItsPlan) {
  plan::StepPlan step;
  step.phases.push_back(
      {planOf("pp=2,layers=3+2", plan::RECOMPUTE_NONE, true), {}});
  for (int64_t sample = 0; sample < 8; ++sample)
    step.phases[0].samples.push_back(sample);
  EXPECT_EQ(writeStepPlan(step), writePlan(step.phases[0].plan));
  auto again = readStepPlan(writePlan(step.phases[0].plan));
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_TRUE(isSame(step, *again));
  // Of another mini-batch, or in another order.
  for (int64_t other : {int64_t{8}, int64_t{6}}) {
    std::swap(step.phases[0].samples[6], step.phases[0].samples[7]);
    step.phases[0].samples[7] = other;
    EXPECT_NE(writeStepPlan(step), writePlan(step.phases[0].plan));
    again = readStepPlan(writeStepPlan(step));
    ASSERT_TRUE(again.isOk()) << again.status().message();
    EXPECT_TRUE(isSame(step, *again));
  }
}

TEST(PlanFileTest, OtherBytesOfStepsAreRefused) {
  struct Case {
    const char *message;
    std::function<void(plan::file::Plan &)> spoil;
  };
  const Case cases[] = {
      {"an instruction of the unknown number 0",
       [](auto &f) {
         (*f.mutable_phases(1)
               ->mutable_plan()
               ->mutable_programs(0)
               ->mutable_instructions())[0] = 0;
       }},
      {"buckets, too few for its instructions",
       [](auto &f) {
         f.mutable_phases(0)
             ->mutable_plan()
             ->mutable_programs(0)
             ->mutable_buckets()
             ->RemoveLast();
       }},
      // A plan beside its phases, a phase of phases, a step of one phase that is
      // a plan.
      {"say more than this version knows",
       [](auto &f) { f.set_target_tokens(100); }},
      {"say more than this version knows",
       [](auto &f) { f.mutable_phases(0)->mutable_plan()->add_phases(); }},
      {"say more than this version knows",
       [](auto &f) {
         f.mutable_phases()->RemoveLast();
         for (int i = 0; i < 4; ++i)
           f.mutable_phases(0)->set_samples(i, i);
       }},
      {"has more than 8388608 instructions",
       [](auto &f) {
         for (int phase = 0; phase < 2; ++phase) {
           plan::file::Plan &plan = *f.mutable_phases(phase)->mutable_plan();
           plan.mutable_programs(0)->Clear();
           plan.mutable_programs(0)->mutable_instructions()->assign(
               1 << 20, static_cast<char>(Instruction::COMBINE_NORM));
           plan.mutable_ranks()->Clear();
           for (int rank = 0; rank < 5; ++rank)
             plan.add_ranks();
         }
       }},
  };
  const std::string good = writeStepPlan(switchedStep());
  ASSERT_TRUE(readStepPlan(good).isOk());
  for (const Case &bad : cases) {
    plan::file::Plan file;
    ASSERT_TRUE(file.ParseFromString(good));
    bad.spoil(file);
    StatusOr<plan::StepPlan> read = readStepPlan(file.SerializeAsString());
    ASSERT_FALSE(read.isOk()) << bad.message;
    EXPECT_THAT(read.status().message(), HasSubstr(bad.message));
    EXPECT_EQ(read.status().code(), StatusCode::InvalidArgument);
  }
  for (const std::string &bytes :
       {good + std::string("\x78\x01", 2), good.substr(0, good.size() - 1)})
    EXPECT_FALSE(readStepPlan(bytes).isOk());
}

} // namespace
