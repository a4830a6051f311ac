//===- Model.h - Represents the model that a binary was compiled from -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A manifest comes from outside: it is embedded in a binary, which may be
// damaged, and tests fuzz it. So nothing uses a manifest before `checkManifest`
// has accepted it. A `Model` has an accepted manifest. It also has facts that
// are derived from it once: types, flops, and which layers use which
// parameters. It is the logical graph, without ranks. A RankView shows one
// rank's part under a strategy.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MODEL_H
#define DYNA_RUNTIME_PLAN_MODEL_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/Manifest.pb.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/plan/program/Plan.h"

#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// Returns the hash that `Manifest.hash` holds: FNV-1a of the serialised
/// message without fields that no plan depends on. These are hash, producer,
/// matmul and strategies.
uint64_t manifestHash(const plan::Manifest &manifest);

/// Checks that everything in the manifest is in range and the chain of layers
/// fits together. An error names the wrong entry.
Status checkManifest(const plan::Manifest &manifest);

/// A value that a layer takes: the output of another layer, or token ids. Messages
/// carry the activation to the consumer, and its gradient back to the producer.
struct Edge {
  int producer = -1; ///< layer; -1 for token ids
  int consumer = 0;  ///< layer
  int input = 0;     ///< index among the consumer's inputs
};

class Model {
public:
  static StatusOr<Model> create(plan::Manifest manifest);
  /// Builds a model without `checkManifest`. For tests of graphs that are no chain:
  /// every producer must be an earlier layer.
  static Model unchecked(plan::Manifest manifest);
  /// Reads the serialised message.
  static StatusOr<Model> parse(const void *data, int64_t bytes);
  /// Returns this model with other kinds of its layers, by layer, and with these parameters
  /// parked. Fails if `checkManifest` refuses that (FreezeLayers.h).
  StatusOr<Model> withKinds(const std::vector<int> &kinds,
                            std::vector<bool> parked) const;

  const plan::Manifest &manifest() const { return manifest_; }
  uint64_t hash() const { return manifest_.hash(); }
  /// Returns the hash of the compiled model. Models that `withKinds` made have others.
  uint64_t compiledHash() const { return compiledHash_; }

  /// Returns the tables that a micro-batch has beside its segments:
  /// DYNA_BATCH_*.
  uint32_t batchTables() const { return manifest_.batch_tables(); }

  int layers() const { return manifest_.layers_size(); }
  const plan::Layer &layer(int index) const { return manifest_.layers(index); }
  /// Returns the kind as it is compiled for tensor degree 1.
  const plan::LayerKind &kind(int layer) const {
    return manifest_.kinds(manifest_.layers(layer).kind());
  }

  /// Edges of the graph of layers. Edge l is the first input of layer l. Further inputs
  /// follow, in the order of the layers. A chain (checkManifest) has no further inputs.
  int edges() const { return static_cast<int>(edges_.size()); }
  const Edge &edge(int index) const { return edges_[index]; }
  /// Edges that a layer takes, by input.
  const std::vector<int> &inputsOf(int layer) const { return inputs_[layer]; }
  /// Edges that carry a layer's activation. None carries a loss.
  const std::vector<int> &outputsOf(int layer) const { return outputs_[layer]; }
  /// Returns true if the gradient of an edge's value comes back: its producer has a backward.
  bool hasGradient(int edge) const;

  /// Layers that give a loss, ascending: exits, and the last layer. A step trains the sum
  /// of their losses, each times its weight.
  std::vector<int> lossLayers() const;
  /// Returns the number of a layer's loss among `lossLayers`; -1 if it gives none.
  int lossOf(int layer) const;
  /// Returns the weight of a loss, by its number.
  double lossWeight(int loss) const;

  int parameters() const { return manifest_.parameters_size(); }
  const plan::Parameter &parameter(int index) const {
    return manifest_.parameters(index);
  }
  /// Returns the index of a parameter by name; -1 if there is none.
  int findParameter(const std::string &name) const;
  /// Returns the rows (dimension 0) of the logical tensor; 1 for a scalar. The
  /// second function returns the elements of each.
  int64_t rows(int parameter) const;
  int64_t rowElements(int parameter) const {
    return elements(parameter) / rows(parameter);
  }
  int64_t elements(int parameter) const { return elements_[parameter]; }
  /// Returns the elements of all parameters.
  int64_t totalElements() const;
  /// Returns the type of masters and optimizer state of parameters that are not
  /// frozen.
  plan::ElementType masterType() const {
    return manifest_.compute_type() == plan::F64 ? plan::F64 : plan::F32;
  }
  /// Returns the type of the gradients of parameters.
  plan::ElementType gradientType() const {
    plan::ElementType type = manifest_.gradient_type();
    return type == plan::ELEMENT_UNKNOWN ? masterType() : type;
  }
  /// Returns the type that layer functions see.
  plan::ElementType computeType(int parameter) const {
    return computeTypes_[parameter];
  }
  /// Returns true if the parameter keeps its value and has no gradient.
  bool isFrozen(int parameter) const {
    return manifest_.parameters(parameter).frozen();
  }
  /// Returns true if a run froze the parameter: it keeps master and moments, which nothing
  /// uses until it is thawed. A parameter that was compiled as frozen has neither. Its only
  /// tensor is of the compute type.
  bool isParked(int parameter) const {
    return !parked_.empty() && parked_[parameter];
  }
  /// Returns true if ranks keep moments of the parameter.
  bool hasMoments(int parameter) const {
    return !isFrozen(parameter) || isParked(parameter);
  }
  /// Returns true if all layers of a kind give it a frozen parameter there (checkManifest). The
  /// kind is an index into `Manifest.kinds`.
  bool isFrozenSlot(int kind, int slot) const {
    return frozenSlots_[kind][slot] != 0;
  }
  /// Returns the type of the tensor from which all other tensors of the
  /// parameter follow.
  plan::ElementType masterType(int parameter) const {
    return hasMoments(parameter) ? masterType() : computeType(parameter);
  }
  /// Returns true if a copy in the compute type lies beside the master.
  bool hasCopy(int parameter) const {
    return computeType(parameter) != masterType(parameter);
  }
  /// Returns true if ranks keep a mask of the parameter: a byte for each weight, 0 if the
  /// weight is pruned.
  bool hasMask(int parameter) const {
    return !masked_.empty() && masked_[parameter];
  }
  /// Returns true if ranks keep scores of the parameter: a number of the master type for
  /// each weight.
  bool hasScores(int parameter) const { return scored_ && hasMask(parameter); }
  /// Returns true if all layers that use the parameter accept it in sparse form
  /// (runtime/abi/Sparse.h).
  bool acceptsSparse(int parameter) const;
  /// Gives masks to these parameters, by their numbers, and to no others. The memory of
  /// ranks counts them, so graphs are made afterwards.
  void setMasks(std::vector<bool> masked) { masked_ = std::move(masked); }
  /// Gives scores to all parameters with masks, or to none.
  void setScores(bool isScored) { scored_ = isScored; }

private:
  Model() = default;
  void addEdges();

  plan::Manifest manifest_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> inputs_, outputs_; ///< edges, by layer
  std::vector<int64_t> elements_;
  std::vector<plan::ElementType> computeTypes_;
  std::vector<bool> masked_; ///< by parameter; empty: none is
  bool scored_ = false;      ///< parameters with masks have scores
  std::vector<bool> parked_; ///< by parameter; empty: none is
  uint64_t compiledHash_ = 0;
  std::vector<std::vector<char>> frozenSlots_; ///< by kind and slot
};

//===----------------------------------------------------------------------===//
// Kinds of layers
//===----------------------------------------------------------------------===//

/// Return the layer's input from its producer (or token ids), and its output
/// for its consumer (of the last layer, the loss).
inline const plan::TensorSpec &inputOf(const plan::LayerKind &kind) {
  return kind.inputs(0);
}
inline const plan::TensorSpec &outputOf(const plan::LayerKind &kind) {
  return kind.outputs(0);
}
/// Returns true if the tensor is a loss.
bool isLoss(const plan::TensorSpec &spec);
/// Returns true if layers of the kind give a loss. It is then their last output.
bool givesLoss(const plan::LayerKind &kind);
inline bool hasRole(const plan::LayerKind &kind, int role) {
  return kind.roles(role).present();
}
/// Returns true if layers of the kind run backward. Others run forward alone.
inline bool hasBackward(const plan::LayerKind &kind) {
  return hasRole(kind, DYNA_ROLE_BACKWARD) ||
         hasRole(kind, DYNA_ROLE_BACKWARD_INPUT);
}
/// Returns true if backward is split into two functions.
bool splitsBackward(const plan::LayerKind &kind);
/// Returns the kind's mode that is nearest to the wished one. If the kind has
/// no recompute function for a mode, it keeps more instead.
plan::Recompute nearestMode(const plan::LayerKind &kind,
                            plan::Recompute wished);
/// Returns true if forward keeps the tier for backward in this mode; other
/// tiers are filled again.
constexpr bool keepsTier(plan::Recompute mode, int tier) {
  return tier + mode < DYNA_TIER_DEFERRED;
}
/// Returns the tier's name in messages and descriptions, such as "input".
const char *tierName(int tier);
/// Returns the pairs of a query and a key that the kind's attention computes.
inline int64_t visiblePairs(const plan::LayerKind &kind, const Load &load) {
  return kind.causal() ? load.causalPairs : load.pairs;
}
/// Returns the rows that a tensor has in a load. Ranks that have a part of the queries
/// share these rows.
int64_t wholeRows(const plan::TensorSpec &spec, const Load &load);
/// Returns true if a query may see later keys. Padding after a sample would
/// then change the sample.
inline bool looksBehind(const plan::LayerKind &kind) {
  return kind.attention_flops_per_pair() > 0 && !kind.causal();
}

/// Returns true if attention of these layers has no store for the keys of slices, so that
/// samples cannot be sliced.
inline bool lacksKeyStore(const plan::LayerKind &kind) {
  return kind.attention_flops_per_pair() > 0 && kind.key_bytes() == 0;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_MODEL_H
