//===- ManifestView.h - The manifest, checked -------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
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

#include "runtime/abi/Status.h"
#include "runtime/plan/Bytes.h"
#include "runtime/plan/Manifest.pb.h"
#include "runtime/plan/Plan.pb.h"

#include <string>
#include <vector>

namespace dyna {

/// The hash that `Manifest.hash` holds: FNV-1a of the serialised message
/// without hash, producer and matmul.
uint64_t manifestHash(const plan::Manifest &manifest);

/// Whether everything in the manifest is in range and the chain of layers fits
/// together. The message names the offending entry.
Status checkManifest(const plan::Manifest &manifest);

class ManifestView {
public:
  static StatusOr<ManifestView> create(plan::Manifest manifest);
  /// From the serialised message.
  static StatusOr<ManifestView> parse(const void *data, int64_t bytes);

  const plan::Manifest &manifest() const { return manifest_; }
  uint64_t hash() const { return manifest_.hash(); }

  int layers() const { return manifest_.layers_size(); }
  const plan::Layer &layer(int index) const { return manifest_.layers(index); }
  const plan::LayerKind &kind(int layer) const {
    return manifest_.kinds(manifest_.layers(layer).kind());
  }
  bool hasRole(int layer, int role) const {
    return kind(layer).roles(role).present();
  }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  int parameters() const { return manifest_.parameters_size(); }
  const plan::Parameter &parameter(int index) const {
    return manifest_.parameters(index);
  }
  int64_t elements(int parameter) const { return elements_[parameter]; }
  /// Elements of all parameters.
  int64_t totalElements() const;
  /// Index of a parameter by name, -1 if there is none.
  int findParameter(const std::string &name) const;
  /// Type of masters, gradients and optimizer state.
  plan::ElementType masterType() const {
    return manifest_.compute_type() == plan::F64 ? plan::F64 : plan::F32;
  }
  /// The type that layer functions see.
  plan::ElementType computeType(int parameter) const {
    return computeTypes_[parameter];
  }
  /// Whether a copy in the compute type lies beside the master.
  bool hasCopy(int parameter) const {
    return computeType(parameter) != masterType();
  }
  /// The layer that updates the parameter.
  int owner(int parameter) const { return owners_[parameter]; }
  /// Whether `layer` updates the parameter in its list at `slot`.
  bool updates(int layer, int slot) const;
  bool ownsParameters(int layer) const;

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

  plan::Manifest manifest_;
  std::vector<int64_t> elements_;
  std::vector<plan::ElementType> computeTypes_;
  std::vector<int> owners_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_MANIFESTVIEW_H
