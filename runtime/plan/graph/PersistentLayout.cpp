//===- PersistentLayout.cpp - Places parameters and state in the arena ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/PersistentLayout.h"

#include "runtime/plan/program/InstructionTable.h"

namespace dyna {

plan::ElementType typeOf(const Model &model, int parameter,
                         ParameterPart part) {
  return part == ParameterPart::Copy       ? model.computeType(parameter)
         : part == ParameterPart::Gradient ? model.gradientType()
         : part == ParameterPart::Mask     ? plan::ELEMENT_UNKNOWN
         : part == ParameterPart::Master   ? model.masterType(parameter)
                                           : model.masterType();
}

int64_t partElementBytes(const Model &model, int parameter,
                         ParameterPart part) {
  return part == ParameterPart::Mask
             ? 1
             : elementBytes(typeOf(model, parameter, part));
}

Persistent neededFor(plan::Instruction::Op op) {
  auto touches = [op](ParameterUse use) {
    return writes(op, use) || reads(op, use);
  };
  int needed = 0;
  if (touches(ParameterUse::UsedGradients) ||
      touches(ParameterUse::UpdatedGradients))
    needed |= static_cast<int>(Persistent::Gradients);
  if (touches(ParameterUse::Moments))
    needed |= static_cast<int>(Persistent::Training);
  // Masters that are written without a copy are the values, gathered before
  // use.
  if (reads(op, ParameterUse::Masters))
    needed |= static_cast<int>(Persistent::Masters);
  return static_cast<Persistent>(needed);
}

std::string describePersistent(Persistent persistent) {
  std::string text;
  for (auto [bit, word] : {std::pair(Persistent::Masters, "masters"),
                           {Persistent::Gradients, "gradients"},
                           {Persistent::Moments, "optimizer state"}})
    if (includes(persistent, bit))
      text += (text.empty() ? "" : ", ") + std::string(word);
  return text.empty() ? "the values that layer functions read" : text;
}

PersistentLayout persistentLayout(const RankView &view, Persistent persistent,
                                  int64_t begin,
                                  const std::vector<int64_t> &rowsAtHome) {
  PersistentLayout layout;
  layout.parameters.resize(view.parameters());
  int64_t master = elementBytes(view.masterType());
  auto place = [&](int64_t elements, int64_t element) {
    int64_t offset = begin + layout.bytes;
    layout.bytes += dyna_align_block(elements * element);
    return offset;
  };
  // Places matrices before vectors. Matrices that follow each other in a
  // layer's list are then adjacent, even if there are biases between them. So
  // products by them can be joined.
  std::vector<int> held;
  for (bool isMatrix : {true, false})
    for (int p = 0; p < view.parameters(); ++p)
      if (view.holds(p) && (view.parameter(p).shape_size() > 1) == isMatrix)
        held.push_back(p);
  auto &places = layout.parameters;
  auto isHere = [&](int p) { return rowsAtHome.empty() || rowsAtHome[p] < 0; };
  // Layer functions read whole tensors. Tensors that only the optimizer reads
  // are as large as the part that it updates.
  for (int p : held)
    if (!view.hasCopy(p) && isHere(p))
      places[p].master =
          place(view.elements(p), elementBytes(view.masterType(p)));
    else if (view.hasCopy(p) && includes(persistent, Persistent::Masters))
      places[p].master = place(view.updatedElements(p), master);
  for (int p : held)
    if (view.hasCopy(p) && isHere(p))
      places[p].copy =
          place(view.elements(p), elementBytes(view.computeType(p)));
  if (includes(persistent, Persistent::Gradients))
    for (int p : held)
      if (!view.isFrozen(p))
        places[p].gradient =
            place(view.elements(p), elementBytes(view.gradientType()));
  if (!includes(persistent, Persistent::Moments))
    return layout;
  for (int64_t ParameterPlace::*moment :
       {&ParameterPlace::m, &ParameterPlace::v})
    for (int p : held)
      if (view.model().hasMoments(p))
        places[p].*moment = place(view.updatedElements(p), master);
  for (int p : held)
    if (view.model().hasMask(p))
      places[p].mask = place(view.updatedElements(p), /*element=*/1);
  for (int p : held)
    if (view.model().hasScores(p))
      places[p].score = place(view.updatedElements(p), master);
  return layout;
}

BatchLayout batchLayout(const Load &load, uint32_t tables) {
  BatchLayout layout;
  auto place = [&](int64_t bytes) {
    int64_t offset = layout.bytes;
    layout.bytes += dyna_align_block(bytes);
    return offset;
  };
  const int64_t rows = dyna_round_rows(load.queries);
  const int64_t segments = dyna_round_rows(load.segments);
  layout.targets = place(4 * rows);
  layout.segments = place(sizeof(dyna_segment) * segments);
  layout.rowSample = place(8 * rows);
  layout.rowPosition = place(8 * rows);
  auto placeRuns = [&](BatchLayout::Runs &runs) {
    runs.rows = place(4 * rows);
    runs.starts = place(4 * (rows + 1));
  };
  if (tables & DYNA_BATCH_OFFSETS)
    layout.offsets = place(4 * (segments + 1));
  if (tables & DYNA_BATCH_TOKEN_RUNS)
    placeRuns(layout.tokenRuns);
  if (tables & DYNA_BATCH_POSITION_RUNS)
    placeRuns(layout.positionRuns);
  if (tables & DYNA_BATCH_TARGET_ROWS)
    layout.targetRows = place(4 * rows);
  return layout;
}

} // namespace dyna
