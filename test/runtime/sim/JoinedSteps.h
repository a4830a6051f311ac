//===- JoinedSteps.h - Small steps with switches, for tests -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_SIM_JOINEDSTEPS_H
#define DYNA_TEST_RUNTIME_SIM_JOINEDSTEPS_H

#include "runtime/planner/estimate/PhaseEstimate.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "runtime/planner/write/JoinPhases.h"
#include "test/runtime/planner/Draw.h"
#include "test/runtime/sim/TimedPlans.h"

#include <memory>

namespace dyna {

/// A step of several graphs of the tiny model. The last graph is home. Its phases are
/// joined, but not placed in memory.
class JoinedStep {
public:
  JoinedStep(const CostModel &costs, const std::vector<std::string> &strategies,
             const std::vector<std::vector<int64_t>> &lengths,
             const SwitchOptions &options, int64_t tokensPerMicroBatch = 20)
      : costs_(costs), lengths_(lengths) {
    std::vector<const ExecutableGraph *> graphs;
    for (const std::string &strategy : strategies) {
      planners_.push_back(std::make_unique<Planner>(
          *ExecutableGraph::create(costs.model(), *parseStrategy(strategy)),
          costs));
      graphs.push_back(&planners_.back()->graph());
    }
    const int home = static_cast<int>(graphs.size()) - 1;
    const SwitchNetwork network =
        networkOf(costs.cluster(), graphs.front()->ranks());
    auto table = SwitchTable::create(
        graphs, home, [&](const std::vector<SwitchTensor> &tensors) {
          return planSwitch(tensors, network, options);
        });
    EXPECT_TRUE(table.isOk()) << table.status().message();
    table_ = std::make_unique<SwitchTable>(std::move(*table));
    for (int k = 0; k <= home; ++k) {
      PlanOptions own = microBatchesOf(tokensPerMicroBatch);
      own.longestSample = tokensPerMicroBatch;
      own.switched = k < home;
      own.update = k == home;
      options_.push_back(own);
      auto plan = planners_[k]->training(lengths[k], 9, own);
      EXPECT_TRUE(plan.isOk()) << plan.status().message();
      plan::Phase &phase = step.phases.emplace_back();
      phase.plan = std::move(*plan);
    }
    const Status joined = joinPhases(*table_, /*trains=*/true, step);
    EXPECT_TRUE(joined.isOk()) << joined.message();
  }

  std::vector<PlannedPhase> planned() const {
    std::vector<PlannedPhase> phases;
    auto switches = *table_->switchesOf(step);
    for (size_t k = 0; k < planners_.size(); ++k)
      phases.push_back({&planners_[k]->graph(), &step.phases[k].plan, &costs_,
                        switches[k].values, switches[k].gradients});
    return phases;
  }

  /// Estimates phases and the update, and adds the switches alone.
  double estimate() const {
    double seconds = 0;
    auto switches = *table_->switchesOf(step);
    const SwitchNetwork network =
        networkOf(costs_.cluster(), planners_.front()->graph().ranks());
    for (size_t k = 0; k < planners_.size(); ++k) {
      const PhaseEstimate estimate(planners_[k]->graph(), costs_, options_[k]);
      PhaseLengths load;
      for (int64_t length : lengths_[k])
        load.add(length);
      seconds += estimate.seconds(load);
      if (k + 1 == planners_.size())
        seconds += estimate.updateSeconds() + estimate.gatherSeconds();
      for (const GraphSwitch *made :
           {switches[k].values, switches[k].gradients})
        if (made)
          seconds += timesOf(made->tensors, made->plan, network).seconds;
    }
    return seconds;
  }

  plan::StepPlan step;

private:
  const CostModel &costs_;
  const std::vector<std::vector<int64_t>> lengths_;
  std::vector<PlanOptions> options_;
  std::vector<std::unique_ptr<Planner>> planners_;
  std::unique_ptr<SwitchTable> table_;
};

/// Random strategies, lengths and links, which are slow enough to matter.
class RandomStep {
public:
  explicit RandomStep(uint64_t seed)
      : draw_(seed), costs_(drawCosts()), step_(drawStep()) {
    // From all buckets of a switch to hardly two.
    bytesUnderWay = draw_.below(2) == 0 ? kBytesUnderWay : 700;
  }

  PlanWork work() const { return PlanWork(step_->planned()); }
  const std::vector<std::string> &strategies() const { return strategies_; }
  const CostModel &costs() const { return costs_; }

  int64_t bytesUnderWay;

private:
  CostModel drawCosts() {
    auto link = [&](const char *name, int most) {
      return formatText("%s { latency_seconds: %g bytes_per_second: %g } ",
                        name, 0.25 * static_cast<double>(draw_.below(4)),
                        100.0 * static_cast<double>(1 + draw_.below(most)));
    };
    std::string cluster = formatText("devices_per_node: %d ",
                                     static_cast<int>(1 + draw_.below(4)));
    cluster += link("inside", 40);
    cluster += link("between", 10);
    auto seconds = [&] { return static_cast<double>(1 + draw_.below(5)); };
    const double embedding = seconds(), block = seconds(), head = seconds();
    return costsOf(modelWithDegrees(), embedding, block, head, seconds(),
                   cluster);
  }

  std::unique_ptr<JoinedStep> drawStep() {
    std::vector<std::string> all = {"dp=4",
                                    "dp=4,zero=1",
                                    "tp=2,dp=2",
                                    "dp=2,pp=2,layers=3+2",
                                    "tp=2,pp=2,layers=2+3",
                                    "pp=4,layers=1+2+1+1"};
    const size_t count = 2 + draw_.below(2);
    while (strategies_.size() < count) {
      const size_t i = draw_.below(static_cast<int>(all.size()));
      strategies_.push_back(all[i]);
      all.erase(all.begin() + static_cast<long>(i));
    }
    std::vector<std::vector<int64_t>> lengths(count);
    for (auto &own : lengths)
      for (int64_t i = 1 + static_cast<int64_t>(draw_.below(6)); i > 0; --i)
        own.push_back(10 * (1 + static_cast<int64_t>(draw_.below(2))));
    SwitchOptions options;
    options.bucketBytes = 300 + 200 * static_cast<int64_t>(draw_.below(10));
    options.smallestPiece = 64;
    return std::make_unique<JoinedStep>(costs_, strategies_, lengths, options);
  }

  Draw draw_;
  std::vector<std::string> strategies_;
  CostModel costs_;
  std::unique_ptr<JoinedStep> step_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_SIM_JOINEDSTEPS_H
