//===- StoreFuzz.cpp - What a store gives as a rank's plan ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Any bytes are read as they are, and once more with the checksum that they
// should have: what is behind it must hold for all that anybody can put there.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"
#include "test/fuzz/SmallManifest.h"
#include "test/runtime/plan/NaiveSwitch.h"

#include "runtime/base/file/OutputFile.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/write/JoinPhases.h"
#include "runtime/store/PlanEntry.h"

#include <google/protobuf/stubs/logging.h>

using namespace dyna;
using namespace dyna::test;

namespace {

const std::vector<int64_t> lengths = {5, 3};
constexpr int64_t targets = 6;
constexpr size_t headerBytes = 32, checksumAt = 24;

/// Of two ranks: two stages, and two replicas.
const std::vector<ExecutableGraph> &graphs() {
  static const std::vector<ExecutableGraph> *made = [] {
    StatusOr<Model> model = Model::create(makeManifestWithDegree());
    require(model.isOk(), "the model of the plans is good");
    auto *kept = new Model(std::move(*model));
    auto *graphs = new std::vector<ExecutableGraph>;
    for (const char *text : {"pp=2,layers=2+1", "dp=2,zero=1"}) {
      StatusOr<Strategy> strategy = parseStrategy(text);
      require(strategy.isOk(), "strategies are good");
      auto graph = ExecutableGraph::create(*kept, *strategy);
      require(graph.isOk(), "graphs are good");
      graphs->push_back(std::move(*graph));
    }
    return graphs;
  }();
  return *made;
}
const ExecutableGraph &graph() { return graphs().front(); }

/// The replicas are home.
const SwitchTable &switches() {
  static const SwitchTable *table = [] {
    auto made =
        SwitchTable::create({&graphs()[0], &graphs()[1]}, 1, planNaively);
    require(made.isOk(), "switches are planned");
    return new SwitchTable(std::move(*made));
  }();
  return *table;
}

/// Sample 0 under the stages, sample 1 at home.
plan::StepPlan smallStep() {
  plan::StepPlan step;
  for (int64_t g = 0; g < 2; ++g) {
    plan::Phase &phase = step.phases.emplace_back();
    phase.samples = {g};
    PlanOptions options;
    options.switched = g == 0;
    auto plan = Planner(graphs()[g]).training({lengths[g]}, targets, options);
    require(plan.isOk(), "phases are planned");
    phase.plan = std::move(*plan);
  }
  require(joinPhases(switches(), true, step).isOk(), "phases are joined");
  require(placePhases(switches(), {}, step).isOk(), "phases are placed");
  return step;
}

/// Updates nothing, evaluates nothing: the programs are empty.
plan::Plan smallPlan() {
  plan::Plan plan;
  plan.manifestHash = graph().model().hash();
  plan.graph = graph().name();
  plan.ranks.resize(2);
  return plan;
}

/// Whether it is a part of one of the ranks.
bool look(std::string_view bytes) {
  bool isRead = false;
  for (int rank = 0; rank < 2; ++rank) {
    StatusOr<PlanEntry> entry = readPlanEntry(bytes, 0, rank);
    if (!entry.isOk()) {
      require(!entry.status().message().empty(),
              "a refusal says what is wrong");
      continue;
    }
    isRead = true;
    // Proven or refused, for a mini-batch and for none.
    auto step = VerifiedStep::proveRanks(switches(), entry->step, {rank},
                                         lengths, targets, {});
    for (int k = 0; step.isOk() && k < step->phaseCount(); ++k)
      require(step->covers(rank) && !step->covers(1 - rank),
              "parts of phases are proven for their rank alone");
    for (const auto &samples : {lengths, std::vector<int64_t>()}) {
      auto proven = VerifiedStep::proveRanks(
          SwitchTable::ofOne(graph()), stepOf(entry->step.phases.front().plan),
          {rank}, samples,
          /*targets=*/-1, {INT64_C(1) << 30, INT64_C(1) << 30});
      require(!proven.isOk() ||
                  (proven->covers(rank) && !proven->covers(1 - rank) &&
                   proven->homePlan().rankCount() == 2),
              "a part is proven for its rank alone");
    }
  }
  return isRead;
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  // Ranks share programs in a file, but have their own in memory.
  fixedBytes +=
      protobufStringBytes + 2 * maxPlanInstructions * sizeof(plan::Instruction);
  std::vector<std::string> seeds;
  plan::Plan plan = smallPlan();
  for (int rank = 0; rank < 2; ++rank)
    seeds.push_back(writePlanEntry(stepOf(plan), 0, rank, 0.5));
  plan.microBatches.resize(1);
  plan.microBatches[0].segments = {{0, 0, 5}, {1, 0, 3}};
  plan.targetTokens = targets;
  plan.ranks[0].dynamicBytes = 4096;
  plan::Instruction load;
  load.op = plan::Instruction::LOAD;
  load.places[0] = 0;
  plan.ranks[0].instructions.push_back(load);
  seeds.push_back(writePlanEntry(stepOf(plan), 0, 0, 0));
  for (int rank = 0; rank < 2; ++rank) {
    seeds.push_back(writePlanEntry(smallStep(), 0, rank, 0.5));
    auto entry = readPlanEntry(seeds.back(), 0, rank);
    require(entry.isOk() &&
                VerifiedStep::proveRanks(switches(), entry->step, {rank},
                                         lengths, targets, {})
                    .isOk(),
            "parts of good steps are good");
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  google::protobuf::LogSilencer silencer;
  std::string bytes(reinterpret_cast<const char *>(data), size);
  bool isRead = look(bytes);
  acceptedInputs += isRead;
  if (size < headerBytes)
    return 0;
  uint64_t sum = Checksum::of(std::string_view(bytes).substr(headerBytes));
  for (size_t i = 0; i < sizeof sum; ++i)
    bytes[checksumAt + i] = static_cast<char>(sum >> (8 * i));
  acceptedInputs += !isRead && look(bytes);
  return 0;
}
