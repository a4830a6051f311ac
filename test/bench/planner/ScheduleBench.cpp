//===- ScheduleBench.cpp - What ordering a mini-batch costs and gives -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The adaptive schedule, with its search of orders, beside Algorithm 1 of
// DynaPipe (backward in one piece) with the cluster orders of the paper, on the
// same micro-batches: 16 stages of 4 layers, lognormal lengths, padded
// micro-batches cut as in section 4 of the paper. `over` is makespan over that of
// the best of 3 and of 4 clusters, `over_3` of 3 clusters alone; `over_bound` over
// the lower bound, and `bound_over` what no schedule's `over` is below. One line for
// each setting, over 20 seeds.
//
//===----------------------------------------------------------------------===//

#include "test/bench/planner/ScheduleBench.h"

#include "runtime/abi/Random.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/schedules/CyclicOrders.h"
#include "runtime/planner/order/schedules/OrderSearch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

using namespace dyna;

namespace {

constexpr int stages = 16, layersOfStage = 4, seeds = 20;
constexpr double bytesOfToken = 0.14e6 * layersOfStage;

struct Setting {
  int samples;
  double bytes; ///< of each stage, for what is kept
};
const Setting settings[] = {{2048, 63.8e9}, {1024, 3.84e9}};

/// Of the forward of one stage.
double seconds(int samples, int64_t length) {
  double tokens = static_cast<double>(samples * length);
  return layersOfStage * 1e-3 *
         (0.05 + 0.0025 * tokens +
          2.5e-7 * tokens * static_cast<double>(length));
}

/// Lognormal(4.5, 1.1) in [8, 8192]; none longer than fits.
std::vector<int64_t> drawLengths(int seed, const Setting &setting) {
  std::vector<int64_t> lengths;
  for (int i = 0; i < setting.samples; ++i) {
    double u, v;
    dyna_parameter_uniforms(dyna_mix64(static_cast<uint64_t>(seed)),
                            static_cast<uint64_t>(i), &u, &v);
    double normal =
        std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
    double longest = std::min(8192.0, setting.bytes / bytesOfToken);
    lengths.push_back(static_cast<int64_t>(
        std::clamp(std::exp(4.5 + 1.1 * normal), 8.0, longest)));
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

/// Ends of the cuts of sorted samples of least total time, where none takes more
/// than `most`; that time.
double cut(const std::vector<int64_t> &lengths, double bytes, double most,
           std::vector<int> &ends) {
  const int n = static_cast<int>(lengths.size());
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<int> from(n + 1, 0);
  best[0] = 0;
  for (int end = 1; end <= n; ++end)
    for (int begin = end - 1; begin >= 0; --begin) {
      int64_t length = lengths[end - 1];
      double time = seconds(end - begin, length);
      double tokens = static_cast<double>((end - begin) * length);
      if (time > most || tokens * bytesOfToken > bytes)
        break;
      if (best[begin] + time < best[end]) {
        best[end] = best[begin] + time;
        from[end] = begin;
      }
    }
  ends.clear();
  for (int end = n; end > 0; end = from[end])
    ends.push_back(end);
  std::reverse(ends.begin(), ends.end());
  return best[n];
}

/// Padded micro-batches: the least (stages - 1) * longest + sum, where the
/// longest is tried in steps of 5 % from that of the longest sample on.
PipelineProblem draw(int seed, const Setting &setting) {
  std::vector<int64_t> lengths = drawLengths(seed, setting);
  double least = seconds(1, lengths.back()) * (1 + 1e-9);
  double bestObjective = std::numeric_limits<double>::infinity();
  std::vector<int> ends, bestEnds;
  for (int step = 0; step < 20; ++step) {
    double most = least * (1 + 0.05 * step);
    double sum = cut(lengths, setting.bytes, most, ends);
    if ((stages - 1) * most + sum < bestObjective) {
      bestObjective = (stages - 1) * most + sum;
      bestEnds = ends;
    }
  }
  std::vector<double> forward, backward;
  std::vector<int64_t> kept;
  int begin = 0;
  for (int end : bestEnds) {
    int64_t length = lengths[end - 1];
    forward.push_back(seconds(end - begin, length));
    backward.push_back(2 * forward.back());
    kept.push_back(std::llround(static_cast<double>((end - begin) * length) *
                                bytesOfToken));
    begin = end;
  }
  PipelineProblem problem;
  problem.forward.assign(stages, forward);
  problem.backward.assign(stages, backward);
  problem.kept.assign(stages, kept);
  problem.limits.assign(stages, std::llround(setting.bytes));
  return problem;
}

double algorithm1(const PipelineProblem &problem, int clusters) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto &order : clusterOrders(totalSeconds(problem), clusters)) {
    StageOrders orders = cyclicOrders(problem, order);
    if (timeItems(orders, problem, {}).isOk())
      best = std::min(best, makespanOf(orders));
  }
  return best;
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}
double mostOf(const std::vector<double> &values) {
  return *std::max_element(values.begin(), values.end());
}

bool measure(const Setting &setting, bool split) {
  std::vector<double> over, over3, overBound, boundOver, times, counts, stocks;
  for (int seed = 0; seed < seeds; ++seed) {
    PipelineProblem problem = draw(seed, setting);
    double three = algorithm1(problem, 3), four = algorithm1(problem, 4);
    if (split) {
      // All that is kept stays for the weight gradients.
      problem.weight = problem.forward;
      problem.late = problem.kept;
    }
    auto begin = std::chrono::steady_clock::now();
    StatusOr<StageOrders> orders = ruleOf(Schedule::Adaptive).order(problem);
    std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    ClockOptions clock;
    clock.fillsGaps = true;
    if (!orders.isOk() || !timeItems(*orders, problem, clock).isOk())
      return false;
    double makespan = makespanOf(*orders);
    over.push_back(makespan / std::min(three, four));
    over3.push_back(makespan / three);
    const double bound = boundPipeline(problem).seconds();
    overBound.push_back(makespan / bound);
    boundOver.push_back(bound / std::min(three, four));
    times.push_back(spent.count());
    counts.push_back(problem.microBatches());
    double stock = 0;
    for (const SafetyStock &stage : safetyStockOf(*orders, problem))
      stock += stage.mean / stages;
    stocks.push_back(stock);
  }
  std::printf(
      "{\"what\": \"schedule\", \"stages\": %d, \"samples\": %d, \"gb\": %.2f, "
      "\"split\": %s, \"seeds\": %d, \"micro_batches\": %.0f, \"median_ms\": "
      "%.1f, \"most_ms\": %.1f, \"over\": %.4f, \"over_most\": %.4f, "
      "\"over_3\": %.4f, \"over_3_most\": %.4f, \"over_bound\": %.4f, "
      "\"bound_over\": %.4f, "
      "\"safety_stock\": %.2f}\n",
      stages, setting.samples, setting.bytes / 1e9, split ? "true" : "false",
      seeds, medianOf(counts), medianOf(times), mostOf(times), medianOf(over),
      mostOf(over), medianOf(over3), mostOf(over3), medianOf(overBound),
      medianOf(boundOver), medianOf(stocks));
  return mostOf(over) <= 1;
}

} // namespace

int benchSchedules() {
  int failures = 0;
  for (const Setting &setting : settings)
    for (bool split : {false, true})
      failures += !measure(setting, split);
  return failures;
}
