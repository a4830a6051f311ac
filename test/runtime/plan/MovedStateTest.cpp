//===- MovedStateTest.cpp - State of pruned and frozen layers that moves --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/MovedState.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace dyna;

namespace {

Model modelOf(plan::ElementType compute) {
  TinyOptions options;
  options.compute = compute;
  options.hidden = 1200; // ten tiles of the six columns
  options.degrees = {{2, false}};
  return *Model::create(tinyManifest(options));
}

ExecutableGraph graphOf(const Model &model, const char *strategy) {
  return *ExecutableGraph::create(model, *parseStrategy(strategy));
}

/// Returns states in which layer 1 has a state, and all others are dense.
LayerStates stateOfLayer1(const Model &model, const LayerState &state) {
  LayerStates states(model.layers());
  states[1] = state;
  return states;
}

/// Counts what of layer 1 goes to another rank, weight by weight.
int64_t bytesOfLayer1(const Model &model, const LayerState &state) {
  const int64_t word = elementBytes(model.masterType());
  int64_t bytes = 0;
  for (int p : model.layer(1).parameters()) {
    const bool isMatrix = model.parameter(p).shape_size() > 1;
    const bool isSparse = state.form == WeightForm::Csr && isMatrix;
    int64_t left = 0;
    for (int64_t i = 0; i < model.elements(p); ++i)
      left += !isSparse ||
              static_cast<double>(i) + 0.5 <
                  (1 - state.sparsity) * static_cast<double>(model.elements(p));
    const int64_t value = elementBytes(model.computeType(p));
    bytes += left * value;
    if (!state.frozen)
      bytes += left * (2 * word + (model.hasCopy(p) ? word : 0));
    if (state.form == WeightForm::Masked && isMatrix && !state.frozen)
      bytes += left;
    if (isSparse)
      bytes += left * (state.prefix ? 1 : 4) +
               10 * (state.prefix ? 264 : 528); // tiles
  }
  return bytes;
}

TEST(MovedStateTest, BytesAreCounted) {
  for (plan::ElementType type : {plan::F64, plan::BF16}) {
    const Model model = modelOf(type);
    const ExecutableGraph from = graphOf(model, "pp=2,layers=2+3");
    const ExecutableGraph to = graphOf(model, "pp=2,layers=1+4");
    EXPECT_EQ(missingBytes(movedState(from, to, {})),
              missingBytes(stateTensors(from, to)));
    EXPECT_EQ(movedState(from, to, {}).size(), stateTensors(from, to).size());
    for (WeightForm form :
         {WeightForm::Dense, WeightForm::Masked, WeightForm::Csr})
      for (int bits = 0; bits < 3; ++bits) {
        LayerState state;
        state.sparsity = form == WeightForm::Dense ? 0 : 0.9;
        state.form = form;
        state.frozen = bits > 0;
        state.prefix = bits > 1;
        EXPECT_EQ(
            missingBytes(movedState(from, to, stateOfLayer1(model, state))),
            bytesOfLayer1(model, state))
            << describeForm(form) << " " << bits;
      }
  }
}

TEST(MovedStateTest, SomethingOfAWeightMoves) {
  const Model model = modelOf(plan::F64);
  LayerState state;
  state.sparsity = 0.9999;
  state.form = WeightForm::Csr;
  const auto tensors = movedState(graphOf(model, "pp=2,layers=2+3"),
                                  graphOf(model, "pp=2,layers=1+4"),
                                  stateOfLayer1(model, state));
  for (int p : model.layer(1).parameters())
    EXPECT_TRUE(std::any_of(tensors.begin(), tensors.end(),
                            [&](const SwitchTensor &tensor) {
                              return tensor.parameter == p &&
                                     !tensor.from.empty() &&
                                     tensor.part == ParameterPart::FirstMoment;
                            }))
        << p;
}

// A run that has masks carries no second one.
TEST(MovedStateTest, MasksOfRunsCountOnce) {
  Model model = modelOf(plan::F64);
  LayerState state;
  state.sparsity = 0.5;
  state.form = WeightForm::Masked;
  const LayerStates states = stateOfLayer1(model, state);
  const int64_t expected = bytesOfLayer1(model, state);
  std::vector<bool> masked(model.parameters());
  for (int p : model.layer(1).parameters())
    masked[p] = model.parameter(p).shape_size() > 1;
  model.setMasks(masked);
  EXPECT_EQ(missingBytes(movedState(graphOf(model, "pp=2,layers=2+3"),
                                    graphOf(model, "pp=2,layers=1+4"), states)),
            expected);
}

// Whatever the shards, boxes of survivors meet without gaps: every switch can be planned, and
// all ranks together have the weight once.
TEST(MovedStateTest, SwitchesOfSurvivorsAreComplete) {
  const Model model = modelOf(plan::F64);
  LayerState state;
  state.sparsity = 0.77;
  state.form = WeightForm::Csr;
  LayerStates states(model.layers(), state);
  states.front() = states.back() = LayerState();
  const char *const strategies[] = {"pp=4,layers=1+1+1+2", "dp=4,zero=1",
                                    "tp=2,pp=2,layers=3+2", "dp=2,tp=2",
                                    "dp=1"};
  for (const char *first : strategies)
    for (const char *second : strategies) {
      const ExecutableGraph from = graphOf(model, first);
      const ExecutableGraph to = graphOf(model, second);
      const auto tensors = movedState(from, to, states);
      SwitchNetwork network;
      network.ranks = network.ranksPerNode = 4;
      auto plan = planSwitch(tensors, network);
      ASSERT_TRUE(plan.isOk())
          << first << " -> " << second << ": " << plan.status().message();
      EXPECT_TRUE(checkSwitch(tensors, 4, *plan).isOk());
      if (first == second) {
        EXPECT_EQ(missingBytes(tensors), 0);
      }
    }
}

} // namespace
