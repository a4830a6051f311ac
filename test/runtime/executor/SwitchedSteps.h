//===- SwitchedSteps.h - Steps of several graphs in tests -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_SWITCHEDSTEPS_H
#define DYNA_TEST_RUNTIME_EXECUTOR_SWITCHEDSTEPS_H

#include "runtime/executor/run/RankTeam.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/write/JoinPhases.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/Patience.h"
#include "test/runtime/executor/TinyRun.h"
#include "test/runtime/executor/WholeParts.h"
#include "test/runtime/plan/NaiveSwitch.h"
#include "test/runtime/transport/RendezvousTransport.h"

#include <gtest/gtest.h>

#include <optional>

namespace dyna {

constexpr int64_t enoughDynamicBytes = 1 << 20;

inline TinyOptions tinyOptions(plan::ElementType compute) {
  TinyOptions options;
  options.compute = compute;
  options.hidden = 12;
  options.nestedTie = true;
  options.degrees = {{2, false}, {2, true}, {3, false}, {4, true}, {4, false}};
  return options;
}

/// Gives all parameters values that differ, through their masters.
inline void writeMasters(RankTeam &team, const Model &model) {
  for (int p = 0; p < model.parameters(); ++p) {
    std::vector<double> values(model.elements(p));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.02 * std::sin(static_cast<double>(13 * p + i + 1));
    std::vector<float> narrow(values.begin(), values.end());
    EXPECT_OK(writePart(team, p, ParameterPart::Master,
                        model.masterType() == plan::F64
                            ? static_cast<void *>(values.data())
                            : narrow.data()));
  }
}

/// How switches are planned, and what carries them.
struct Carriage {
  SwitchTable::Make make = planNaively;
  bool isRendezvous = false;
  bool landsLate = false; ///< a rendezvous, with adds that end in the wait
  bool checksMemory = true;
  /// Hosts have wires of their own. Those of devices carry device memory alone, one
  /// exchange after another.
  bool hasHostWires = false;
};

/// As on nodes of two ranks, far apart, so that ranks pass on what they get.
inline SwitchTable::Make onNodes(int ranks, int64_t bucketBytes) {
  SwitchNetwork network;
  network.ranks = ranks;
  network.ranksPerNode = 2;
  network.insideRate = 200e9;
  network.betweenRate = 1e9;
  SwitchOptions options;
  options.bucketBytes = bucketBytes;
  options.smallestPiece = 64;
  return [network, options](const std::vector<SwitchTensor> &tensors) {
    return planSwitch(tensors, network, options);
  };
}

/// Ranks as threads, which have all of the graphs.
inline StatusOr<std::unique_ptr<RankTeam>>
threadTeam(const TinyProgram &program, const std::vector<GraphUse> &uses,
           const Carriage &carriage = {}) {
  const int ranks = uses.front().graph->ranks();
  auto transports = makeThreadTransports(ranks);
  auto hosts = makeThreadTransports(ranks);
  std::vector<RendezvousTransport *> guarded;
  std::vector<RankResources> resources(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    resources[rank].rank = rank;
    resources[rank].device = makeTestDevice();
    resources[rank].dynamicBytes = enoughDynamicBytes;
    if (ranks == 1)
      continue;
    resources[rank].transport = std::move(transports[rank]);
    if (carriage.hasHostWires) {
      auto wires = std::make_unique<RendezvousTransport>(
          std::move(resources[rank].transport));
      guarded.push_back(wires.get());
      resources[rank].transport = std::move(wires);
      resources[rank].hostTransport = std::move(hosts[rank]);
      resources[rank].hostTransport->setTimeout(kPatience);
    } else if (carriage.isRendezvous || carriage.landsLate)
      resources[rank].transport = std::make_unique<RendezvousTransport>(
          std::move(resources[rank].transport), carriage.landsLate);
    resources[rank].transport->setTimeout(kPatience);
  }
  ExecutorOptions options;
  options.seed = 7;
  options.checkMemory = carriage.checksMemory;
  DYNA_ASSIGN_OR_RETURN(
      auto team,
      RankTeam::create(uses, **chooseVariant(program.program(), "", 0),
                       std::move(resources), options));
  for (size_t rank = 0; rank < guarded.size(); ++rank)
    guarded[rank]->isDeviceMemory = [&machine = team->executor(rank).machine()](
                                        const void *data, int64_t bytes) {
      return machine.owns(data, bytes);
    };
  return team;
}

/// Graphs over one set of masters; the last strategy is home.
class Steps {
public:
  Steps(const std::vector<std::string> &strategies, plan::ElementType compute,
        const Carriage &carriage = {},
        Persistent others = Persistent::Gradients)
      : Steps(strategies, tinyOptions(compute), carriage, others) {}
  Steps(const std::vector<std::string> &strategies, const TinyOptions &tiny,
        const Carriage &carriage = {},
        Persistent others = Persistent::Gradients)
      : program_(tiny), model_(*openProgram(program_.program())) {
    for (const std::string &text : strategies)
      planners_.push_back(std::make_unique<Planner>(
          *ExecutableGraph::create(model_, *parseStrategy(text))));
    home_ = static_cast<int>(planners_.size()) - 1;
    std::vector<GraphUse> uses = {{&graph(home_), Persistent::Training}};
    std::vector<const ExecutableGraph *> graphs;
    for (int g = 0; g <= home_; ++g) {
      graphs.push_back(&graph(g));
      if (g != home_)
        uses.push_back({&graph(g), others});
    }
    auto table = SwitchTable::create(graphs, home_, carriage.make);
    EXPECT_TRUE(table.isOk()) << table.status().message();
    table_.emplace(std::move(*table));
    auto team = threadTeam(program_, uses, carriage);
    EXPECT_TRUE(team.isOk()) << team.status().message();
    team_ = std::move(*team);
    writeMasters(*team_, model_);
    castMasters();
  }

  void castMasters() {
    auto cast =
        proveAlone(graph(home_), *planners_[home_]->cast(), MiniBatch());
    StepResult result;
    EXPECT_OK(team_->run(*cast, MiniBatch(), {}, result));
  }

  /// Sample s goes to the graph of phase `phaseOf[s]`; phases without samples
  /// are left out, but for home's.
  StatusOr<plan::StepPlan> plan(const MiniBatch &batch,
                                const std::vector<int> &phaseOf,
                                bool trains = true) {
    plan::StepPlan step;
    for (int g = 0; g <= home_; ++g) {
      plan::Phase phase;
      std::vector<int64_t> lengths;
      for (size_t s = 0; s < phaseOf.size(); ++s)
        if (phaseOf[s] == g) {
          phase.samples.push_back(static_cast<int64_t>(s));
          lengths.push_back(batch.lengths()[s]);
        }
      if (lengths.empty() && g != home_)
        continue;
      PlanOptions options;
      options.maxTokensPerMicroBatch = 24;
      options.switched = g != home_;
      options.splitBackward = splitsBackward_;
      DYNA_ASSIGN_OR_RETURN(
          phase.plan,
          trains ? planners_[g]->training(lengths, batch.targets, options)
                 : planners_[g]->evaluation(lengths, batch.targets, options));
      step.phases.push_back(std::move(phase));
    }
    DYNA_RETURN_IF_ERROR(joinPhases(*table_, trains, step));
    if (isTight_)
      regionBytes_ = needOf(step).least;
    DYNA_RETURN_IF_ERROR(placePhases(*table_, regionBytes_, step));
    return step;
  }

  /// From now on gradients of weights are made apart.
  void splitBackward() { splitsBackward_ = true; }
  /// From now on every step has regions as small as it does with, whatever phases
  /// of these sizes it has.
  void useTightRegions() { isTight_ = true; }
  const std::vector<int64_t> &regionBytes() const { return regionBytes_; }
  /// Of micro-batches as large as those of the step, in every graph that it has.
  RegionNeed needOf(const plan::StepPlan &step) const {
    std::vector<std::vector<int64_t>> dynamic(
        planners_.size(),
        std::vector<int64_t>(planners_[0]->graph().ranks(), 0));
    std::vector<int> order;
    for (const plan::Phase &phase : step.phases) {
      order.push_back(table_->find(phase.plan.graph));
      for (int rank = 0; rank < phase.plan.rankCount(); ++rank)
        dynamic[order.back()][rank] = phase.plan.ranks[rank].dynamicBytes;
    }
    return needOfRegions(*table_, order, dynamic, trains(step));
  }

  StatusOr<VerifiedStep> prove(plan::StepPlan step, const MiniBatch &batch) {
    return VerifiedStep::prove(*table_, std::move(step), batch.lengths(),
                               batch.targets, regionBytes_,
                               /*failedAt=*/nullptr, updates_);
  }
  /// From now on steps need no gradient norms.
  void wantNoNorms() { updates_.needsNorms = false; }

  StepResult run(const MiniBatch &batch, const std::vector<int> &phaseOf,
                 int64_t number, bool trains = true) {
    auto made = plan(batch, phaseOf, trains);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return runStep(*made, batch, number);
  }

  StepResult runStep(const plan::StepPlan &step, const MiniBatch &batch,
                     int64_t number) {
    StepResult result;
    auto proven = prove(step, batch);
    EXPECT_TRUE(proven.isOk()) << proven.status().message();
    if (!proven.isOk())
      return result;
    EXPECT_OK(
        team_->run(*proven, batch, TinyRun::scalars(number, 1.0), result));
    return result;
  }

  std::vector<double> masters() {
    std::vector<double> all;
    for (int p = 0; p < model_.parameters(); ++p) {
      std::vector<double> values(model_.elements(p));
      std::vector<float> narrow(model_.elements(p));
      const bool wide = model_.masterType() == plan::F64;
      EXPECT_OK(
          readPart(*team_, p, ParameterPart::Master,
                   wide ? static_cast<void *>(values.data()) : narrow.data()));
      if (!wide)
        values.assign(narrow.begin(), narrow.end());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const ExecutableGraph &graph(int index) { return planners_[index]->graph(); }
  int home() const { return home_; }
  const SwitchTable &table() const { return *table_; }
  RankTeam &team() { return *team_; }

private:
  TinyProgram program_;
  Model model_;
  std::vector<std::unique_ptr<Planner>> planners_;
  int home_ = 0;
  std::optional<SwitchTable> table_;
  std::vector<int64_t> regionBytes_; ///< of each rank; empty: not limited
  bool isTight_ = false, splitsBackward_ = false;
  UpdateRules updates_;
  std::unique_ptr<RankTeam> team_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_SWITCHEDSTEPS_H
