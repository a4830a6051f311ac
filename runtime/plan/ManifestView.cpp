//===- ManifestView.cpp - The manifest, checked ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/ManifestView.h"

#include "runtime/abi/Collectives.h"

#include "runtime/base/Text.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>

namespace dyna {

uint64_t manifestHash(const plan::Manifest &manifest) {
  plan::Manifest hashed = manifest;
  hashed.clear_hash();
  hashed.clear_producer();
  hashed.clear_matmul();
  hashed.clear_strategies();
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (unsigned char byte : hashed.SerializeAsString())
    hash = (hash ^ byte) * UINT64_C(0x100000001B3);
  return hash;
}

StatusOr<ManifestView> ManifestView::create(plan::Manifest manifest) {
  DYNA_RETURN_IF_ERROR(checkManifest(manifest));
  ManifestView view;
  view.manifest_ = std::make_shared<const plan::Manifest>(std::move(manifest));
  view.part_.endLayer = view.layers();
  view.part_.parameters.resize(view.parameters());
  for (int p = 0; p < view.parameters(); ++p) {
    const auto &shape = view.parameter(p).shape();
    int64_t rows = shape.empty() ? 1 : shape.Get(0), columns = 1;
    for (int d = 1; d < shape.size(); ++d)
      columns *= shape.Get(d);
    RankPart::Parameter &place = view.part_.parameters[p];
    place.here = true;
    place.rows = place.updateEnd = rows;
    place.rowElements = columns;
  }
  view.resolve();
  return view;
}

StatusOr<ManifestView> ManifestView::parse(const void *data, int64_t bytes) {
  // The library would print lines of its own.
  google::protobuf::LogSilencer silence;
  plan::Manifest manifest;
  if (!data || bytes <= 0 || bytes > std::numeric_limits<int>::max() ||
      !manifest.ParseFromArray(data, static_cast<int>(bytes)))
    return Status::invalidArgument(
        "the embedded manifest cannot be read: the binary is damaged, compile "
        "it again");
  return create(std::move(manifest));
}

void ManifestView::resolve() {
  int count = parameters();
  elements_.assign(count, 1);
  computeTypes_.assign(count, masterType());
  owners_.assign(count, -1);
  for (int p = 0; p < count; ++p)
    for (int64_t size : parameter(p).shape())
      elements_[p] *= size;
  for (int l = 0; l < layers(); ++l)
    for (int slot = 0; slot < layer(l).parameters_size(); ++slot) {
      int p = layer(l).parameters(slot);
      const plan::TensorSpec &spec = kind(l).parameters(slot);
      if (owners_[p] < 0 && hasLayer(l))
        owners_[p] = l;
      computeTypes_[p] = spec.type();
      elements_[p] = 1;
      for (int64_t size : spec.shape())
        elements_[p] *= size;
    }
}

ManifestView ManifestView::restrictedTo(RankPart part) const {
  ManifestView view = *this;
  view.part_ = std::move(part);
  view.resolve();
  return view;
}

int64_t ManifestView::totalElements() const {
  int64_t total = 0;
  for (int64_t elements : elements_)
    total += elements;
  return total;
}

int ManifestView::findParameter(const std::string &name) const {
  for (int p = 0; p < parameters(); ++p)
    if (parameter(p).name() == name)
      return p;
  return -1;
}

bool ManifestView::updates(int index, int slot) const {
  const auto &list = layer(index).parameters();
  int p = list.Get(slot);
  return owner(p) == index &&
         std::find(list.begin(), list.end(), p) == list.begin() + slot;
}

bool ManifestView::ownsParameters(int index) const {
  for (int slot = 0; slot < layer(index).parameters_size(); ++slot)
    if (updates(index, slot))
      return true;
  return false;
}

bool ManifestView::sharesParameters(int index) const {
  for (int slot = 0; slot < layer(index).parameters_size(); ++slot)
    if (updates(index, slot) &&
        place(layer(index).parameters(slot)).holders > 1)
      return true;
  return false;
}

int64_t ManifestView::rowsOf(const plan::TensorSpec &spec,
                             const Extent &extent) const {
  return spec.rows() == plan::TensorSpec::TQ_PART
             ? dyna_part_size(extent.tq, part_.tp, part_.shard)
             : extent.tq;
}

/// Bytes of a row of the layer's input.
static int64_t inputRowBytes(const plan::LayerKind &kind) {
  const plan::TensorSpec &input = kind.inputs(0);
  int64_t bytes = elementBytes(input.type());
  for (int64_t size : input.shape())
    bytes *= size;
  return bytes;
}

int64_t ManifestView::messageBytes(int layer, const Extent &extent) const {
  return inputRowBytes(kind(layer)) * rowsOf(kind(layer).inputs(0), extent);
}

/// Ranks that hold fewer rows of a part have the memory of those with more.
int64_t ManifestView::gradientBytes(int layer, const Extent &extent) const {
  if (layer == 0)
    return 0;
  bool part = kind(layer).inputs(0).rows() == plan::TensorSpec::TQ_PART;
  int64_t rows = part ? dyna_part_size(extent.tq, part_.tp, 0) : extent.tq;
  return dyna_align_block(inputRowBytes(kind(layer)) * dyna_round_rows(rows));
}

int64_t ManifestView::keptBytes(int layer, plan::Recompute mode,
                                const Extent &extent) const {
  int64_t bytes = inputBytes(layer, extent);
  if (mode != plan::RECOMPUTE_FULL)
    bytes += productsBytes(layer, extent);
  if (mode == plan::RECOMPUTE_NONE)
    bytes += elementwiseBytes(layer, extent);
  return bytes;
}

int64_t ManifestView::lateBytes(int layer, plan::Recompute mode, bool deferred,
                                const Extent &extent) const {
  int64_t bytes = deferred ? deferredBytes(layer, extent) : 0;
  if (mode == plan::RECOMPUTE_FULL)
    bytes += productsBytes(layer, extent);
  if (mode != plan::RECOMPUTE_NONE)
    bytes += elementwiseBytes(layer, extent);
  return bytes;
}

plan::Recompute ManifestView::nearestMode(int layer,
                                          plan::Recompute wished) const {
  if (wished == plan::RECOMPUTE_FULL &&
      hasRole(layer, DYNA_ROLE_RECOMPUTE_FULL))
    return plan::RECOMPUTE_FULL;
  if (wished != plan::RECOMPUTE_NONE &&
      hasRole(layer, DYNA_ROLE_RECOMPUTE_SELECTIVE))
    return plan::RECOMPUTE_SELECTIVE;
  return plan::RECOMPUTE_NONE;
}

double ManifestView::forwardFlops(int layer, int64_t tokens, int64_t targets,
                                  int64_t pairs) const {
  const plan::LayerKind &k = kind(layer);
  return static_cast<double>(k.flops_per_token()) * tokens +
         static_cast<double>(k.flops_per_target()) * targets +
         static_cast<double>(k.attention_flops_per_pair()) * pairs;
}

double ManifestView::trainingFlops(int64_t tokens, int64_t targets,
                                   int64_t pairs) const {
  double flops = 0;
  for (int l = 0; l < layers(); ++l)
    flops += 3 * forwardFlops(l, tokens, targets, pairs);
  return flops;
}

} // namespace dyna
