//===- PlannerBench.cpp - What planning a mini-batch costs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans and verifies mini-batches of 65,536 tokens a replica, in lengths drawn
// from the quantiles of GPT-2 token counts of two public collections: a
// FLAN-like mixture of tasks, and source files. One line per strategy and
// collection; `imbalance` is the largest micro-batch's work over the mean.
// Before that plans by every batching; then what the planner is made of, alone:
// MicroBatchBench.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/graph/Planner.h"
#include "test/bench/planner/AssignBench.h"
#include "test/bench/planner/LognormalLengths.h"
#include "test/bench/planner/MicroBatchBench.h"
#include "test/bench/planner/ScheduleBench.h"
#include "test/runtime/executor/TinyModel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace dyna;

namespace {

struct Collection {
  const char *name;
  double tokens[9];
};
constexpr double shares[9] = {0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
const Collection collections[] = {
    {"multi-task", {1, 14, 30, 56, 102, 212, 402, 631, 1792}},
    {"code", {1, 21, 100, 261, 740, 2247, 6228, 11461, 32768}}};

constexpr int64_t longest = 8192, tokensPerReplica = 65536;
constexpr int blocks = 96;

double drawLength(const Collection &from, uint64_t index) {
  double u, unused;
  dyna_parameter_uniforms(7, index, &u, &unused);
  int above = 1;
  while (above < 8 && u > shares[above])
    ++above;
  double share = std::min(1.0, (u - shares[above - 1]) /
                                   (shares[above] - shares[above - 1]));
  return std::exp(std::log(from.tokens[above - 1]) * (1 - share) +
                  std::log(from.tokens[above]) * share);
}

std::vector<int64_t> drawLengths(const Collection &from, int64_t tokens) {
  std::vector<int64_t> lengths;
  for (uint64_t index = 0; tokens > 0; ++index) {
    double length = drawLength(from, index);
    int64_t cut = std::min({std::llround(length), longest * 1LL, tokens * 1LL});
    lengths.push_back(cut);
    tokens -= cut;
  }
  return lengths;
}

/// The largest micro-batch beside their mean, by the flops of one forward.
double imbalance(const Model &model, const plan::Plan &plan) {
  double largest = 0, sum = 0;
  for (const plan::MicroBatch &microBatch : plan.microBatches) {
    double work = 0;
    for (int l = 0; l < model.layers(); ++l)
      for (const plan::Segment &segment : microBatch.segments) {
        const plan::LayerKind &kind = model.kind(l);
        int64_t perToken = kind.flops_per_token() + kind.flops_per_target();
        work += static_cast<double>(
            perToken * segment.length +
            kind.attention_flops_per_pair() *
                visiblePairs(kind, loadOfSample(segment.length)));
      }
    largest = std::max(largest, work);
    sum += work;
  }
  return largest * plan.microBatchCount() / sum;
}

int measure(const Model &model, const char *text, const Collection &from) {
  auto graph = ExecutableGraph::create(model, *parseStrategy(text));
  if (!graph.isOk())
    return std::fprintf(stderr, "%s\n", graph.status().message().c_str()), 1;
  Planner planner(*graph);
  PlanOptions options;
  options.maxTokensPerMicroBatch = longest;
  options.schedule = Schedule::OneForwardOneBackward;
  std::vector<int64_t> lengths =
      drawLengths(from, tokensPerReplica * graph->strategy().dp);
  auto plan = planner.training(lengths, 1, options);
  if (!plan.isOk())
    return std::fprintf(stderr, "%s\n", plan.status().message().c_str()), 1;
  int64_t instructions = 0;
  for (const plan::RankProgram &program : plan->ranks)
    instructions += program.count();
  double regions = medianMs(
      [&] { return planner.largestDynamicBytes(options, true).isOk(); });
  double plans =
      medianMs([&] { return planner.training(lengths, 1, options).isOk(); });
  double verifies =
      medianMs([&] { return verifyPlan(*graph, *plan, lengths, {}).isOk(); });
  std::printf("{\"what\": \"planner\", \"lengths\": \"%s\", \"strategy\": "
              "\"%s\", \"ranks\": %d, \"layers\": %d, \"samples\": %zu, "
              "\"micro_batches\": %d, \"instructions\": %lld, \"plan_bytes\": "
              "%zu, \"regions_ms\": "
              "%.2f, \"plan_ms\": %.2f, \"verify_ms\": %.2f, \"imbalance\": "
              "%.3f}\n",
              from.name, text, graph->ranks(), model.layers(), lengths.size(),
              plan->microBatchCount(), static_cast<long long>(instructions),
              writePlan(*plan).size(), regions, plans, verifies,
              imbalance(model, *plan));
  return regions < 0 || plans < 0 || verifies < 0;
}

/// All that is done about a mini-batch before ranks run it, on one thread: cut and
/// planned in limited memory, verified, encoded. Micro-batches of several samples
/// have at most as many tokens as make some 60 of them; width and so offsets are
/// those of a model of 0.4 billion parameters.
int measureWhole() {
  TinyOptions tiny;
  tiny.blocks = 32;
  tiny.hidden = 1024;
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_facts()->set_positions(longest);
  Model model = *Model::create(manifest);
  auto graph = ExecutableGraph::create(
      model, *parseStrategy("dp=4,pp=8,layers=5+4+4+4+4+4+4+5,zero=1"));
  if (!graph.isOk())
    return std::fprintf(stderr, "%s\n", graph.status().message().c_str()), 1;
  const std::vector<int64_t> lengths = lognormalLengths(65536, longest);
  Planner planner(*graph);
  int failures = 0;
  for (Schedule schedule :
       {Schedule::OneForwardOneBackward, Schedule::Adaptive})
    for (Batching batching : {Batching::Tokens, Batching::Ragged}) {
      PlanOptions options;
      options.batching = batching;
      options.maxTokensPerMicroBatch = 1150;
      options.longestSample = longest;
      options.schedule = schedule;
      options.dynamicLimits = *planner.largestDynamicBytes(options, true);
      size_t bytes = 0;
      int microBatches = 0;
      std::string fallback;
      double ms = medianMs([&] {
        auto plan = planner.training(lengths, 1, options);
        if (!plan.isOk() || !verifyPlan(*graph, *plan, lengths, {}).isOk())
          return false;
        microBatches = plan->microBatchCount();
        fallback = plan->fallback;
        bytes = writePlan(*plan).size();
        return true;
      });
      std::printf("{\"what\": \"whole\", \"schedule\": \"%s\", \"name\": "
                  "\"%s\", \"fallback\": \"%s\", \"samples\": %zu, "
                  "\"micro_batches\": %d, \"plan_bytes\": %zu, "
                  "\"planned_verified_encoded_ms\": %.2f}\n",
                  ruleOf(schedule).name, ruleOf(batching).name,
                  fallback.c_str(), lengths.size(), microBatches, bytes, ms);
      failures += ms < 0;
    }
  return failures;
}

/// Those lengths over four replicas of eight stages, cut by every batching;
/// `plan_ms` is all of planning, `padding` beside one real token.
int measureBatchings() {
  TinyOptions tiny;
  tiny.blocks = 32;
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_facts()->set_positions(longest);
  Model model = *Model::create(manifest);
  auto graph = ExecutableGraph::create(
      model, *parseStrategy("dp=4,pp=8,layers=5+4+4+4+4+4+4+5,zero=1"));
  if (!graph.isOk())
    return std::fprintf(stderr, "%s\n", graph.status().message().c_str()), 1;
  const std::vector<int64_t> lengths = lognormalLengths(65536, longest);
  Planner planner(*graph);
  PlanOptions options;
  options.maxTokensPerMicroBatch = longest;
  options.schedule = Schedule::OneForwardOneBackward;
  int failures = 0;
  for (Batching batching : allBatchings()) {
    options.batching = batching;
    std::vector<int64_t> rows = joinedLengths(model, lengths, options);
    auto plan = planner.training(rows, 1, options);
    if (!plan.isOk())
      return std::fprintf(stderr, "%s\n", plan.status().message().c_str()), 1;
    int64_t tokens = 0;
    for (const plan::MicroBatch &microBatch : plan->microBatches)
      for (const plan::Segment &segment : microBatch.segments)
        tokens += segment.length;
    double ms =
        medianMs([&] { return planner.training(rows, 1, options).isOk(); });
    std::printf("{\"what\": \"batching\", \"name\": \"%s\", \"samples\": "
                "%zu, \"micro_batches\": %d, \"padding\": %.3f, "
                "\"plan_ms\": %.2f}\n",
                ruleOf(batching).name, lengths.size(), plan->microBatchCount(),
                static_cast<double>(tokens) / 65536 - 1, ms);
    failures += ms < 0;
  }
  return failures;
}

} // namespace

int main(int argc, char **argv) {
  TinyOptions tiny;
  tiny.blocks = blocks;
  tiny.hidden = 8;
  tiny.degrees = {{8, true}};
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_facts()->set_positions(0);
  Model model = *Model::create(manifest);
  std::vector<int64_t> samples;
  for (uint64_t index = 0; index < 100000; ++index)
    samples.push_back(std::llround(drawLength(collections[1], index)));
  int failures = benchAssignment({samples.begin(), samples.begin() + 512});
  failures += benchSearch(samples);
  std::fflush(stdout);
  failures += measureBatchings() + measureWhole();
  std::fflush(stdout);
  failures += benchSchedules();
  for (const Collection &from : collections)
    for (const char *strategy :
         {"dp=1", "dp=8,zero=1", "pp=8,layers=13+12+12+12+12+12+12+13",
          "dp=48,pp=8,layers=13+12+12+12+12+12+12+13,zero=1",
          "dp=6,tp=8,sp=1,pp=8,layers=13+12+12+12+12+12+12+13,zero=1"})
      failures += measure(model, strategy, from);
  return failures + measureMicroBatches(argc, argv);
}
