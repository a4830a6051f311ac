//===- PlanFuzz.cpp - Messages that are plans -----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"
#include "test/fuzz/SmallManifest.h"

#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/plan/Strategy.h"
#include "runtime/planner/Planner.h"

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

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
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
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  google::protobuf::LogSilencer silencer;
  StatusOr<plan::Plan> read =
      readPlan({reinterpret_cast<const char *>(data), size});
  if (!read.isOk())
    return 0;
  const plan::Plan &plan = *read;
  bool isGood = false;
  for (const ExecutableGraph &graph : graphs()) {
    VerifyOptions options;
    options.dynamicLimit = INT64_C(1) << 30;
    Status status = verifyPlan(graph, plan, lengths, options);
    isGood = isGood || status.isOk();
    require(status.isOk() || !status.message().empty(),
            "a refusal says what is wrong");
    if (!status.isOk())
      continue;
    // What the interpreter relies on without looking.
    require(plan.rankCount() == graph.strategy().ranks(),
            "a good plan has a program for every rank");
    for (const plan::RankProgram &program : plan.ranks) {
      require(program.dynamicBytes >= 0 &&
                  program.dynamicBytes <= options.dynamicLimit,
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
                  "in a good plan instructions have the fields that are "
                  "theirs");
      }
    }
  }
  acceptedInputs += isGood;
  return 0;
}
