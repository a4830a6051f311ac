//===- SimBench.cpp - What playing a plan costs -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plays the plans of mini-batches of lognormal lengths on a described cluster,
// one thread: millions of instructions a second, once with all that a plan says
// being looked up (`whole`), and once what is left of it under other conditions
// (`again`). One line for each strategy and setting; medians of 15.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/sim/PlanTimes.h"
#include "test/runtime/executor/TinyModel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>

using namespace dyna;

namespace {

constexpr int layers = 34, repeats = 15;
constexpr int64_t tokensPerMicroBatch = 1400;

/// Lognormal(4.5, 1.1) in [8, 8192].
std::vector<int64_t> drawLengths(int64_t tokens) {
  std::vector<int64_t> lengths;
  for (uint64_t i = 0; tokens > 0; ++i) {
    double u, v;
    dyna_parameter_uniforms(11, i, &u, &v);
    double normal =
        std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
    int64_t length = std::llround(std::clamp(std::exp(4.5 + 1.1 * normal), 8.0,
                                             double(tokensPerMicroBatch)));
    lengths.push_back(std::min(length, tokens));
    tokens -= lengths.back();
  }
  return lengths;
}

double medianSeconds(const std::function<bool()> &work) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    auto begin = std::chrono::steady_clock::now();
    if (!work())
      return -1;
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[repeats / 2];
}

struct Setting {
  const char *name;
  SimulationOptions options;
};

std::vector<Setting> settings() {
  std::vector<Setting> all = {{"devices", {}},
                              {"one stream", {}},
                              {"shared links", {}},
                              {"host", {}},
                              {"noise", {}}};
  all[1].options.streams = SimulationOptions::Streams::One;
  all[2].options.sharing = SimulationOptions::Sharing::Nodes;
  all[3].options.ranks = SimulationOptions::Ranks::Host;
  all[4].options.noise = 0.05;
  return all;
}

int measure(const Model &model, const char *strategy, int64_t tokens) {
  auto table = CostTable::described("a100-40g:64x8");
  if (!table.isOk())
    return std::fprintf(stderr, "%s\n", table.status().message().c_str()), 1;
  CostModel costs = *CostModel::create(model, std::move(*table));
  auto graph = ExecutableGraph::create(model, *parseStrategy(strategy));
  if (!graph.isOk())
    return std::fprintf(stderr, "%s\n", graph.status().message().c_str()), 1;
  PlanOptions options;
  options.maxTokensPerMicroBatch = tokensPerMicroBatch;
  options.schedule = Schedule::OneForwardOneBackward;
  auto plan =
      Planner(*graph, costs).training(drawLengths(tokens), tokens, options);
  if (!plan.isOk())
    return std::fprintf(stderr, "%s\n", plan.status().message().c_str()), 1;
  PlanWork work(*graph, *plan, costs);
  const double instructions = work.stepCount();
  for (const Setting &setting : settings()) {
    double whole = medianSeconds(
        [&] { return timePlan(*graph, *plan, costs, setting.options).isOk(); });
    double again =
        medianSeconds([&] { return playPlan(work, setting.options).isOk(); });
    if (whole < 0 || again < 0)
      return std::fprintf(stderr, "%s: not played\n", setting.name), 1;
    std::printf("{\"what\": \"sim\", \"strategy\": \"%s\", \"setting\": "
                "\"%s\", \"ranks\": %d, \"micro_batches\": %d, "
                "\"instructions\": %.0f, \"repeats\": %d, \"whole_ms\": %.3f, "
                "\"again_ms\": %.3f, \"whole_million_per_second\": %.2f, "
                "\"again_million_per_second\": %.2f}\n",
                strategy, setting.name, graph->ranks(), plan->microBatchCount(),
                instructions, repeats, whole * 1e3, again * 1e3,
                instructions / whole / 1e6, instructions / again / 1e6);
  }
  return 0;
}

} // namespace

int main() {
  TinyOptions tiny;
  tiny.blocks = layers - 2;
  tiny.hidden = 8;
  tiny.degrees = {{8, true}};
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_facts()->set_positions(0);
  Model model = *Model::create(manifest);
  return measure(model, "dp=4,pp=8,layers=5+4+4+4+4+4+4+5,zero=1", 65536) +
         measure(model, "dp=4,tp=8,sp=1,pp=8,layers=5+4+4+4+4+4+4+5,zero=1",
                 65536) +
         measure(model, "pp=8,layers=5+4+4+4+4+4+4+5", 1 << 20);
}
