//===- SliceBench.cpp - What slicing samples costs and gives --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cuts samples into slices (runtime/planner/slice) with costs of a model of V100
// nodes, like those of TeraPipe's evaluation (ICML'21, table 1): 72 TFLOP/s a device,
// 2.8 ms for the calls of a layer, forward and backward, and one copy of the
// activations over 25 Gb/s behind each stage. One line for each problem:
//
// - "slices": processor seconds (median of 7), number of caps tried and the objective,
//   with one cost for both directions and with two. `required_s` is what Dyna asks
//   for, `authors_s` what TeraPipe's code takes for a problem of that size.
// - "slices_beside": the objective of a baseline over the best one. `parameter` is the
//   best number of slices or tokens of a chunk, of all that are tried.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/planner/slice/SliceBaselines.h"
#include "runtime/planner/slice/SliceTokens.h"
#include "test/bench/planner/MicroBatchBench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>

using namespace dyna;

namespace {

/// A stage of a GPT.
struct StageModel {
  double hidden = 0, layers = 0, tp = 1;
  /// Part by which costs are off at random, as measured ones are.
  double noise = 0;
};

constexpr double rate = 72e12, linkBytes = 25e9 / 8, forwardCall = 0.9e-3,
                 backwardCall = 1.9e-3;

/// From -1 to 1, by the shape.
double noiseOf(const SliceShape &shape, uint64_t direction) {
  uint64_t bits = direction;
  for (int64_t part : {shape.samples, shape.begin, shape.tokens})
    bits = dyna_mix64(bits ^ static_cast<uint64_t>(part));
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

SliceCost costOf(const StageModel &model, double tokens, double pairs,
                 int mode) {
  const double flops =
      24 * model.hidden * model.hidden * tokens + 4 * model.hidden * pairs;
  const double work = model.layers * flops / (model.tp * rate),
               transfer = 2 * tokens * model.hidden / linkBytes;
  SliceCost cost;
  cost.forward = model.layers * forwardCall + work + transfer;
  cost.backward = model.layers * backwardCall + 2 * work + transfer;
  // Mode 1 computes the forward again.
  const double perToken = mode == 0 ? 34 : 2;
  cost.backward += mode == 0 ? 0 : model.layers * forwardCall + work;
  cost.bytes = static_cast<int64_t>(perToken * tokens * model.hidden *
                                    model.layers / model.tp);
  return cost;
}

SliceCosts costsOf(const StageModel &model, int modes = 1) {
  SliceCosts costs;
  costs.modes = modes;
  costs.slice = [model](const SliceShape &shape) {
    const auto samples = static_cast<double>(shape.samples),
               begin = static_cast<double>(shape.begin),
               tokens = static_cast<double>(shape.tokens);
    SliceCost cost =
        costOf(model, samples * tokens,
               samples * tokens * (begin + (tokens + 1) / 2), shape.mode);
    if (model.noise > 0) {
      cost.forward *= 1 + model.noise * noiseOf(shape, 1);
      cost.backward *= 1 + model.noise * noiseOf(shape, 2);
    }
    return cost;
  };
  costs.bundle = [model](const std::vector<int64_t> &lengths, int mode) {
    double tokens = 0, pairs = 0;
    for (int64_t length : lengths) {
      const auto own = static_cast<double>(length);
      tokens += own;
      pairs += own * (own + 1) / 2;
    }
    return costOf(model, tokens, pairs, mode);
  };
  return costs;
}

struct Case {
  std::string name;
  SliceProblem problem;
  StageModel model;
  double requiredOne = 0, requiredTwo = 0, authors = 0; ///< Seconds.
};

/// Lengths of source files: quantiles of GPT-2 tokens, lines in the logarithm between.
std::vector<int64_t> codeLengths(int64_t tokens) {
  constexpr double shares[9] = {0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
  constexpr double lengths[9] = {1,    21,   100,   261,  740,
                                 2247, 6228, 11461, 32768};
  std::vector<int64_t> drawn;
  for (uint64_t index = 0; tokens > 0; ++index) {
    double u, unused;
    dyna_parameter_uniforms(11, index, &u, &unused);
    int upper = 1;
    while (upper < 8 && u > shares[upper])
      ++upper;
    const double share = std::min(1.0, (u - shares[upper - 1]) /
                                           (shares[upper] - shares[upper - 1]));
    const double length = std::exp(std::log(lengths[upper - 1]) * (1 - share) +
                                   std::log(lengths[upper]) * share);
    drawn.push_back(std::min<int64_t>(std::llround(length), tokens));
    tokens -= drawn.back();
  }
  return drawn;
}

Case longSample(const char *name, const StageModel &model, int stages) {
  Case made;
  made.name = name;
  made.model = model;
  made.problem.lengths = {8192};
  made.problem.options.grain = 8;
  made.problem.options.stages = stages;
  made.requiredOne = 0.1;
  made.requiredTwo = 1;
  made.authors = stages == 48 ? 30.4 : 9.9;
  return made;
}

std::vector<Case> allCases() {
  std::vector<Case> cases = {
      longSample("44B", {6144, 2, 8, 0}, 48),
      longSample("44B, costs off by 2 %", {6144, 2, 8, 0.02}, 48),
      longSample("44B", {6144, 1, 1, 0}, 96),
      longSample("175B", {12288, 2, 8, 0}, 48),
      longSample("175B", {12288, 1, 4, 0}, 96),
      longSample("175B, costs off by 2 %", {12288, 1, 4, 0.02}, 96)};
  Case batch;
  batch.name = "1B, setting 3";
  batch.model = {2048, 1, 8, 0};
  batch.problem.lengths.assign(72, 2048);
  batch.problem.options.grain = 8;
  batch.problem.options.stages = 24;
  batch.problem.options.mostJoined = 72;
  batch.requiredOne = batch.requiredTwo = 0.5;
  batch.authors = 42.9;
  cases.push_back(batch);
  batch.name = "13B, setting 5";
  batch.model = {5120, 1, 8, 0};
  batch.problem.lengths.assign(32, 2048);
  batch.problem.options.stages = batch.problem.options.mostJoined = 40;
  batch.requiredOne = batch.requiredTwo = batch.authors = 0;
  cases.push_back(batch);
  // Short samples stay whole, in micro-batches of up to 4,096 tokens.
  Case code;
  code.name = "13B, code lengths";
  code.model = {5120, 5, 8, 0};
  code.problem.lengths = codeLengths(65536);
  code.problem.options.grain = 64;
  code.problem.options.stages = 8;
  code.problem.costs = costsOf(code.model);
  auto chunks = sliceInChunks(code.problem, {4096, 1, 0});
  for (const SliceBundle &bundle : chunks->bundles)
    code.problem.bundles.push_back(bundle.samples);
  cases.push_back(code);
  return cases;
}

const char *costsName(const SliceProblem &problem) {
  return problem.options.joinsDirections ? "one" : "two";
}

/// Runs the work and prints its line. The objective, or -1 after a failure.
double measure(const Case &made, const SliceProblem &problem,
               const char *what) {
  StatusOr<SlicePlan> plan = SlicePlan();
  const double ms = medianMs([&] {
    plan = sliceTokens(problem);
    return plan.isOk();
  });
  if (ms < 0) {
    std::fprintf(stderr, "%s: %s\n", made.name.c_str(),
                 plan.status().message().c_str());
    return -1;
  }
  size_t slices = 0;
  for (const SampleCut &cut : plan->cuts)
    slices += cut.slices.size();
  const bool isOne = problem.options.joinsDirections;
  std::printf(
      "{\"what\": \"%s\", \"case\": \"%s\", \"samples\": %zu, \"longest\": "
      "%lld, \"grain\": %lld, \"stages\": %d, \"modes\": %d, \"costs\": "
      "\"%s\", \"cpu_s\": %.4f, \"required_s\": %g, \"authors_s\": %g, "
      "\"tried\": %d, \"cuts\": %zu, \"slices\": %zu, \"bundles\": %zu, "
      "\"seconds\": %.5f, \"kept_gb\": %.3f}\n",
      what, made.name.c_str(), problem.lengths.size(),
      static_cast<long long>(
          *std::max_element(problem.lengths.begin(), problem.lengths.end())),
      static_cast<long long>(problem.options.grain), problem.options.stages,
      problem.costs.modes, costsName(problem), ms / 1e3,
      isOne ? made.requiredOne : made.requiredTwo, made.authors, plan->tried,
      plan->cuts.size(), slices, plan->bundles.size(), plan->objective,
      static_cast<double>(plan->bytes) / 1e9);
  std::fflush(stdout);
  return plan->objective;
}

using Policy = std::function<StatusOr<SlicePlan>(int64_t parameter)>;

/// The best plan of a baseline, over its parameters, beside the optimum.
int measureBeside(const Case &made, const char *name, double best,
                  const std::vector<int64_t> &parameters,
                  const Policy &policy) {
  double least = std::numeric_limits<double>::infinity();
  int64_t chosen = 0;
  int tried = 0;
  const std::clock_t begin = std::clock();
  for (int64_t parameter : parameters) {
    auto plan = policy(parameter);
    if (!plan.isOk())
      return std::fprintf(stderr, "%s: %s\n", name,
                          plan.status().message().c_str()),
             1;
    tried += plan->tried;
    if (plan->objective < least)
      least = plan->objective, chosen = parameter;
  }
  std::printf("{\"what\": \"slices_beside\", \"case\": \"%s\", \"stages\": %d, "
              "\"costs\": \"%s\", \"policy\": \"%s\", \"parameter\": %lld, "
              "\"cpu_s\": %.4f, \"tried\": %d, \"seconds\": %.5f, "
              "\"over_best\": %.4f}\n",
              made.name.c_str(), made.problem.options.stages,
              costsName(made.problem), name, static_cast<long long>(chosen),
              static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, tried,
              least, least / best);
  std::fflush(stdout);
  return least < best * (1 - 1e-12);
}

int measureBaselines(const Case &made, double best) {
  const SliceProblem &problem = made.problem;
  std::vector<int64_t> slices(128), chunks;
  for (int64_t k = 1; k <= 128; ++k)
    slices[k - 1] = k;
  for (int64_t tokens = 512; tokens <= 32768; tokens *= 2)
    chunks.push_back(tokens);
  const SliceWork work = {24 * made.model.hidden, 4};
  int failures = measureBeside(made, "none", best, {1}, [&](int64_t) {
    return sliceUniformly(problem, 1);
  });
  failures += measureBeside(made, "uniform", best, slices, [&](int64_t k) {
    return sliceUniformly(problem, k);
  });
  failures += measureBeside(made, "seq1f1b", best, slices, [&](int64_t k) {
    return sliceByWork(problem, k, work);
  });
  failures += measureBeside(made, "terapipe", best, {0},
                            [&](int64_t) { return sliceByPaper(problem); });
  failures += measureBeside(made, "terapipe's code", best, {0},
                            [&](int64_t) { return sliceByPaperCode(problem); });
  const int chunked =
      measureBeside(made, "chunkflow", best, chunks, [&](int64_t tokens) {
        return sliceInChunks(problem, {tokens, 1 << 20, 0});
      });
  // Where bundles are given it may be better, as it makes its own.
  failures += problem.bundles.empty() ? chunked : 0;
  return failures;
}

/// Recomputation chosen with the cut, within bytes of all slices.
int measureBytes() {
  int failures = 0;
  for (double share : {0.9, 0.6, 0.3}) {
    Case made;
    made.name = "13B, bytes limited to " + std::to_string(share).substr(0, 3);
    made.model = {5120, 1, 8, 0};
    SliceProblem &problem = made.problem;
    problem.costs = costsOf(made.model, 2);
    problem.lengths = {8192};
    problem.options.grain = 64;
    problem.options.stages = 40;
    auto free = sliceTokens(problem);
    if (!free.isOk())
      return failures + 1;
    problem.options.totalBytes =
        static_cast<int64_t>(share * static_cast<double>(free->bytes));
    failures += measure(made, problem, "slices_within_bytes") < 0;
  }
  return failures;
}

} // namespace

int main() {
  int failures = 0;
  for (Case &made : allCases()) {
    made.problem.costs = costsOf(made.model);
    for (bool isOne : {true, false}) {
      made.problem.options.joinsDirections = isOne;
      const double best = measure(made, made.problem, "slices");
      failures += best < 0;
      if (!isOne)
        failures += measureBaselines(made, best);
    }
  }
  return failures + measureBytes();
}
