//===- ManifestView.h - The manifest, checked -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A manifest comes from outside (it is embedded in a binary, which may be
// damaged, and fuzzed in tests), so nothing uses one before `checkManifest`
// accepted it. A `ManifestView` is the proof of that, with the facts that
// everybody derives from a manifest worked out once: sizes of tiers, owners of
// parameters, flops.
//
// Owners: a parameter may be used by several layers (tied embeddings). All of
// them add to one gradient; the first layer of the chain that uses it *owns* it
// and alone updates it. The others see "not here" in `update`, `grad_norm` and
// `cast`.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MANIFESTVIEW_H
#define DYNA_RUNTIME_PLAN_MANIFESTVIEW_H

#include "runtime/base/Status.h"
#include "runtime/plan/Bytes.h"
#include "runtime/plan/Manifest.pb.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

/// What one rank of a strategy has of the model (ExecutableGraph::rankView).
struct RankPart {
  struct Parameter {
    bool here = false; ///< used by a layer of this rank
    /// This rank's part of the logical tensor: rows (dimension 0) and elements
    /// of each, and where they begin. Where rows are dealt unevenly, its buffer
    /// has the rows of the first rank.
    int64_t rows = 0, rowElements = 0;
    int64_t firstRow = 0, firstColumn = 0;
    /// The rows of this rank's part that it updates: all of them, or with ZeRO
    /// its share.
    int64_t updateBegin = 0, updateEnd = 0;
    /// Whether this rank's rows count in the gradient's norm: each element does
    /// on one rank.
    bool counts = true;
    /// Ranks that hold it and sum its gradients; with this one.
    int holders = 1;
  };
  int firstLayer = 0, endLayer = 0;
  int ranks = 1; ///< of the whole strategy
  int tp = 1, shard = 0;
  int degree = -1; ///< index into Manifest.degrees, -1 for tp=1
  bool zero = false;
  std::vector<Parameter> parameters;
};

/// The hash that `Manifest.hash` holds: FNV-1a of the serialised message
/// without what no plan depends on: hash, producer, matmul, strategies.
uint64_t manifestHash(const plan::Manifest &manifest);

/// Whether everything in the manifest is in range and the chain of layers fits
/// together. The message names the offending entry.
Status checkManifest(const plan::Manifest &manifest);

class ManifestView {
public:
  static StatusOr<ManifestView> create(plan::Manifest manifest);
  /// From the serialised message.
  static StatusOr<ManifestView> parse(const void *data, int64_t bytes);

  const plan::Manifest &manifest() const { return *manifest_; }
  uint64_t hash() const { return manifest_->hash(); }

  /// Layers of the whole model. A view of a rank has the layers
  /// [firstLayer, endLayer) of them; everything is indexed as in the model.
  int layers() const { return manifest_->layers_size(); }
  int firstLayer() const { return part_.firstLayer; }
  int endLayer() const { return part_.endLayer; }
  bool hasLayer(int layer) const {
    return part_.firstLayer <= layer && layer < part_.endLayer;
  }
  /// The layer whose output is the loss.
  bool givesLoss(int layer) const { return layer == layers() - 1; }
  /// The view of a rank; `part` has an entry for every parameter.
  ManifestView restrictedTo(RankPart part) const;
  const plan::Layer &layer(int index) const { return manifest_->layers(index); }
  const plan::LayerKind &kind(int layer) const {
    int index = manifest_->layers(layer).kind();
    return part_.degree < 0 ? manifest_->kinds(index)
                            : manifest_->degrees(part_.degree).kinds(index);
  }
  /// The place of the layer's kind in the table of a variant's functions.
  int functionKind(int layer) const {
    return (part_.degree + 1) * manifest_->kinds_size() +
           manifest_->layers(layer).kind();
  }
  bool hasRole(int layer, int role) const {
    return kind(layer).roles(role).present();
  }
  /// What the layer's function of this role exchanges, in order.
  const google::protobuf::RepeatedPtrField<plan::LayerExchange> &
  exchanges(int layer, int role) const {
    return kind(layer).roles(role).exchanges();
  }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  int parameters() const { return manifest_->parameters_size(); }
  const plan::Parameter &parameter(int index) const {
    return manifest_->parameters(index);
  }
  /// Elements of the buffer that layer functions see.
  int64_t elements(int parameter) const { return elements_[parameter]; }
  /// Elements of all parameters.
  int64_t totalElements() const;
  /// Index of a parameter by name, -1 if there is none.
  int findParameter(const std::string &name) const;
  /// Type of masters and optimizer state.
  plan::ElementType masterType() const {
    return manifest_->compute_type() == plan::F64 ? plan::F64 : plan::F32;
  }
  /// Type of the gradients of parameters.
  plan::ElementType gradientType() const {
    plan::ElementType type = manifest_->gradient_type();
    return type == plan::ELEMENT_UNKNOWN ? masterType() : type;
  }
  /// The type that layer functions see.
  plan::ElementType computeType(int parameter) const {
    return computeTypes_[parameter];
  }
  /// Whether a copy in the compute type lies beside the master.
  bool hasCopy(int parameter) const {
    return computeType(parameter) != masterType();
  }
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
  /// The layer of this view that updates the parameter, -1 for none.
  int owner(int parameter) const { return owners_[parameter]; }
  /// Whether `layer` updates the parameter in its list at `slot`.
  bool updates(int layer, int slot) const;
  bool ownsParameters(int layer) const;
  /// Whether a parameter that the layer updates has other holders.
  bool sharesParameters(int layer) const;

  //===--------------------------------------------------------------------===//
  // Memory of one layer and micro-batch
  //===--------------------------------------------------------------------===//

  int64_t inputBytes(int layer, const Extent &extent) const {
    return linearBytes(kind(layer).input_tier(), extent);
  }
  int64_t productsBytes(int layer, const Extent &extent) const {
    return linearBytes(kind(layer).products_tier(), extent);
  }
  int64_t elementwiseBytes(int layer, const Extent &extent) const {
    return linearBytes(kind(layer).elementwise_tier(), extent);
  }
  int64_t deferredBytes(int layer, const Extent &extent) const {
    return linearBytes(kind(layer).deferred_tier(), extent);
  }
  int64_t workspaceBytes(int layer, int role, const Extent &extent) const {
    return linearBytes(kind(layer).roles(role).workspace(), extent);
  }
  /// Rows of an activation of this specification in a micro-batch.
  int64_t rowsOf(const plan::TensorSpec &spec, const Extent &extent) const;
  /// The layer's input itself, without rounding: what crosses between stages.
  int64_t messageBytes(int layer, const Extent &extent) const;
  /// The gradient of the layer's input; 0 for the first layer (token ids).
  int64_t gradientBytes(int layer, const Extent &extent) const;
  /// From forward to backward: input and what `mode` keeps.
  int64_t keptBytes(int layer, plan::Recompute mode,
                    const Extent &extent) const;
  /// What `mode` does not keep, then (with `deferred`) the deferred tier.
  int64_t lateBytes(int layer, plan::Recompute mode, bool deferred,
                    const Extent &extent) const;
  /// The mode that the layer has nearest to the one wished for: a kind without
  /// the recompute function of a mode keeps more instead.
  plan::Recompute nearestMode(int layer, plan::Recompute wished) const;
  /// Whether backward comes as two functions.
  bool splitsBackward(int layer) const {
    return hasRole(layer, DYNA_ROLE_BACKWARD_INPUT) &&
           hasRole(layer, DYNA_ROLE_BACKWARD_WEIGHT);
  }

  //===--------------------------------------------------------------------===//
  // Work
  //===--------------------------------------------------------------------===//

  /// Matrix-product flops of one forward. `pairs`: visible (query, key) pairs.
  double forwardFlops(int layer, int64_t tokens, int64_t targets,
                      int64_t pairs) const;
  /// Of a training step: three times the forward's, recomputation not counted.
  double trainingFlops(int64_t tokens, int64_t targets, int64_t pairs) const;
  /// Visible pairs of one sample.
  int64_t visiblePairs(int layer, int64_t tokens) const {
    return kind(layer).causal() ? tokens * (tokens + 1) / 2 : tokens * tokens;
  }

private:
  void resolve();

  std::shared_ptr<const plan::Manifest>
      manifest_; ///< shared by all restrictions
  std::vector<int64_t> elements_;
  std::vector<plan::ElementType> computeTypes_;
  std::vector<int> owners_;
  RankPart part_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_MANIFESTVIEW_H
