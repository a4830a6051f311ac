//===- StateSeconds.cpp - Predicts seconds of pruned and frozen layers ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostModel.h"

#include "runtime/abi/Kernels.h"

#include <algorithm>

namespace dyna {
namespace {

/// Flops of the products by weights that a call has, each as one product of forward.
struct ProductFlops {
  double flops = 0;
  std::array<bool, allProducts.size()> has{}; ///< by product
};

/// Returns those of the layer and those of the loss. Forward computes the loss together
/// with its gradients.
std::array<ProductFlops, 2> productsOf(const plan::LayerKind &kind,
                                       const KindAt &at,
                                       cost::Direction direction,
                                       const Load &load) {
  const int64_t part = dyna_part_size(load.queries, at.tp, 0);
  ProductFlops layer, loss;
  layer.flops = static_cast<double>(kind.flops_per_token()) *
                    static_cast<double>(load.queries) +
                static_cast<double>(kind.flops_per_part_token()) *
                    static_cast<double>(part);
  loss.flops = static_cast<double>(kind.flops_per_target()) *
               static_cast<double>(load.targets);
  switch (direction) {
  case cost::FORWARD:
    layer.has = {true, false, false};
    loss.has = {true, true, true};
    break;
  case cost::RECOMPUTE_FULL:
    layer.has = {true, false, false};
    break;
  case cost::BACKWARD:
    layer.has = {false, true, true};
    break;
  case cost::BACKWARD_INPUT:
    layer.has = {false, true, false};
    break;
  case cost::BACKWARD_WEIGHT:
    layer.has = {false, false, true};
    break;
  default:
    break;
  }
  return {layer, loss};
}

/// Returns the share of a kind's parameters that is updated in a state.
double updatedShare(const plan::LayerKind &kind, const LayerState &state) {
  if (state.frozen)
    return 0;
  if (state.form != WeightForm::Csr)
    return 1;
  double all = 0, left = 0;
  for (const plan::TensorSpec &spec : kind.parameters()) {
    double elements = 1;
    for (int64_t size : spec.shape())
      elements *= static_cast<double>(size);
    all += elements;
    left += elements * (spec.shape_size() > 1 ? 1 - state.sparsity : 1);
  }
  return all > 0 ? left / all : 1;
}

bool runsOncePerStep(cost::Direction direction) {
  return direction == cost::UPDATE || direction == cost::GRAD_NORM;
}

} // namespace

Status CostModel::setStates(LayerStates states) {
  LayerStates asked = states;
  DYNA_ASSIGN_OR_RETURN(states, resolveStates(*model_, std::move(states)));
  std::vector<LayerState> distinct = {LayerState()};
  std::vector<int> stateOf;
  for (size_t l = 0; l < states.size(); ++l) {
    if (asked[l].form == WeightForm::Dense)
      states[l].form = table_.sparse().fastest(states[l]);
    const auto found = std::find(distinct.begin(), distinct.end(), states[l]);
    stateOf.push_back(static_cast<int>(found - distinct.begin()));
    if (found == distinct.end())
      distinct.push_back(states[l]);
  }
  layerStates_ = std::move(states);
  states_ = std::move(distinct);
  stateOf_ = std::move(stateOf);
  return Status::ok();
}

double CostModel::stateSeconds(const KindAt &at, cost::Direction direction,
                               const Load &load) const {
  const LayerState &state = states_[at.state];
  const plan::LayerKind &kind = compiledKind(model_->manifest(), at);
  // A half of backward that does not run takes no time, not even a launch.
  if ((state.prefix && direction != cost::FORWARD) ||
      (state.frozen && direction == cost::BACKWARD_WEIGHT))
    return 0;
  const double dense = denseSeconds(at, direction, load);
  if (runsOncePerStep(direction))
    return dense * updatedShare(kind, state);
  const double estimated = estimate(at, direction, load);
  // So many flops fit into the estimated time.
  const double room =
      reached(peakFlopRate(), table_.device().flops_reach()) * estimated;
  double all = 0, change = 0; // of flops
  for (const ProductFlops &products : productsOf(kind, at, direction, load))
    for (Product product : allProducts)
      if (products.has[static_cast<size_t>(product)]) {
        const bool isGone = product == Product::WeightGradient && state.frozen;
        all += products.flops;
        change += products.flops *
                  ((isGone ? 0
                           : table_.sparse().share(product, state.form,
                                                   state.sparsity)) -
                   1);
      }
  if (all == 0)
    return dense;
  // If memory limits the time, saved flops save no time until products
  // dominate.
  return dense * (1 + change / std::max(all, room));
}

} // namespace dyna
