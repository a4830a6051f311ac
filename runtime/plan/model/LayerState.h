//===- LayerState.h - Describes pruned and frozen layers ------------------===//
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

  bool isDefault() const { return *this == LayerState(); }
  bool operator==(const LayerState &other) const {
    return key() == other.key();
  }
  bool operator<(const LayerState &other) const { return key() < other.key(); }

private:
  std::tuple<double, WeightForm, bool, bool> key() const {
    return {sparsity, form, frozen, prefix};
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

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_LAYERSTATE_H
