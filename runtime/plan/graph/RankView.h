//===- RankView.h - What one rank has of a model ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model as one rank sees it under one strategy: its layers, its parts of their
// parameters, and the memory that they take. Made by an ExecutableGraph. Layers
// and parameters are numbered as in the model.
//
// Owners: a parameter may be used by several layers (tied embeddings). All of
// them add to one gradient; the first layer of this rank that uses it *owns* it
// and alone updates it. The others see "not here" in `update`, `grad_norm` and
// `cast`.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_RANKVIEW_H
#define DYNA_RUNTIME_PLAN_RANKVIEW_H

#include "runtime/plan/model/Model.h"

namespace dyna {

/// What the strategy says of one rank (ExecutableGraph::rankView).
struct RankPart {
  struct Parameter {
    bool here = false; ///< used by a layer of this rank
    /// This rank's part of the logical tensor: rows (dimension 0) and elements
    /// of each, and where they begin. Where rows are dealt unevenly, its buffer
    /// has the rows of the first rank.
    int64_t rows = 0, rowElements = 0;
    int64_t firstRow = 0, firstColumn = 0;
    /// The rows of this rank's part that it updates: all of them, or with ZeRO
    /// its share; of a frozen one none.
    int64_t updateBegin = 0, updateEnd = 0;
    /// Whether this rank's rows count in the gradient's norm: each element does
    /// on one rank.
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
  /// Of the only rank there is.
  static RankView whole(const Model &model);

  const Model &model() const { return *model_; }

  /// Layers of the whole model, of which this rank has [firstLayer, endLayer).
  int layers() const { return model_->layers(); }
  int firstLayer() const { return part_.firstLayer; }
  int endLayer() const { return part_.endLayer; }
  bool hasLayer(int layer) const {
    return part_.firstLayer <= layer && layer < part_.endLayer;
  }
  /// The layer whose output is the loss, and the one that takes token ids.
  bool givesLoss(int layer) const { return model_->outputsOf(layer).empty(); }
  bool takesTokens(int layer) const {
    return model_->edge(model_->inputsOf(layer).front()).producer < 0;
  }
  /// Layer that an instruction works for. For a message, the consumer of its edge.
  int layerOf(const plan::Instruction &instruction) const;
  const plan::Layer &layer(int index) const { return model_->layer(index); }
  /// As it is compiled for this rank.
  const plan::LayerKind &kind(int layer) const {
    return part_.degree < 0 ? model_->kind(layer)
                            : model_->manifest()
                                  .degrees(part_.degree)
                                  .kinds(model_->layer(layer).kind());
  }
  /// The place of the layer's kind in the table of a variant's functions.
  int functionKind(int layer) const {
    return (part_.degree + 1) * model_->manifest().kinds_size() +
           model_->layer(layer).kind();
  }
  bool hasRole(int layer, int role) const {
    return dyna::hasRole(kind(layer), role);
  }
  /// What the layer's function of this role exchanges, in order.
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
  /// Elements of the buffer that layer functions see.
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
  /// Rows (dimension 0) of the parameter and elements of each; 1 row for a
  /// scalar.
  int64_t rows(int parameter) const { return place(parameter).rows; }
  int64_t rowElements(int parameter) const {
    return place(parameter).rowElements;
  }
  int64_t updatedElements(int parameter) const {
    return (place(parameter).updateEnd - place(parameter).updateBegin) *
           rowElements(parameter);
  }
  int ranks() const { return part_.ranks; }
  /// Whether the loss that this rank computes counts: all ranks of a
  /// tensor-parallel group compute the same.
  bool reportsLoss() const { return part_.shard == 0; }
  /// Whether ranks share the optimizer's work (ZeRO-1).
  bool zero() const { return part_.zero; }
  /// The layer of this view that updates the parameter, -1 for none: also of a frozen
  /// one.
  int owner(int parameter) const { return owners_[parameter]; }
  /// Whether `layer` updates the parameter in its list at `slot`.
  bool updates(int layer, int slot) const;
  bool ownsParameters(int layer) const;
  /// Whether a parameter that the layer updates has other holders.
  bool sharesParameters(int layer) const;
  /// Slots of the parameters that the layer updates and other ranks hold too.
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
  /// Returns the queries of this rank where they are dealt to the tensor-parallel
  /// ranks.
  int64_t partTokens(const Load &load) const;
  /// Returns the bytes of what an edge carries without rounding, as they are sent
  /// between stages.
  int64_t messageBytes(int edge, const Load &load) const;
  /// Returns the bytes of the gradient of the layer's input; 0 for the first layer,
  /// which takes token ids.
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
