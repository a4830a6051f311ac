//===- StepClock.cpp - Simulates a step under other cuts ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/decide/StepClock.h"

#include "runtime/elastic/balance/LayerFacts.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dyna {
namespace {

/// The tables of a problem that have seconds, if they are there.
std::vector<PipelineProblem::Seconds *> tablesOf(PipelineProblem &problem) {
  return {&problem.forward, &problem.backward, &problem.weight,
          &problem.recompute};
}

double sumOf(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double totalOf(const PipelineProblem &problem) {
  double total = 0;
  for (const auto *table : {&problem.forward, &problem.backward})
    for (const std::vector<double> &row : *table)
      total += sumOf(row);
  return total;
}

/// Scales the seconds of a layer to this mean. A layer without an estimate takes a third
/// of its seconds in forward, and equally long for each micro-batch.
void scaleLayer(PipelineProblem &problem, int layer, double mean) {
  const auto count = static_cast<double>(problem.microBatches());
  const double estimate =
      (sumOf(problem.forward[layer]) + sumOf(problem.backward[layer])) / count;
  if (estimate > 0) {
    for (PipelineProblem::Seconds *table : tablesOf(problem))
      if (!table->empty())
        for (double &seconds : (*table)[layer])
          seconds *= mean / estimate;
    return;
  }
  for (double &seconds : problem.forward[layer])
    seconds = mean / 3;
  for (double &seconds : problem.backward[layer])
    seconds = 2 * mean / 3;
}

/// Runs the items of a chain of stages, each as soon as it can. The times are those of
/// `timeItems`; the makespan alone takes a tenth of the time. Items of one stage follow
/// each other, so they wait for the next and the previous stage alone. O(items).
class ChainClock {
public:
  ChainClock(const PipelineProblem &problem, const StageOrders &orders,
             bool fillsGaps)
      : problem_(problem), orders_(orders), fillsGaps_(fillsGaps),
        count_(static_cast<size_t>(problem.microBatches())),
        next_(orders.size(), 0), free_(orders.size(), 0),
        forward_(orders.size() * count_, never),
        backward_(orders.size() * count_, never) {}

  /// Returns the end of the last item; `never` if items wait for each other.
  double run() {
    std::vector<size_t> ready(orders_.size());
    std::iota(ready.rbegin(), ready.rend(), 0); // the first stage on top
    while (!ready.empty()) {
      const size_t s = ready.back();
      ready.pop_back();
      const size_t before = next_[s];
      while (next_[s] < orders_[s].size() && runItem(s))
        ;
      if (next_[s] == before)
        continue;
      if (s > 0)
        ready.push_back(s - 1);
      if (s + 1 < orders_.size())
        ready.push_back(s + 1);
    }
    for (size_t s = 0; s < orders_.size(); ++s)
      if (next_[s] < orders_[s].size())
        return never;
    return *std::max_element(free_.begin(), free_.end());
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// Runs the next item of a stage, if it is known when its input comes.
  bool runItem(size_t s) {
    const PipelineItem &item = orders_[s][next_[s]];
    const auto m = static_cast<size_t>(item.microBatch);
    double input = 0, seconds = 0;
    if (item.isForward()) {
      input = s > 0 ? forward_[(s - 1) * count_ + m] : 0;
      seconds = problem_.forward[s][m];
    } else if (item.isBackward()) {
      input = s + 1 < orders_.size() ? backward_[(s + 1) * count_ + m]
                                     : forward_[s * count_ + m];
      seconds = problem_.backward[s][m];
    } else {
      seconds = problem_.weight[s][m];
    }
    if (input == never)
      return false;
    double begin = free_[s];
    if (item.isBackward() && fillsGaps_) {
      // What is computed again comes before the wait, and weight gradients later.
      const double early =
          problem_.recomputeOf(static_cast<int>(s), item.microBatch);
      begin += early;
      seconds -=
          early + problem_.weightOf(static_cast<int>(s), item.microBatch);
    }
    free_[s] = std::max(begin, input) + std::max(seconds, 0.0);
    if (item.isForward())
      forward_[s * count_ + m] = free_[s];
    else if (item.isBackward())
      backward_[s * count_ + m] = free_[s];
    ++next_[s];
    return true;
  }

  const PipelineProblem &problem_;
  const StageOrders &orders_;
  const bool fillsGaps_;
  const size_t count_;
  std::vector<size_t> next_;               ///< item, by stage
  std::vector<double> free_;               ///< from when on a stage is free
  std::vector<double> forward_, backward_; ///< ends; `never`: not known
};

} // namespace

StatusOr<StepWork> stepWork(const CostModel &costs, const Strategy &strategy,
                            const std::vector<plan::MicroBatch> &microBatches,
                            const PlanOptions &options,
                            const std::vector<double> &seconds) {
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph graph,
                        layerByLayer(costs.model(), strategy));
  plan::Plan plan;
  plan.microBatches = microBatches;
  StepWork work;
  work.schedule = options.schedule;
  work.inFlight = options.inFlight;
  // Means are over the micro-batches of all replicas.
  std::vector<int> all(microBatches.size());
  std::iota(all.begin(), all.end(), 0);
  PipelineProblem whole = estimateStages(graph, costs, plan, all, options);
  for (size_t layer = 0; layer < seconds.size(); ++layer)
    scaleLayer(whole, static_cast<int>(layer), seconds[layer]);
  for (const std::vector<int> &own :
       microBatchesOfReplicas(plan, strategy.dp)) {
    if (own.empty())
      continue;
    PipelineProblem problem = estimateStages(graph, costs, plan, own, options);
    const auto from = tablesOf(whole), to = tablesOf(problem);
    for (size_t t = 0; t < to.size(); ++t)
      for (size_t layer = 0; layer < to[t]->size(); ++layer)
        for (size_t m = 0; m < own.size(); ++m)
          (*to[t])[layer][m] = (*from[t])[layer][static_cast<size_t>(own[m])];
    if (work.layers.stages() == 0 || totalOf(problem) > totalOf(work.layers))
      work.layers = std::move(problem);
  }
  return work;
}

StepClock::StepClock(StepWork work, std::vector<double> waits)
    : work_(std::move(work)), waits_(std::move(waits)), totals_(1, 0) {
  const PipelineProblem &layers = work_.layers;
  const auto count = static_cast<size_t>(layers.microBatches());
  std::vector<double> down(count, 0), up(count, 0);
  for (int layer = 0; layer < layers.stages(); ++layer) {
    around_.push_back(*std::min_element(down.begin(), down.end()));
    // Behind its last backward a stage may still have weight gradients.
    if (!layers.splitsBackward())
      around_.back() += *std::min_element(up.begin(), up.end());
    totals_.push_back(totals_.back() + sumOf(layers.forward[layer]) +
                      sumOf(layers.backward[layer]));
    for (size_t m = 0; m < count; ++m) {
      down[m] += layers.forward[layer][m];
      // What is computed again may come earlier.
      up[m] += layers.backward[layer][m] -
               layers.recomputeOf(layer, static_cast<int>(m));
    }
  }
}

int64_t StepClock::items(int stages) const {
  return int64_t{stages} * work_.layers.microBatches() *
         (work_.layers.splitsBackward() ? 3 : 2);
}

double StepClock::bound(const std::vector<int> &cut) const {
  double most = 0;
  size_t layer = 0;
  for (size_t s = 0; s < cut.size(); ++s) {
    const size_t end = layer + static_cast<size_t>(cut[s]);
    most = std::max(most, totals_[end] - totals_[layer] + around_[layer] +
                              wait(s) * work_.layers.microBatches());
    layer = end;
  }
  return most;
}

PipelineProblem StepClock::problemOf(const std::vector<int> &cut) const {
  const PipelineProblem &layers = work_.layers;
  const auto count = static_cast<size_t>(layers.microBatches());
  PipelineProblem problem;
  problem.previous = layers.previous;
  problem.inFlight = work_.inFlight;
  problem.searchItems = 0; // of all orders, the best simple one
  auto add = [&](const PipelineProblem::Seconds &from,
                 PipelineProblem::Seconds &to, bool isOfLastLayer) {
    if (from.empty())
      return;
    size_t layer = 0;
    for (int taken : cut) {
      std::vector<double> &sums = to.emplace_back(count, 0);
      const size_t end = layer + static_cast<size_t>(taken);
      if (isOfLastLayer)
        layer = end - 1;
      for (; layer < end; ++layer)
        for (size_t m = 0; m < count; ++m)
          sums[m] += from[layer][m];
    }
  };
  add(layers.forward, problem.forward, false);
  add(layers.backward, problem.backward, false);
  add(layers.weight, problem.weight, false);
  add(layers.recompute, problem.recompute, true);
  for (size_t s = 0; s < cut.size(); ++s)
    for (size_t m = 0; m < count; ++m) {
      problem.forward[s][m] += wait(s) / 2;
      problem.backward[s][m] += wait(s) / 2;
    }
  return problem;
}

double StepClock::seconds(const std::vector<int> &cut) const {
  const auto [found, isNew] = known_.try_emplace(cut, 0);
  if (!isNew)
    return found->second;
  const PipelineProblem problem = problemOf(cut);
  const ScheduleRule &rule = ruleOf(work_.schedule);
  const auto orders = rule.order(problem);
  found->second = orders.isOk()
                      ? ChainClock(problem, *orders, rule.adapts).run()
                      : std::numeric_limits<double>::infinity();
  return found->second;
}

} // namespace dyna
