//===- Model.h - What a binary was compiled from ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A manifest comes from outside (it is embedded in a binary, which may be
// damaged, and fuzzed in tests), so nothing uses one before `checkManifest`
// accepted it. A `Model` is the proof of that, with the facts that everybody
// derives from a manifest worked out once: types, flops, who is used by whom. It
// is the logical graph, without ranks: what one rank has of it under a strategy
// is a RankView.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MODEL_H
#define DYNA_RUNTIME_PLAN_MODEL_H

#include "runtime/base/Status.h"
#include "runtime/plan/Manifest.pb.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/plan/program/Plan.h"

#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// The hash that `Manifest.hash` holds: FNV-1a of the serialised message
/// without what no plan depends on: hash, producer, matmul, strategies.
uint64_t manifestHash(const plan::Manifest &manifest);

/// Whether everything in the manifest is in range and the chain of layers fits
/// together. The message names the offending entry.
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
  /// From the serialised message.
  static StatusOr<Model> parse(const void *data, int64_t bytes);

  const plan::Manifest &manifest() const { return manifest_; }
  uint64_t hash() const { return manifest_.hash(); }

  /// What a micro-batch has beside its segments: DYNA_BATCH_*.
  uint32_t batchTables() const { return manifest_.batch_tables(); }

  int layers() const { return manifest_.layers_size(); }
  const plan::Layer &layer(int index) const { return manifest_.layers(index); }
  /// As it is compiled for a rank that has no others along the tensor axis.
  const plan::LayerKind &kind(int layer) const {
    return manifest_.kinds(manifest_.layers(layer).kind());
  }

  /// Edges of the graph of layers. Edge l is the first input of layer l. Further inputs
  /// follow, in the order of the layers. A chain (checkManifest) has no further inputs.
  int edges() const { return static_cast<int>(edges_.size()); }
  const Edge &edge(int index) const { return edges_[index]; }
  /// Edges that a layer takes, by input.
  const std::vector<int> &inputsOf(int layer) const { return inputs_[layer]; }
  /// Edges that carry a layer's output. None carries the loss.
  const std::vector<int> &outputsOf(int layer) const { return outputs_[layer]; }

  int parameters() const { return manifest_.parameters_size(); }
  const plan::Parameter &parameter(int index) const {
    return manifest_.parameters(index);
  }
  /// Index of a parameter by name, -1 if there is none.
  int findParameter(const std::string &name) const;
  /// Rows (dimension 0) of the logical tensor and elements of each; 1 row for a
  /// scalar.
  int64_t rows(int parameter) const;
  int64_t rowElements(int parameter) const {
    return elements(parameter) / rows(parameter);
  }
  int64_t elements(int parameter) const { return elements_[parameter]; }
  /// Elements of all parameters.
  int64_t totalElements() const;
  /// Type of masters and optimizer state of parameters that are not frozen.
  plan::ElementType masterType() const {
    return manifest_.compute_type() == plan::F64 ? plan::F64 : plan::F32;
  }
  /// Type of the gradients of parameters.
  plan::ElementType gradientType() const {
    plan::ElementType type = manifest_.gradient_type();
    return type == plan::ELEMENT_UNKNOWN ? masterType() : type;
  }
  /// The type that layer functions see.
  plan::ElementType computeType(int parameter) const {
    return computeTypes_[parameter];
  }
  /// Returns true if the parameter keeps its value: it has neither gradient nor moments, and
  /// its only tensor is of the compute type.
  bool isFrozen(int parameter) const {
    return manifest_.parameters(parameter).frozen();
  }
  /// Returns true if all layers of a kind give it a frozen parameter there (checkManifest). The
  /// kind is an index into `Manifest.kinds`.
  bool isFrozenSlot(int kind, int slot) const {
    return frozenSlots_[kind][slot] != 0;
  }
  /// Type of the tensor from which all other ones of the parameter follow.
  plan::ElementType masterType(int parameter) const {
    return isFrozen(parameter) ? computeType(parameter) : masterType();
  }
  /// Whether a copy in the compute type lies beside the master.
  bool hasCopy(int parameter) const {
    return computeType(parameter) != masterType(parameter);
  }
  /// Returns true if ranks keep a mask of the parameter: a byte for each weight, 0 if the
  /// weight is pruned.
  bool hasMask(int parameter) const {
    return !masked_.empty() && masked_[parameter];
  }
  /// Returns true if all layers that use the parameter accept it in sparse form
  /// (runtime/abi/Sparse.h).
  bool acceptsSparse(int parameter) const;
  /// Gives masks to these parameters, by their numbers, and to no others. The memory of
  /// ranks counts them, so graphs are made afterwards.
  void setMasks(std::vector<bool> masked) { masked_ = std::move(masked); }

private:
  Model() = default;
  void addEdges();

  plan::Manifest manifest_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> inputs_, outputs_; ///< edges, by layer
  std::vector<int64_t> elements_;
  std::vector<plan::ElementType> computeTypes_;
  std::vector<bool> masked_;                   ///< by parameter; empty: none is
  std::vector<std::vector<char>> frozenSlots_; ///< by kind and slot
};

//===----------------------------------------------------------------------===//
// Kinds of layers
//===----------------------------------------------------------------------===//

/// What it takes from its producer, or token ids; and what it gives to its
/// consumer, or the loss.
inline const plan::TensorSpec &inputOf(const plan::LayerKind &kind) {
  return kind.inputs(0);
}
inline const plan::TensorSpec &outputOf(const plan::LayerKind &kind) {
  return kind.outputs(0);
}
inline bool hasRole(const plan::LayerKind &kind, int role) {
  return kind.roles(role).present();
}
/// Whether backward comes as two functions.
bool splitsBackward(const plan::LayerKind &kind);
/// The mode that the kind has nearest to the one wished for: without the
/// recompute function of a mode it keeps more instead.
plan::Recompute nearestMode(const plan::LayerKind &kind,
                            plan::Recompute wished);
/// Whether forward leaves a tier for backward in this mode; what it does not is
/// filled again.
constexpr bool keepsTier(plan::Recompute mode, int tier) {
  return tier + mode < DYNA_TIER_DEFERRED;
}
/// "input", as messages and descriptions call it.
const char *tierName(int tier);
/// Returns the pairs of a query and a key that the kind's attention computes.
inline int64_t visiblePairs(const plan::LayerKind &kind, const Load &load) {
  return kind.causal() ? load.causalPairs : load.pairs;
}
/// Returns the rows that a tensor has in a load. Ranks that have a part of the queries
/// share these rows.
int64_t wholeRows(const plan::TensorSpec &spec, const Load &load);
/// Returns true if a query may look at keys behind it. Padding behind a sample would
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
