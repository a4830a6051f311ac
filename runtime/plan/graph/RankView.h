//===- RankView.h - Shows one rank's part of a model ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model as one rank sees it under one strategy: its layers, its parts of
// their parameters, and their memory. An ExecutableGraph makes it. Layers and
// parameters have the model's numbers.
//
// Owners. A parameter may be used by several layers (tied embeddings). All of
// them add to one gradient. The first layer of this rank that uses it *owns* it
// and alone updates it. For the others the tensor is "not here" in `update`,
// `grad_norm` and `cast`.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_RANKVIEW_H
#define DYNA_RUNTIME_PLAN_RANKVIEW_H

#include "runtime/plan/model/Model.h"

namespace dyna {

/// The part of a strategy that belongs to one rank (ExecutableGraph::rankView).
struct RankPart {
  struct Parameter {
    bool here = false; ///< used by a layer of this rank
    /// This rank's part of the logical tensor: rows (dimension 0), elements of
    /// each, and their begins. If rows are dealt unevenly, its buffer has as
    /// many rows as the first rank's.
    int64_t rows = 0, rowElements = 0;
    int64_t firstRow = 0, firstColumn = 0;
    /// The rows of this rank's part that it updates: all of them, or with ZeRO
    /// its share; of a frozen one none.
    int64_t updateBegin = 0, updateEnd = 0;
    /// True if this rank's rows count in the gradient's norm. Each element
    /// counts on one rank.
    bool counts = true;
    /// Ranks that hold it and sum its gradients; with this one. 1 of a frozen one.
    int holders = 1;
  };
  int firstLayer = 0, endLayer = 0;
  int ranks = 1; ///< of the whole strategy
  int tp = 1, shard = 0;
  int degree = -1; ///< index into Manifest.degrees, -1 for tp=1
  bool zero = false;
  std::vector<Parameter> parameters;
};

class RankView {
public:
  /// `model` must outlive the view; `part` has an entry for every parameter.
  RankView(const Model &model, RankPart part);
  /// Returns the view of a run with one rank.
  static RankView whole(const Model &model);

  const Model &model() const { return *model_; }

  /// Layers of the whole model, of which this rank has [firstLayer, endLayer).
  int layers() const { return model_->layers(); }
  int firstLayer() const { return part_.firstLayer; }
  int endLayer() const { return part_.endLayer; }
  bool hasLayer(int layer) const {
    return part_.firstLayer <= layer && layer < part_.endLayer;
  }
  /// Returns true for layers that give a loss. The second function is true for
  /// layers that hand an activation to another one. Exits do both. The third
  /// function is true for the layer that reads token ids.
  bool givesLoss(int layer) const { return model_->lossOf(layer) >= 0; }
  bool handsOn(int layer) const { return !model_->outputsOf(layer).empty(); }
  bool takesTokens(int layer) const {
    return model_->edge(model_->inputsOf(layer).front()).producer < 0;
  }
  /// Returns true if the layer has a backward.
  bool hasBackward(int layer) const { return dyna::hasBackward(kind(layer)); }
  /// Returns true if backward of the layer gives a gradient of its input.
  bool givesGradient(int layer) const {
    return model_->hasGradient(model_->inputsOf(layer).front());
  }
  /// Returns the layer that an instruction works for. For a message, it is the
  /// consumer of its edge.
  int layerOf(const plan::Instruction &instruction) const;
  const plan::Layer &layer(int index) const { return model_->layer(index); }
  /// Returns the kind as it is compiled for this rank.
  const plan::LayerKind &kind(int layer) const {
    return part_.degree < 0 ? model_->kind(layer)
                            : model_->manifest()
                                  .degrees(part_.degree)
                                  .kinds(model_->layer(layer).kind());
  }
  /// Returns the index of the layer's kind in the table of a variant's
  /// functions.
  int functionKind(int layer) const {
    return (part_.degree + 1) * model_->manifest().kinds_size() +
           model_->layer(layer).kind();
  }
  bool hasRole(int layer, int role) const {
    return dyna::hasRole(kind(layer), role);
  }
  /// Returns the exchanges of the layer's function of this role, in order.
  const google::protobuf::RepeatedPtrField<plan::LayerExchange> &
  exchanges(int layer, int role) const {
    return kind(layer).roles(role).exchanges();
  }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  int parameters() const { return model_->parameters(); }
  const plan::Parameter &parameter(int index) const {
    return model_->parameter(index);
  }
  /// Returns the elements of the buffer that layer functions see.
  int64_t elements(int parameter) const { return elements_[parameter]; }
  /// Types are the model's.
  plan::ElementType masterType() const { return model_->masterType(); }
  plan::ElementType masterType(int parameter) const {
    return model_->masterType(parameter);
  }
  plan::ElementType gradientType() const { return model_->gradientType(); }
  plan::ElementType computeType(int parameter) const {
    return model_->computeType(parameter);
  }
  bool hasCopy(int parameter) const { return model_->hasCopy(parameter); }
  bool isFrozen(int parameter) const { return model_->isFrozen(parameter); }
  bool holds(int parameter) const { return part_.parameters[parameter].here; }
  const RankPart::Parameter &place(int parameter) const {
    return part_.parameters[parameter];
  }
  /// Returns the rows (dimension 0) of the parameter; 1 for a scalar. The
  /// second function returns the elements of each.
  int64_t rows(int parameter) const { return place(parameter).rows; }
  int64_t rowElements(int parameter) const {
    return place(parameter).rowElements;
  }
  int64_t updatedElements(int parameter) const {
    return (place(parameter).updateEnd - place(parameter).updateBegin) *
           rowElements(parameter);
  }
  int ranks() const { return part_.ranks; }
  /// Returns true if the loss of this rank counts; all ranks of a
  /// tensor-parallel group compute the same one.
  bool reportsLoss() const { return part_.shard == 0; }
  /// Returns true if ranks share the optimizer's work (ZeRO-1).
  bool zero() const { return part_.zero; }
  /// Returns the layer of this view that updates the parameter; -1 if none
  /// does, or if the parameter is frozen.
  int owner(int parameter) const { return owners_[parameter]; }
  /// Returns true if `layer` updates the parameter at `slot` of its list.
  bool updates(int layer, int slot) const;
  bool ownsParameters(int layer) const;
  /// Returns true if a parameter that the layer updates has other holders.
  bool sharesParameters(int layer) const;
  /// Returns the slots of the parameters that the layer updates and that other
  /// ranks hold too.
  std::vector<int> sharedSlots(int layer) const;

  //===--------------------------------------------------------------------===//
  // Memory of one layer and micro-batch. `load` is that of stream 0: checkManifest
  // accepts no formula of other rows.
  //===--------------------------------------------------------------------===//

  int64_t tierBytes(int layer, int tier, const Load &load) const {
    const plan::LayerKind &kind = this->kind(layer);
    return linearBytes(kind.tiers(tier), load) +
           (tier == DYNA_TIER_ELEMENTWISE
                ? dyna_align_block(kind.score_bytes_per_pair() * load.pairs)
                : 0);
  }
  int64_t inputBytes(int layer, const Load &load) const {
    return tierBytes(layer, DYNA_TIER_INPUT, load);
  }
  int64_t workspaceBytes(int layer, int role, const Load &load) const {
    return linearBytes(kind(layer).roles(role).workspace(), load);
  }
  /// Returns the bytes of the store for the keys and values of `rows` tokens, and of the
  /// sums of their gradients. Both are 0 for a layer without attention.
  int64_t keyBytes(int layer, int64_t rows) const {
    return dyna_align_block(kind(layer).key_bytes() * dyna_round_rows(rows));
  }
  int64_t keyGradientBytes(int layer, int64_t rows) const {
    return dyna_align_block(kind(layer).key_gradient_bytes() *
                            dyna_round_rows(rows));
  }
  /// Returns the rows of a tensor with this specification.
  int64_t rowsOf(const plan::TensorSpec &spec, const Load &load) const;
  /// Returns the queries of this rank, if the tensor-parallel ranks share them.
  int64_t partTokens(const Load &load) const;
  /// Returns the bytes that an edge sends between stages, not rounded.
  int64_t messageBytes(int edge, const Load &load) const;
  /// Returns the bytes of the gradient of the layer's input; 0 if it gives none.
  int64_t gradientBytes(int layer, const Load &load) const;
  /// Returns the bytes that stay from forward to backward: the input and the tiers that
  /// `mode` keeps.
  int64_t keptBytes(int layer, plan::Recompute mode, const Load &load) const;
  /// Returns the bytes of the tiers that `mode` does not keep. The deferred tier counts
  /// only with `deferred`.
  int64_t lateBytes(int layer, plan::Recompute mode, bool deferred,
                    const Load &load) const;

private:
  const Model *model_;
  RankPart part_;
  std::vector<int64_t> elements_;
  std::vector<int> owners_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_RANKVIEW_H
