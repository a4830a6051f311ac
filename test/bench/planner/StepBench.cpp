//===- StepBench.cpp - What planning a step of several graphs costs -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All that is done about a mini-batch of three graphs on 32 ranks before they run
// it, on one thread, as a run does it: samples are given to graphs, three plans
// are made and joined with the switches, proved and encoded. 65,536 tokens in
// lognormal lengths, all graphs have some; 60 layers, as many bytes as 32.5 G
// parameters in bf16 have. One JSON line per way of planning; times are those of a
// core, medians, beside the least of the whole and the least on the wall.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/step/AssignStrategies.h"
#include "runtime/planner/step/Orchestrate.h"
#include "runtime/planner/write/JoinPhases.h"
#include "test/bench/WideModel.h"
#include "test/bench/planner/LognormalLengths.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

namespace dyna {
namespace {

struct StepGraph {
  std::unique_ptr<ExecutableGraph> graph;
  std::unique_ptr<Planner> planner;
  PlanOptions options;
};

class Estimates : public StepEstimates {
public:
  Estimates(const std::vector<StepGraph> &graphs, const Orchestration &turns)
      : turns_(turns) {
    for (const StepGraph &graph : graphs)
      phases_.emplace_back(*graph.graph, graph.planner->costs(), graph.options);
  }
  double phaseSeconds(int graph, const PhaseLengths &phase) const override {
    return phases_[graph].seconds(phase);
  }
  double switchSeconds(const std::vector<int> &graphs) const override {
    std::vector<int> order;
    for (int graph : turns_.order)
      if (std::find(graphs.begin(), graphs.end(), graph) != graphs.end())
        order.push_back(graph);
    return turns_.switchSeconds(order);
  }

private:
  const Orchestration &turns_;
  std::vector<PhaseEstimate> phases_;
};

enum Part { Assign, Plans, Join, Prove, Encode, Whole, Parts };
constexpr const char *partNames[Parts] = {"assign", "plans",  "join",
                                          "prove",  "encode", "step"};

/// Adds what this thread had of a core to `ms[part]` when it goes.
class PartTimer {
public:
  PartTimer(double *ms, Part part) : ms_(ms[part]) {}
  ~PartTimer() { ms_ += (coreSeconds() - begin_) * 1e3; }

private:
  double &ms_;
  double begin_ = coreSeconds();
};

struct StepBench {
  std::vector<StepGraph> graphs;
  LengthRanges ranges;
  Orchestration turns;
  std::unique_ptr<Estimates> estimates;
  std::vector<int64_t> limits; ///< of the ranks' regions

  /// As a run plans a step (StepPlanner.h), with times of its parts in `ms`.
  StatusOr<std::string> planOnce(const std::vector<int64_t> &lengths,
                                 double *ms, int &microBatches) const;
};

StatusOr<std::string> StepBench::planOnce(const std::vector<int64_t> &lengths,
                                          double *ms, int &microBatches) const {
  std::vector<std::vector<int>> samples;
  {
    PartTimer timer(ms, Assign);
    DYNA_RETURN_IF_ERROR(assignSamples(lengths, ranges, *estimates).status());
    // What is worth it or not, all of the graphs are to be timed.
    DYNA_ASSIGN_OR_RETURN(Assignment all, assignByRange(lengths, ranges));
    samples = std::move(all.samples);
  }
  const int64_t targets =
      std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
  plan::StepPlan step;
  microBatches = 0;
  for (int number : turns.order) {
    PartTimer timer(ms, Plans);
    const StepGraph &own = graphs[number];
    plan::Phase &phase = step.phases.emplace_back();
    phase.samples.assign(samples[number].begin(), samples[number].end());
    std::vector<int64_t> ownLengths;
    for (int64_t sample : phase.samples)
      ownLengths.push_back(lengths[sample]);
    PlanOptions options = own.options;
    options.switched = number != turns.home();
    options.update = !options.switched;
    DYNA_ASSIGN_OR_RETURN(phase.plan,
                          own.planner->training(ownLengths, targets, options));
    microBatches += phase.plan.microBatchCount();
  }
  {
    PartTimer timer(ms, Join);
    DYNA_RETURN_IF_ERROR(joinPhases(turns.switches, true, step));
    DYNA_RETURN_IF_ERROR(placePhases(turns.switches, limits, step));
  }
  {
    PartTimer timer(ms, Prove);
    DYNA_ASSIGN_OR_RETURN(VerifiedStep proven,
                          VerifiedStep::prove(turns.switches, std::move(step),
                                              lengths, targets, limits));
    step = proven.toStepPlan();
  }
  PartTimer timer(ms, Encode);
  return writeStepPlan(step);
}

/// `words`: schedule and batching, as in takeWords; empty: those of a run.
StatusOr<std::unique_ptr<StepBench>>
prepare(const CostModel &costs, const std::string &words, int64_t longest) {
  auto bench = std::make_unique<StepBench>();
  std::vector<const ExecutableGraph *> all;
  for (const char *text : {"short: dp=4,tp=2,pp=4,zero=1,order=pp+dp+tp",
                           "mid: dp=4,tp=4,sp=1,pp=2,zero=1,order=pp+dp+tp",
                           "long: dp=2,tp=8,sp=1,pp=2,zero=1,order=pp+dp+tp"}) {
    PlanRequest request;
    if (!words.empty())
      DYNA_RETURN_IF_ERROR(takeWords(words, request));
    DYNA_ASSIGN_OR_RETURN(request.strategy, parseStrategy(text));
    request.tokensPerBatch = 65536;
    request.longestSample = longest;
    DYNA_ASSIGN_OR_RETURN(Policy policy, choosePolicy(costs, request));
    StepGraph &made = bench->graphs.emplace_back();
    DYNA_ASSIGN_OR_RETURN(
        auto graph, ExecutableGraph::create(costs.model(), policy.strategy));
    made.graph = std::make_unique<ExecutableGraph>(std::move(graph));
    made.planner = std::make_unique<Planner>(*made.graph, costs);
    made.options = policy.options;
    DYNA_ASSIGN_OR_RETURN(
        made.options.dynamicLimits,
        made.planner->largestDynamicBytes(made.options, true));
    all.push_back(made.graph.get());
  }
  DYNA_ASSIGN_OR_RETURN(bench->ranges,
                        parseLengthRanges("short: 0-256; mid: 257-1024; "
                                          "long: 1025-",
                                          {"short", "mid", "long"}));
  DYNA_ASSIGN_OR_RETURN(
      bench->turns,
      orchestrate(all, switchMaker(networkOf(costs.cluster(), 32))));
  std::vector<std::vector<int64_t>> dynamic;
  for (const StepGraph &graph : bench->graphs)
    dynamic.push_back(graph.options.dynamicLimits);
  bench->limits =
      needOfRegions(bench->turns.switches, bench->turns.order, dynamic, true)
          .most;
  bench->estimates = std::make_unique<Estimates>(bench->graphs, bench->turns);
  return bench;
}

Status benchWords(const CostModel &costs, const char *words,
                  const std::vector<int64_t> &lengths, int repeats) {
  DYNA_ASSIGN_OR_RETURN(
      auto bench,
      prepare(costs, words, *std::max_element(lengths.begin(), lengths.end())));
  std::vector<double> parts[Parts];
  size_t bytes = 0;
  int microBatches = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    double ms[Parts] = {};
    const auto begin = std::chrono::steady_clock::now();
    {
      PartTimer timer(ms, Whole);
      DYNA_ASSIGN_OR_RETURN(std::string text,
                            bench->planOnce(lengths, ms, microBatches));
      bytes = text.size();
    }
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    least = std::min(least, spent.count());
    for (int part = 0; part < Parts && repeat > 0; ++part)
      parts[part].push_back(ms[part]);
  }
  std::string times;
  for (int part = 0; part < Parts; ++part) {
    std::sort(parts[part].begin(), parts[part].end());
    times += formatText(", \"%s_ms\": %.2f", partNames[part],
                        parts[part][repeats / 2]);
  }
  times += formatText(", \"least_step_ms\": %.2f, \"least_wall_ms\": %.2f",
                      parts[Whole].front(), least);
  std::printf("{\"what\": \"step\", \"words\": \"%s\", \"ranks\": 32, "
              "\"graphs\": 3, \"samples\": %zu, \"micro_batches\": %d, "
              "\"warm_up\": 1, \"repeats\": %d, \"plan_bytes\": %zu%s}\n",
              words, lengths.size(), microBatches, repeats, bytes,
              times.c_str());
  std::fflush(stdout);
  return Status::ok();
}

} // namespace
} // namespace dyna

int main(int argc, char **argv) {
  using namespace dyna;
  const int repeats = argc == 3 && !std::strcmp(argv[1], "--repeats")
                          ? std::max(1, std::atoi(argv[2]))
                          : 15;
  TinyOptions tiny;
  tiny.blocks = 60;
  tiny.hidden = 40704;
  tiny.vocabulary = 30592;
  tiny.compute = plan::BF16;
  tiny.degrees = {{2, false}, {4, true}, {8, true}};
  plan::Manifest manifest = tinyManifest(tiny);
  bench::widen(manifest, 6656);
  manifest.mutable_facts()->set_positions(8192);
  const Model model = *Model::create(std::move(manifest));
  const CostModel costs =
      *CostModel::create(model, *CostTable::described("a800-80g:4x8"));
  int failures = 0;
  for (const char *words : {"", "ragged+1f1b", "tokens+1f1b"})
    if (Status done =
            benchWords(costs, words, lognormalLengths(65536, 8192), repeats);
        !done.isOk()) {
      std::fprintf(stderr, "step of '%s': %s\n", words, done.message().c_str());
      ++failures;
    }
  return failures;
}
