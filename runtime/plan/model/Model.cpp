//===- Model.cpp - Represents the model that a binary was compiled from ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/Model.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace dyna {

uint64_t manifestHash(const plan::Manifest &manifest) {
  plan::Manifest hashed = manifest;
  hashed.clear_hash();
  hashed.clear_producer();
  hashed.clear_matmul();
  hashed.clear_strategies();
  hashed.clear_ranges();
  hashed.clear_target();
  auto clear = [](auto *kinds) {
    for (plan::LayerKind &kind : *kinds) {
      kind.clear_sparse_parameters();
      kind.clear_weight_groups();
    }
  };
  clear(hashed.mutable_kinds());
  for (plan::TensorDegree &degree : *hashed.mutable_degrees())
    clear(degree.mutable_kinds());
  if (hashed.has_facts()) {
    hashed.mutable_facts()->clear_stored_prefix();
    hashed.mutable_facts()->clear_skipped_buffers();
    hashed.mutable_facts()->clear_config_defaults();
    hashed.mutable_facts()->clear_loss_weights();
  }
  for (plan::Parameter &parameter : *hashed.mutable_parameters()) {
    parameter.clear_stored();
    parameter.clear_added();
  }
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (unsigned char byte : hashed.SerializeAsString())
    hash = (hash ^ byte) * UINT64_C(0x100000001B3);
  return hash;
}

bool Model::acceptsSparse(int parameter) const {
  for (int l = 0; l < layers(); ++l) {
    const auto &used = layer(l).parameters();
    const auto &accepted = kind(l).sparse_parameters();
    for (int slot = 0; slot < used.size(); ++slot)
      if (used.Get(slot) == parameter &&
          std::find(accepted.begin(), accepted.end(), slot) == accepted.end())
        return false;
  }
  return true;
}

StatusOr<Model> Model::create(plan::Manifest manifest) {
  DYNA_RETURN_IF_ERROR(checkManifest(manifest));
  return unchecked(std::move(manifest));
}

StatusOr<Model> Model::withKinds(const std::vector<int> &kinds,
                                 std::vector<bool> parked) const {
  plan::Manifest manifest = manifest_;
  for (int l = 0; l < layers(); ++l)
    manifest.mutable_layers(l)->set_kind(kinds[l]);
  for (int p = 0; p < parameters(); ++p)
    if (parked[p])
      manifest.mutable_parameters(p)->set_frozen(true);
  manifest.set_hash(manifestHash(manifest));
  DYNA_ASSIGN_OR_RETURN(Model model, create(std::move(manifest)));
  model.masked_ = masked_;
  model.scored_ = scored_;
  model.parked_ = std::move(parked);
  model.compiledHash_ = compiledHash_;
  return model;
}

bool Model::hasGradient(int index) const {
  const int producer = edge(index).producer;
  return producer >= 0 && hasBackward(kind(producer));
}

void Model::addEdges() {
  inputs_.resize(layers());
  outputs_.resize(layers());
  for (int l = 0; l < layers(); ++l) {
    const auto &producers = layer(l).producers();
    edges_.push_back({producers.empty() ? -1 : producers.Get(0), l, 0});
  }
  for (int l = 0; l < layers(); ++l)
    for (int input = 1; input < layer(l).producers_size(); ++input)
      edges_.push_back({layer(l).producers(input), l, input});
  for (int e = 0; e < edges(); ++e) {
    inputs_[edges_[e].consumer].push_back(e);
    if (edges_[e].producer >= 0)
      outputs_[edges_[e].producer].push_back(e);
  }
}

std::vector<int> Model::lossLayers() const {
  std::vector<int> found;
  for (int l = 0; l < layers(); ++l)
    if (givesLoss(kind(l)))
      found.push_back(l);
  return found;
}

int Model::lossOf(int layer) const {
  if (!givesLoss(kind(layer)))
    return -1;
  int before = 0;
  for (int l = 0; l < layer; ++l)
    before += givesLoss(kind(l)) ? 1 : 0;
  return before;
}

double Model::lossWeight(int loss) const {
  const auto &weights = manifest_.facts().loss_weights();
  return weights.empty() ? 1 : weights.Get(loss);
}

Model Model::unchecked(plan::Manifest manifest) {
  Model model;
  model.manifest_ = std::move(manifest);
  model.compiledHash_ = model.manifest_.hash();
  model.addEdges();
  model.elements_.assign(model.parameters(), 1);
  for (int p = 0; p < model.parameters(); ++p)
    for (int64_t size : model.parameter(p).shape())
      model.elements_[p] *= size;
  model.computeTypes_.assign(model.parameters(), model.masterType());
  for (const plan::LayerKind &kind : model.manifest_.kinds())
    model.frozenSlots_.emplace_back(kind.parameters_size(), 0);
  for (int l = 0; l < model.layers(); ++l)
    for (int slot = 0; slot < model.layer(l).parameters_size(); ++slot) {
      const int p = model.layer(l).parameters(slot);
      model.computeTypes_[p] = model.kind(l).parameters(slot).type();
      model.frozenSlots_[model.layer(l).kind()][slot] = model.isFrozen(p);
    }
  return model;
}

StatusOr<Model> Model::parse(const void *data, int64_t bytes) {
  // The library would print messages of its own.
  google::protobuf::LogSilencer silence;
  plan::Manifest manifest;
  if (!data || bytes <= 0 || bytes > std::numeric_limits<int>::max() ||
      !manifest.ParseFromArray(data, static_cast<int>(bytes)))
    return Status::invalidArgument(
        "the embedded manifest cannot be read: the binary is damaged, compile "
        "it again");
  return create(std::move(manifest));
}

int Model::findParameter(const std::string &name) const {
  for (int p = 0; p < parameters(); ++p)
    if (parameter(p).name() == name)
      return p;
  return -1;
}

int64_t Model::rows(int index) const {
  const auto &shape = parameter(index).shape();
  return shape.empty() ? 1 : shape.Get(0);
}

int64_t Model::totalElements() const {
  return std::accumulate(elements_.begin(), elements_.end(), int64_t(0));
}

const char *tierName(int tier) {
  constexpr const char *names[] = {"input", "products", "elementwise",
                                   "deferred"};
  static_assert(std::size(names) == DYNA_TIER_COUNT);
  return names[tier];
}

int64_t wholeRows(const plan::TensorSpec &spec, const Load &load) {
  switch (spec.rows()) {
  case plan::TensorSpec::TQ:
  case plan::TensorSpec::TQ_PART:
    return load.queries;
  case plan::TensorSpec::TKV:
    return load.keys;
  case plan::TensorSpec::S:
    return load.segments;
  default:
    return 1; // one tensor, whatever the load
  }
}

bool isLoss(const plan::TensorSpec &spec) {
  return spec.type() == plan::F64 && spec.rows() == plan::TensorSpec::FIXED &&
         std::all_of(spec.shape().begin(), spec.shape().end(),
                     [](int64_t size) { return size == 1; });
}

bool givesLoss(const plan::LayerKind &kind) {
  return kind.outputs_size() > 0 &&
         isLoss(kind.outputs(kind.outputs_size() - 1));
}

bool splitsBackward(const plan::LayerKind &kind) {
  return hasRole(kind, DYNA_ROLE_BACKWARD_INPUT) &&
         hasRole(kind, DYNA_ROLE_BACKWARD_WEIGHT);
}

plan::Recompute nearestMode(const plan::LayerKind &kind,
                            plan::Recompute wished) {
  if (wished == plan::RECOMPUTE_FULL && hasRole(kind, DYNA_ROLE_RECOMPUTE_FULL))
    return plan::RECOMPUTE_FULL;
  if (wished != plan::RECOMPUTE_NONE &&
      hasRole(kind, DYNA_ROLE_RECOMPUTE_SELECTIVE))
    return plan::RECOMPUTE_SELECTIVE;
  return plan::RECOMPUTE_NONE;
}

} // namespace dyna
