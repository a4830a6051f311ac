//===- LayerState.h - Describes pruned, frozen and exited layers ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pruning and freezing change what a layer computes and keeps from step to step. Costs
// and formulas of memory take this as the state of each layer:
//
//     state         values            gradient and moments   products
//     dense         all               all                    dense
//     masked        all, some are 0   all                    dense
//     CSR           survivors, with   of survivors           by survivors
//                   two indices
//     frozen        of the form       none                   no weight gradient
//
// Layers that are frozen, as are all layers before them, are a *prefix*. They
// run forward alone, and keep nothing for backward. The layer behind the prefix
// has the function of its kind, which computes an unused gradient of the input.
//
// Tokens may also leave the model at an exit. Layers behind it then compute fewer tokens.
// Plans are made before that is known, so that memory and messages are those of all tokens.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_LAYERSTATE_H
#define DYNA_RUNTIME_PLAN_LAYERSTATE_H

#include "runtime/plan/model/Model.h"

#include <tuple>
#include <vector>

namespace dyna {

/// Form of the weights of a layer's products in memory.
enum class WeightForm { Dense, Masked, Csr };

/// Returns "dense", "masked" or "CSR".
const char *describeForm(WeightForm form);

struct LayerState {
  double sparsity = 0; ///< share of zeros among the weights of products
  WeightForm form = WeightForm::Dense;
  bool frozen = false; ///< parameters have no gradients
  bool prefix =
      false; ///< frozen, and so is everything before: there is no backward
  /// Share of the tokens that reach the layer. The others left at exits before it.
  double reach = 1;
  bool byTokens = false; ///< single tokens leave; false: whole samples do

  bool isDefault() const { return *this == LayerState(); }
  bool operator==(const LayerState &other) const {
    return key() == other.key();
  }
  bool operator<(const LayerState &other) const { return key() < other.key(); }

private:
  std::tuple<double, WeightForm, bool, bool, double, bool> key() const {
    return {sparsity, form, frozen, prefix, reach, byTokens};
  }
};

/// States by layer; empty: all are dense and train.
using LayerStates = std::vector<LayerState>;

/// Returns true if the kind multiplies by weights. An embedding looks rows up instead.
bool hasProducts(const plan::LayerKind &kind);

/// Sets `prefix` of all layers, by which are frozen. Layers with zeros that are called
/// dense become masked. Fails if there is not one state for each layer, or if all layers
/// are frozen. Fails if a sparsity is outside [0, 1), or if a layer without products has
/// one. Fails if a parameter is shared by layers that train and layers that do not.
/// O(layers + parameters).
StatusOr<LayerStates> resolveStates(const Model &model, LayerStates states);

/// Returns the state of a parameter: of its layer, or if several layers share it, of the
/// layer with the fewest zeros. Vectors are dense, and so are parameters of layers without
/// products. O(layers).
LayerState parameterState(const Model &model, const LayerStates &states,
                          int parameter);

/// Returns the expected load of a layer that a share of the tokens reaches, of a load of all.
/// If samples leave, all counts shrink by the share. If single tokens leave, each with the
/// same probability and whatever the others do, a pair of two tokens is left if both are. A
/// pair of a token with itself is left if the token is. Segments stay. Counts are rounded,
/// and those that are not 0 stay at least 1.
Load loadThatReaches(const Load &load, const LayerState &state);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_LAYERSTATE_H
