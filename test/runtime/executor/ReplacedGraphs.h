//===- ReplacedGraphs.h - Runs whose graphs change, in tests ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_REPLACEDGRAPHS_H
#define DYNA_TEST_RUNTIME_EXECUTOR_REPLACEDGRAPHS_H

#include "runtime/plan/graph/StateTensors.h"
#include "test/runtime/executor/SwitchedSteps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace dyna::test {

/// A run on ranks that are threads, whose graphs are replaced between two steps.
class ReplacedGraphs {
public:
  /// Losses and state after some steps.
  struct Outcome {
    std::vector<double> losses;
    std::vector<std::vector<double>> state; ///< masters, then both moments
  };
  struct Options {
    plan::Recompute recompute = plan::RECOMPUTE_NONE;
    double clip = 0;
    int64_t bucketBytes = 700;
    /// Parts of the state that a broken switch forgets.
    std::vector<ParameterPart> forgotten = {};
    /// Returns true for what a broken switch does not bring to a rank.
    std::function<bool(const SwitchTensor &, const RankBox &)> forgets = {};
    /// Numbers of parameters with masks.
    std::vector<int> masked = {};
    bool isScored = false; ///< these have scores, too
  };

  /// Makes the ranks of this process.
  using MakeTeam = std::function<StatusOr<std::unique_ptr<RankTeam>>(
      const TinyProgram &, const std::vector<GraphUse> &)>;

  ReplacedGraphs(const std::string &strategy, const TinyOptions &tiny,
                 const Carriage &carriage, const Options &options)
      : ReplacedGraphs(
            strategy, tiny,
            [&](const TinyProgram &program, const std::vector<GraphUse> &uses) {
              return threadTeam(program, uses, carriage);
            },
            options) {}
  ReplacedGraphs(const std::string &strategy, const TinyOptions &tiny,
                 const MakeTeam &make, const Options &options)
      : options_(options), program_(tiny),
        model_(*openProgram(program_.program())) {
    if (!options_.masked.empty()) {
      std::vector<bool> masked(model_.parameters());
      for (int p : options_.masked)
        masked[p] = true;
      model_.setMasks(std::move(masked));
      model_.setScores(options_.isScored);
    }
    graph_ = graphOf(strategy);
    auto team = make(program_, {{graph_.get()}});
    EXPECT_TRUE(team.isOk()) << team.status().message();
    team_ = std::move(*team);
    writeMasters(*team_, model_);
    cast();
  }

  std::unique_ptr<ExecutableGraph> graphOf(const std::string &strategy) const {
    auto graph = ExecutableGraph::create(model_, *parseStrategy(strategy));
    EXPECT_TRUE(graph.isOk()) << graph.status().message();
    return std::make_unique<ExecutableGraph>(std::move(*graph));
  }

  Status replace(const std::string &strategy) {
    return replace(graphOf(strategy));
  }

  /// `graph` may be of another model, which must outlive this.
  Status replace(std::unique_ptr<ExecutableGraph> graph) {
    std::vector<SwitchTensor> tensors = stateTensors(*graph_, *graph);
    for (SwitchTensor &tensor : tensors)
      for (ParameterPart part : options_.forgotten)
        if (tensor.part == part)
          tensor.to.clear();
    if (options_.forgets)
      for (SwitchTensor &tensor : tensors)
        tensor.to.erase(std::remove_if(tensor.to.begin(), tensor.to.end(),
                                       [&](const RankBox &box) {
                                         return options_.forgets(tensor, box);
                                       }),
                        tensor.to.end());
    const int ranks = std::max({team_->worldRanks(), graph->ranks()});
    DYNA_ASSIGN_OR_RETURN(SwitchPlan plan,
                          onNodes(ranks, options_.bucketBytes)(tensors));
    DYNA_ASSIGN_OR_RETURN(GraphSwitch state,
                          GraphSwitch::create(std::move(tensors),
                                              std::move(plan), ranks,
                                              model_.parameters()));
    Replacement to;
    to.graphs = {{graph.get()}};
    to.state = &state;
    to.bytesUnderWay = 2 * options_.bucketBytes;
    to.version = team_->version() + 1;
    sentBytes_ = state.sentBytes();
    const auto begin = std::chrono::steady_clock::now();
    DYNA_RETURN_IF_ERROR(team_->replace(to));
    carrySeconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    graph_ = std::move(graph);
    return Status::ok();
  }

  StatusOr<VerifiedStep> plan(const MiniBatch &batch) const {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 24;
    options.recompute = {options_.recompute};
    DYNA_ASSIGN_OR_RETURN(
        plan::Plan plan,
        Planner(*graph_).training(batch.lengths(), batch.targets, options));
    return proveAlone(*graph_, plan, batch);
  }
  static MiniBatch batchOf(int64_t step) {
    return tinyBatch({5, 1, 17, 9, 3, 12, 1, 8, 20, 2}, step + 1);
  }
  Status run(const VerifiedStep &step, const MiniBatch &batch) {
    StepResult result;
    DYNA_RETURN_IF_ERROR(team_->run(
        step, batch, TinyRun::scalars(steps_, options_.clip), result));
    losses_.push_back(result.lossSum);
    ++steps_;
    return Status::ok();
  }
  Status step() {
    const MiniBatch batch = batchOf(steps_);
    DYNA_ASSIGN_OR_RETURN(VerifiedStep step, plan(batch));
    return run(step, batch);
  }

  /// Makes all copies from masters.
  void cast() {
    auto step = proveAlone(*graph_, *Planner(*graph_).cast(), MiniBatch());
    ASSERT_TRUE(step.isOk()) << step.status().message();
    StepResult result;
    EXPECT_OK(team_->run(*step, MiniBatch(), {}, result));
  }

  /// All rows of a part of the state, by parameter. Copies as their bits.
  std::vector<double> read(ParameterPart part) {
    std::vector<double> all;
    for (int p = 0; p < model_.parameters(); ++p) {
      const int64_t elements = model_.elements(p);
      if (part == ParameterPart::Copy && model_.hasCopy(p)) {
        std::vector<uint16_t> bits(elements);
        EXPECT_OK(readPart(*team_, p, part, bits.data()));
        all.insert(all.end(), bits.begin(), bits.end());
      } else if (part != ParameterPart::Copy && isWide()) {
        std::vector<double> values(elements);
        EXPECT_OK(readPart(*team_, p, part, values.data()));
        all.insert(all.end(), values.begin(), values.end());
      } else if (part != ParameterPart::Copy) {
        std::vector<float> values(elements);
        EXPECT_OK(readPart(*team_, p, part, values.data()));
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }
  std::vector<std::vector<double>> state() {
    return {read(ParameterPart::Master), read(ParameterPart::FirstMoment),
            read(ParameterPart::SecondMoment)};
  }

  Outcome outcome() { return {losses_, state()}; }
  RankTeam &team() { return *team_; }
  const Model &model() const { return model_; }
  /// Bytes that the plan of the last replacement sends.
  int64_t sentBytes() const { return sentBytes_; }
  double carrySeconds() const { return carrySeconds_; }
  const ExecutableGraph &graph() const { return *graph_; }

private:
  bool isWide() const { return model_.masterType() == plan::F64; }

  const Options options_;
  TinyProgram program_;
  Model model_;
  std::unique_ptr<ExecutableGraph> graph_;
  std::unique_ptr<RankTeam> team_;
  std::vector<double> losses_;
  int64_t steps_ = 0;
  int64_t sentBytes_ = 0;
  double carrySeconds_ = 0;
};

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_EXECUTOR_REPLACEDGRAPHS_H
