//===- StateTensors.cpp - Lists the state that moves between graphs -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/StateTensors.h"

#include "runtime/plan/graph/SwitchTable.h"

namespace dyna {

std::vector<ParameterPart> stateParts(const Model &model, int parameter,
                                      Persistent persistent) {
  std::vector<ParameterPart> parts = {ParameterPart::Master};
  if (!model.hasMoments(parameter))
    return parts;
  if (model.hasCopy(parameter))
    parts.push_back(ParameterPart::Copy);
  if (includes(persistent, Persistent::Moments))
    parts.insert(parts.end(),
                 {ParameterPart::FirstMoment, ParameterPart::SecondMoment});
  if (includes(persistent, Persistent::Moments) && model.hasMask(parameter))
    parts.push_back(ParameterPart::Mask);
  if (includes(persistent, Persistent::Moments) && model.hasScores(parameter))
    parts.push_back(ParameterPart::Score);
  return parts;
}

static std::vector<RankBox> withoutEmpty(const std::vector<RankBox> &boxes) {
  std::vector<RankBox> kept;
  for (const RankBox &one : boxes)
    if (!one.box.isEmpty())
      kept.push_back(one);
  return kept;
}

std::vector<SwitchTensor> stateTensors(const ExecutableGraph &from,
                                       const ExecutableGraph &to,
                                       Persistent persistent) {
  const Model &model = from.model();
  std::vector<SwitchTensor> tensors;
  for (int p : parametersByFirstUse(model)) {
    for (ParameterPart part : stateParts(model, p, persistent)) {
      const bool isValue = part == valuePart(model, p);
      SwitchTensor tensor;
      tensor.parameter = p;
      tensor.from =
          withoutEmpty(isValue ? from.currentBoxes(p) : from.updatedBoxes(p));
      tensor.to =
          withoutEmpty(isValue ? to.currentBoxes(p) : to.updatedBoxes(p));
      tensor.part = part;
      tensor.elementBytes = partElementBytes(model, p, part);
      tensors.push_back(tensor);
    }
  }
  return tensors;
}

int64_t missingBytes(const std::vector<SwitchTensor> &tensors) {
  int64_t bytes = 0;
  for (const SwitchTensor &tensor : tensors)
    for (const RankBox &needed : tensor.to) {
      int64_t missing = needed.box.volume();
      // In the graph before, a rank has at most one box of a tensor.
      for (const RankBox &had : tensor.from)
        if (had.rank == needed.rank)
          missing -= intersect(had.box, needed.box).volume();
      bytes += missing * tensor.elementBytes;
    }
  return bytes;
}

} // namespace dyna
