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

#include "runtime/base/OutputFile.h"
#include "runtime/plan/VerifiedPlan.h"
#include "runtime/store/PlanEntry.h"

#include <google/protobuf/stubs/logging.h>

using namespace dyna;
using namespace dyna::test;

namespace {

const std::vector<int64_t> lengths = {5, 3};
constexpr size_t headerBytes = 32, checksumAt = 24;

const ExecutableGraph &graph() {
  static const ExecutableGraph *made = [] {
    StatusOr<Model> model = Model::create(makeManifestWithDegree());
    require(model.isOk(), "the model of the plans is good");
    StatusOr<Strategy> strategy = parseStrategy("pp=2,layers=2+1");
    require(strategy.isOk(), "the strategy is good");
    auto graph =
        ExecutableGraph::create(*new Model(std::move(*model)), *strategy);
    require(graph.isOk(), "the graph is good");
    return new ExecutableGraph(std::move(*graph));
  }();
  return *made;
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
    for (const auto &samples : {lengths, std::vector<int64_t>()}) {
      auto proven = VerifiedPlan::proveRanks(graph(), entry->plan, {rank},
                                             samples, {INT64_C(1) << 30});
      require(!proven.isOk() ||
                  (proven->covers(rank) && !proven->covers(1 - rank) &&
                   proven->plan().rankCount() == 2),
              "a part is proven for its rank alone");
    }
  }
  return isRead;
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  std::vector<std::string> seeds;
  plan::Plan plan = smallPlan();
  for (int rank = 0; rank < 2; ++rank)
    seeds.push_back(writePlanEntry(plan, 0, rank, 0.5));
  plan.microBatches.resize(1);
  plan.microBatches[0].segments = {{0, 0, 5}, {1, 0, 3}};
  plan.targetTokens = 6;
  plan.ranks[0].dynamicBytes = 4096;
  plan::Instruction load;
  load.op = plan::Instruction::LOAD;
  load.places[0] = 0;
  plan.ranks[0].instructions.push_back(load);
  seeds.push_back(writePlanEntry(plan, 0, 0, 0));
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
