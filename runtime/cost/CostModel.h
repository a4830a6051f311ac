//===- CostModel.h - Predicts the seconds of layer functions ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All decisions that weigh time ask this model. It uses the measured curve of a
// function if the table has one. Otherwise it estimates `max(flops / rate,
// bytes / rate) + launch`. Bytes are those that the function reads and writes
// once. They are parameters, input, output, saved values and gradients. A kind
// without products reads only the rows of parameters that it looks up. At a
// tensor degree, estimates add the exchanges of the function in the manifest,
// one after another (Cluster.h). A curve measured on ranks already contains
// them. If the table describes stored scores (StoredScores.h), estimates
// contain attention that stores them. It computes the products of all pairs,
// and then moves the scores in kernels of their own.
//
// Layers may be pruned and frozen (LayerState.h), and tokens may leave before them. The share of products by
// weights in a function's seconds is that of the estimate: their flops at the
// device's rate. This share is scaled as the table of sparse products says,
// also if the seconds were measured.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_COSTMODEL_H
#define DYNA_RUNTIME_COST_COSTMODEL_H

#include "runtime/cost/CostTable.h"
#include "runtime/cost/KindAt.h"
#include "runtime/plan/model/LayerState.h"
#include "runtime/plan/model/Strategy.h"

#include <optional>

namespace dyna {

/// Returns the direction of a DYNA_ROLE_* in tables of costs. DIRECTION_UNKNOWN
/// for -1 and for roles without costs.
cost::Direction directionOf(int role);

/// Returns the numbers that tell a layer kind from one of the same name in
/// another model.
cost::Layer layerOf(const plan::LayerKind &kind);

class CostModel {
public:
  /// Makes a model that uses `table`. Fails if the table is of another model,
  /// which has a kind that is unknown or different here, or slices beyond the
  /// model's positions. Also fails if only one of both has scores. `model` must
  /// outlive the result.
  static StatusOr<CostModel> create(const Model &model, CostTable table);
  /// Makes a model that uses a file. With an empty path nothing is measured.
  static StatusOr<CostModel> open(const Model &model, const std::string &path);
  /// Makes a model without measurements, with the built-in host device.
  explicit CostModel(const Model &model)
      : model_(&model), table_(CostTable::host()) {}

  const Model &model() const { return *model_; }
  const CostTable &table() const { return table_; }

  //===--------------------------------------------------------------------===//
  // States of layers: layers of one kind cost the same if their states are equal.
  //===--------------------------------------------------------------------===//

  /// Sets the states of all layers. Weights with zeros that are given as dense
  /// get the form that is faster for the layer, masked or CSR. Fails as
  /// `resolveStates`.
  Status setStates(LayerStates states);
  /// Returns the states by layer; empty: all are dense and train.
  const LayerStates &layerStates() const { return layerStates_; }
  /// Returns the distinct states. The first state describes dense layers that
  /// train.
  const std::vector<LayerState> &states() const { return states_; }
  /// Returns kind and state of a layer at the strategy's tensor degree.
  KindAt at(int layer, const Strategy &strategy, int perNode = 0) const {
    return {model_->layer(layer).kind(), strategy.tp, strategy.sp, perNode,
            stateOf_.empty() ? 0 : stateOf_[layer]};
  }
  /// Returns the number of a layer's combination of kind and state, below
  /// `variants()`. Without states, this is the number of the kind.
  int variantOf(int layer) const {
    return (stateOf_.empty() ? 0 : stateOf_[layer]) * kinds() +
           model_->layer(layer).kind();
  }
  int variants() const { return static_cast<int>(states_.size()) * kinds(); }

  /// Returns the seconds of one call. A degree that was not compiled costs as
  /// much as tp=1. Layers with a state cost as much as dense ones, except for
  /// their products by weights (SparseProducts.h) and for functions that they
  /// do not run. Token slices use points with context if the function has any
  /// (CostCurve.h).
  double seconds(const KindAt &at, cost::Direction direction,
                 const Load &load) const;
  bool isMeasured(const KindAt &at, cost::Direction direction) const {
    return table_.curves().count(keyOf(at, direction)) > 0;
  }
  /// Returns true if slices of some function were measured.
  bool measuresSlices() const;
  CostKey keyOf(const KindAt &at, cost::Direction direction) const;
  /// Returns the compute type of the table's entries if it differs from the
  /// model's. Empty if it is the same or if the table does not name it.
  std::string otherComputeType() const;
  /// Returns the difference of compute types as a line for people; empty if
  /// there is none.
  std::string describeOtherType() const;
  double estimate(const KindAt &at, cost::Direction direction,
                  const Load &load) const;
  /// Returns the part of `estimate` that ranks exchange inside of the function.
  double estimateExchanges(const KindAt &at, cost::Direction direction,
                           const Load &load) const;
  /// Returns the full rate of a device for matrix products in the model's
  /// compute type, in flops per second.
  double peakFlopRate() const;
  /// Returns one line for people: which functions are measured, and which
  /// description gives the rates of estimates.
  std::string describeBasis() const;
  const Cluster &cluster() const { return table_.cluster(); }
  /// Sets the device of each rank, as Cluster does.
  void placeRanks(std::vector<int> devices) {
    table_.placeRanks(std::move(devices));
  }

private:
  int kinds() const { return model_->manifest().kinds_size(); }
  double denseSeconds(const KindAt &at, cost::Direction direction,
                      const Load &load) const;
  double stateSeconds(const KindAt &at, cost::Direction direction,
                      const Load &load) const;

  const Model *model_;
  CostTable table_;
  LayerStates layerStates_;
  std::vector<LayerState> states_ = {LayerState()};
  std::vector<int> stateOf_; ///< by layer; empty: 0
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTMODEL_H
