//===- CostModel.h - Seconds of layer functions -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What every decision that weighs time asks: the measured curve of a function
// where the table has one, otherwise an estimate, `max(flops / rate, bytes /
// rate) + launch`. Bytes are those that the function reads and writes once:
// parameters (of a kind without products the rows that it looks up), input,
// output, what it saves, gradients. At a tensor degree the exchanges that the
// manifest lists for the function come on top, one after another
// (Cluster.h); a curve measured on ranks has them already. Where the table
// describes scores (StoredScores.h), estimates have attention that stores them:
// products of all pairs, and behind them what the scores move, in kernels of
// their own.
//
// Layers may be pruned and frozen (LayerState.h). The share of products by weights in a
// function's seconds is that of the estimate: their flops at the device's rate. This share
// is scaled as the table of sparse products says, also if the seconds were measured.
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

/// What a function of a DYNA_ROLE_* is entered as in tables of costs;
/// DIRECTION_UNKNOWN for those that no costs exist for, and for -1.
cost::Direction directionOf(int role);

/// What tells a kind of layer from one of the same name in another model.
cost::Layer layerOf(const plan::LayerKind &kind);

class CostModel {
public:
  /// Measured by `table`. Fails if the table is of another model. It then names a kind
  /// that the model lacks, or says that it is another layer there, or has slices behind
  /// the model's positions. Fails too if only one of both has scores. `model` must outlive
  /// this.
  static StatusOr<CostModel> create(const Model &model, CostTable table);
  /// The same for a file, or for an empty path nothing measured.
  static StatusOr<CostModel> open(const Model &model, const std::string &path);
  /// Nothing measured.
  explicit CostModel(const Model &model)
      : model_(&model), table_(CostTable::host()) {}

  const Model &model() const { return *model_; }
  const CostTable &table() const { return table_; }

  //===--------------------------------------------------------------------===//
  // States of layers: layers of one kind cost the same if their states are equal.
  //===--------------------------------------------------------------------===//

  /// Takes the states of all layers. Weights with zeros that are called dense get the form
  /// with which the layer takes less time, masked or CSR. Fails as `resolveStates`.
  Status setStates(LayerStates states);
  /// States by layer; empty: all are dense and train.
  const LayerStates &layerStates() const { return layerStates_; }
  /// Distinct states. The first one is that of dense layers that train.
  const std::vector<LayerState> &states() const { return states_; }
  /// Returns what a layer of the model is at the strategy's tensor degree.
  KindAt at(int layer, const Strategy &strategy, int perNode = 0) const {
    return {model_->layer(layer).kind(), strategy.tp, strategy.sp, perNode,
            stateOf_.empty() ? 0 : stateOf_[layer]};
  }
  /// Returns the number of a layer's kind and state together, below `variants()`. Without
  /// states, this is the number of the kind.
  int variantOf(int layer) const {
    return (stateOf_.empty() ? 0 : stateOf_[layer]) * kinds() +
           model_->layer(layer).kind();
  }
  int variants() const { return static_cast<int>(states_.size()) * kinds(); }

  /// Returns the seconds of one call. A degree that was not compiled costs as much as
  /// tp=1. Layers with a state cost as much as dense ones, but for their products by
  /// weights (SparseProducts.h) and for what they do not run. Token slices cost what points with context say (CostCurve.h), if the function
  /// has such points.
  double seconds(const KindAt &at, cost::Direction direction,
                 const Load &load) const;
  bool isMeasured(const KindAt &at, cost::Direction direction) const {
    return table_.curves().count(keyOf(at, direction)) > 0;
  }
  /// Returns true if slices of some function were measured.
  bool measuresSlices() const;
  CostKey keyOf(const KindAt &at, cost::Direction direction) const;
  /// What the table's entries were measured in, where that is another compute type
  /// than the model's; else empty, as where the table does not say.
  std::string otherComputeType() const;
  /// The same as a line for people; empty: there is nothing to say.
  std::string describeOtherType() const;
  double estimate(const KindAt &at, cost::Direction direction,
                  const Load &load) const;
  /// Returns the part of `estimate` that ranks exchange inside of the function.
  double estimateExchanges(const KindAt &at, cost::Direction direction,
                           const Load &load) const;
  /// Matrix-product flops per second of a device in the model's compute type, at
  /// its full rate.
  double peakFlopRate() const;
  /// One line for people: which functions are measured, and which rates estimates
  /// assume of which description.
  std::string describeBasis() const;
  const Cluster &cluster() const { return table_.cluster(); }

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
