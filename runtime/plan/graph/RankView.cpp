//===- RankView.cpp - Shows one rank's part of a model --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/RankView.h"

#include "runtime/abi/Collectives.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>

namespace dyna {

RankView::RankView(const Model &model, RankPart part)
    : model_(&model), part_(std::move(part)), elements_(model.parameters()),
      owners_(model.parameters(), -1) {
  for (int p = 0; p < parameters(); ++p)
    elements_[p] = model.elements(p);
  for (int l = 0; l < layers(); ++l)
    for (int slot = 0; slot < layer(l).parameters_size(); ++slot) {
      int p = layer(l).parameters(slot);
      if (owners_[p] < 0 && hasLayer(l) && !model.isFrozen(p))
        owners_[p] = l;
      elements_[p] = 1;
      for (int64_t size : kind(l).parameters(slot).shape())
        elements_[p] *= size;
    }
}

RankView RankView::whole(const Model &model) {
  RankPart part;
  part.endLayer = model.layers();
  part.parameters.resize(model.parameters());
  for (int p = 0; p < model.parameters(); ++p) {
    RankPart::Parameter &place = part.parameters[p];
    place.here = true;
    place.rows = model.rows(p);
    place.rowElements = model.rowElements(p);
    place.updateEnd = model.hasMoments(p) ? place.rows : 0;
    place.counts = !model.isFrozen(p);
  }
  return RankView(model, std::move(part));
}

bool RankView::updates(int index, int slot) const {
  const auto &list = layer(index).parameters();
  int p = list.Get(slot);
  return owner(p) == index &&
         std::find(list.begin(), list.end(), p) == list.begin() + slot;
}

bool RankView::ownsParameters(int index) const {
  for (int slot = 0; slot < layer(index).parameters_size(); ++slot)
    if (updates(index, slot))
      return true;
  return false;
}

bool RankView::sharesParameters(int index) const {
  return !sharedSlots(index).empty();
}

std::vector<int> RankView::sharedSlots(int index) const {
  std::vector<int> slots;
  for (int slot = 0; slot < layer(index).parameters_size(); ++slot)
    if (updates(index, slot) &&
        place(layer(index).parameters(slot)).holders > 1)
      slots.push_back(slot);
  return slots;
}

int64_t RankView::partTokens(const Load &load) const {
  return dyna_part_size(load.queries, part_.tp, part_.shard);
}

int64_t RankView::rowsOf(const plan::TensorSpec &spec, const Load &load) const {
  return spec.rows() == plan::TensorSpec::TQ_PART ? partTokens(load)
                                                  : wholeRows(spec, load);
}

int RankView::layerOf(const plan::Instruction &instruction) const {
  return exchangeOf(instruction.op).isMessage()
             ? model_->edge(edgeOf(instruction)).consumer
             : instruction.layer;
}

/// Returns the bytes of one row of a tensor.
static int64_t rowBytes(const plan::TensorSpec &input) {
  int64_t bytes = elementBytes(input.type());
  for (int64_t size : input.shape())
    bytes *= size;
  return bytes;
}

int64_t RankView::messageBytes(int edge, const Load &load) const {
  const Edge &carrier = model_->edge(edge);
  const plan::TensorSpec &carried =
      kind(carrier.consumer).inputs(carrier.input);
  return rowBytes(carried) * rowsOf(carried, load);
}

/// Returns the bytes of a layer's gradients. A rank with fewer rows of a part
/// has the memory of the first rank, which has the most.
int64_t RankView::gradientBytes(int layer, const Load &load) const {
  if (!givesGradient(layer))
    return 0;
  const plan::TensorSpec &input = inputOf(kind(layer));
  const int64_t all = wholeRows(input, load);
  const int64_t rows = input.rows() == plan::TensorSpec::TQ_PART
                           ? dyna_part_size(all, part_.tp, 0)
                           : all;
  return dyna_align_block(rowBytes(input) * dyna_round_rows(rows));
}

int64_t RankView::keptBytes(int layer, plan::Recompute mode,
                            const Load &load) const {
  int64_t bytes = 0;
  for (int tier = 0; keepsTier(mode, tier); ++tier)
    bytes += tierBytes(layer, tier, load);
  return bytes;
}

int64_t RankView::lateBytes(int layer, plan::Recompute mode, bool deferred,
                            const Load &load) const {
  int64_t bytes = 0;
  for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier)
    if (!keepsTier(mode, tier) && (tier != DYNA_TIER_DEFERRED || deferred))
      bytes += tierBytes(layer, tier, load);
  return bytes;
}

} // namespace dyna
