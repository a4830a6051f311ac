//===- PlanFuzz.cpp - Messages that are plans -----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"
#include "test/fuzz/SmallManifest.h"
#include "test/runtime/plan/NaiveSwitch.h"

#include "runtime/plan/model/Strategy.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/write/JoinPhases.h"

#include <google/protobuf/stubs/logging.h>

using namespace dyna;
using namespace dyna::test;

namespace {

const std::vector<int64_t> lengths = {5, 3, 7, 2};

/// One rank; two stages; two replicas of two shards each.
const std::vector<ExecutableGraph> &graphs() {
  static const std::vector<ExecutableGraph> *all = [] {
    StatusOr<Model> made = Model::create(makeManifestWithDegree());
    require(made.isOk(), "the model of the plans is good");
    auto *model = new Model(std::move(*made));
    auto *graphs = new std::vector<ExecutableGraph>;
    for (const char *text : {"dp=1", "pp=2,layers=2+1", "dp=2,tp=2,zero=1"}) {
      StatusOr<Strategy> strategy = parseStrategy(text);
      require(strategy.isOk(), "strategies are good");
      StatusOr<ExecutableGraph> graph =
          ExecutableGraph::create(*model, *strategy);
      require(graph.isOk(), graph.status().message().c_str());
      graphs->push_back(std::move(*graph));
    }
    return graphs;
  }();
  return *all;
}

/// Of two ranks: first one stage each, then home.
const SwitchTable &switches() {
  static const SwitchTable *table = [] {
    static const ExecutableGraph replicas = [] {
      auto made = ExecutableGraph::create(graphs()[0].model(),
                                          *parseStrategy("dp=2,zero=1"));
      require(made.isOk(), made.status().message().c_str());
      return std::move(*made);
    }();
    auto made = SwitchTable::create({&graphs()[1], &replicas}, 1, planNaively);
    require(made.isOk(), made.status().message().c_str());
    return new SwitchTable(std::move(*made));
  }();
  return *table;
}

/// Samples 0 and 2 under the first graph, or none of them.
plan::StepPlan switchedStep(bool isSwitched) {
  plan::StepPlan step;
  for (int g = isSwitched ? 0 : 1; g < 2; ++g) {
    plan::Phase &phase = step.phases.emplace_back();
    std::vector<int64_t> own;
    for (int64_t sample = 0; sample < 4; ++sample)
      if (!isSwitched || sample % 2 == g) {
        phase.samples.push_back(sample);
        own.push_back(lengths[sample]);
      }
    PlanOptions options;
    options.maxTokensPerMicroBatch = 8;
    options.switched = g != switches().home();
    auto plan = Planner(switches().graph(g)).training(own, 13, options);
    require(plan.isOk(), plan.status().message().c_str());
    phase.plan = std::move(*plan);
  }
  require(joinPhases(switches(), true, step).isOk(), "phases are joined");
  require(placePhases(switches(), {}, step).isOk(), "phases are placed");
  return step;
}

/// What the interpreter relies on without looking.
void requireGood(const ExecutableGraph &graph, const plan::Plan &plan,
                 int64_t limit) {
  require(plan.rankCount() == graph.strategy().ranks(),
          "a good plan has a program for every rank");
  for (const plan::RankProgram &program : plan.ranks) {
    require(program.dynamicBytes >= 0 && program.dynamicBytes <= limit,
            "a good plan fits the region");
    for (const plan::Instruction &i : program.instructions) {
      require(i.layer >= 0 && i.layer < graph.model().layers(),
              "a good plan names layers that exist");
      require(i.microBatch >= 0 && (!isPerMicroBatch(i.op) ||
                                    i.microBatch < plan.microBatchCount()),
              "a good plan names micro-batches that exist");
      for (int field = 0; field < fieldCount; ++field)
        require(hasField(i.op, static_cast<Field>(field)) ||
                    fieldOf(i, static_cast<Field>(field)) == 0,
                "in a good plan instructions have the fields that are theirs");
    }
  }
}

constexpr int64_t limit = INT64_C(1) << 30;

bool isGoodPlan(const plan::Plan &plan) {
  bool isGood = false;
  for (const ExecutableGraph &graph : graphs()) {
    VerifyOptions options;
    options.limits.assign(graph.ranks(), limit);
    Status status = verifyPlan(graph, plan, lengths, options);
    isGood = isGood || status.isOk();
    require(status.isOk() || !status.message().empty(),
            "a refusal says what is wrong");
    if (status.isOk())
      requireGood(graph, plan, limit);
  }
  return isGood;
}

bool isGoodStep(const plan::StepPlan &step) {
  auto proven =
      VerifiedStep::prove(switches(), step, lengths, 13, {limit, limit});
  require(proven.isOk() || !proven.status().message().empty(),
          "a refusal says what is wrong");
  if (!proven.isOk())
    return false;
  for (const VerifiedStep::Phase &phase : proven->phases()) {
    const plan::Plan &plan = phase.plan;
    requireGood(switches().graph(phase.switches.graph), plan, limit);
    for (int64_t sample : phase.samples)
      require(sample >= 0 && sample < 4,
              "a good step names samples that exist");
    for (const plan::RankProgram &program : plan.ranks)
      for (const plan::Instruction &i : program.instructions)
        if (const ExchangeOp op = exchangeOf(i.op); op.isSwitch()) {
          require(i.phase >= 0 && i.phase < proven->phaseCount(),
                  "a good step names phases that exist");
          const SwitchTable::PhaseSwitches &of =
              proven->phases()[i.phase].switches;
          const GraphSwitch *way =
              op.kind == ExchangeKind::ValueSwitch ? of.values : of.gradients;
          require(way && i.bucket >= 0 && i.bucket < way->buckets(),
                  "a good step names buckets that exist");
        }
  }
  return true;
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  // Ranks share programs in a file, but have their own in memory.
  fixedBytes +=
      protobufStringBytes + 2 * maxPlanInstructions * sizeof(plan::Instruction);
  std::vector<std::string> seeds;
  PlanOptions options;
  options.maxTokensPerMicroBatch = 8;
  options.inFlight = 2;
  for (const ExecutableGraph &graph : graphs()) {
    StatusOr<plan::Plan> plan = Planner(graph).training(lengths, 13, options);
    require(plan.isOk(), plan.status().message().c_str());
    seeds.push_back(writePlan(*plan));
    plan = Planner(graph).evaluation(lengths, 13, options);
    require(plan.isOk(), "plans to evaluate are made");
    seeds.push_back(writePlan(*plan));
  }
  for (bool isSwitched : {false, true}) {
    require(isGoodStep(switchedStep(isSwitched)),
            "steps of several graphs are good");
    seeds.push_back(writeStepPlan(switchedStep(isSwitched)));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  google::protobuf::LogSilencer silencer;
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  StatusOr<plan::StepPlan> read = readStepPlan(bytes);
  StatusOr<plan::Plan> alone = readPlan(bytes);
  require(!alone.isOk() || (read.isOk() && read->phaseCount() == 1),
          "a plan is a step of one phase");
  if (!read.isOk())
    return 0;
  require(writeStepPlan(*read) == bytes ||
              (alone.isOk() && read->phaseCount() == 1),
          "what is read has one form");
  bool isGood = isGoodStep(*read);
  if (alone.isOk())
    isGood |= isGoodPlan(*alone);
  acceptedInputs += isGood;
  return 0;
}
