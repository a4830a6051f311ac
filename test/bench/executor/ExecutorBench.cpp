//===- ExecutorBench.cpp - What an instruction costs beside its work ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model whose layers do next to nothing, on micro-batches of one token: what
// is left is the executor's own time. One line for one rank, one for two stages
// whose messages are counted as instructions.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/open/OpenProgram.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/runtime/executor/TinyRun.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace dyna;

static double secondsNow() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

static int measure(const char *strategy) {
  TinyOptions tiny;
  tiny.blocks = 8;
  TinyProgram program(tiny);
  Model model = *openProgram(program.program());
  auto graph = ExecutableGraph::create(model, *parseStrategy(strategy));
  if (!graph.isOk())
    return std::fprintf(stderr, "%s\n", graph.status().message().c_str()), 1;
  Planner planner(*graph);
  PlanOptions options;
  options.maxTokensPerMicroBatch = 1;
  MiniBatch batch = tinyBatch(std::vector<int64_t>(64, 1));
  auto plan = planner.training(batch.lengths(), batch.targets, options);
  auto bytes = planner.largestDynamicBytes(options, true);
  auto variant = chooseVariant(program.program(), "", 0);
  std::vector<RankResources> ranks(graph->ranks());
  auto transports = makeThreadTransports(graph->ranks());
  for (int rank = 0; rank < graph->ranks(); ++rank) {
    ranks[rank].rank = rank;
    ranks[rank].device = makeTestDevice();
    ranks[rank].transport = std::move(transports[rank]);
    ranks[rank].dynamicBytes =
        std::max((*bytes)[rank], plan->ranks[rank].dynamicBytes);
  }
  auto team = RankTeam::create({{&*graph}}, **variant, std::move(ranks), {});
  if (!team.isOk())
    return std::fprintf(stderr, "%s\n", team.status().message().c_str()), 1;
  auto proven = proveAlone(*graph, *plan, batch);
  if (!proven.isOk())
    return std::fprintf(stderr, "%s\n", proven.status().message().c_str()), 1;
  int instructions = 0;
  for (const plan::RankProgram &one : plan->ranks)
    instructions = std::max(instructions, one.count());
  std::vector<double> times;
  for (int repeat = 0; repeat < 60; ++repeat) {
    StepResult result;
    double begin = secondsNow();
    Status status =
        (*team)->run(*proven, batch, TinyRun::scalars(repeat), result);
    times.push_back(secondsNow() - begin);
    if (!status.isOk())
      return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;
  }
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2];
  std::printf("{\"what\": \"executor\", \"strategy\": \"%s\", "
              "\"instructions\": %d, \"median_ms\": %.3f, "
              "\"us_per_instruction\": %.3f, \"limit_us\": 2}\n",
              strategy, instructions, median * 1e3,
              median * 1e6 / instructions);
  return 0;
}

int main() { return measure("dp=1") + measure("pp=2,layers=5+5"); }
