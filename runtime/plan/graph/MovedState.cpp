//===- MovedState.cpp - Moves state of pruned and frozen layers -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/MovedState.h"

#include "runtime/abi/Sparse.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

/// Bytes of a survivor in the index: its depth by rows, and its depth and place by columns.
constexpr int64_t byRowBytes = 1, byColumnBytes = 3;
/// Bytes of a tile in one side: its begin, its lines and their counts.
constexpr int64_t tileBytes = 8 + 2 * DYNA_SPARSE_TILE;

/// Maps the borders of boxes by `place`. Boxes that become empty are left out.
template <typename Place>
std::vector<RankBox> placed(const std::vector<RankBox> &boxes, Place place) {
  std::vector<RankBox> result;
  for (const RankBox &one : boxes) {
    RankBox next = one;
    for (int d = 0; d < 2; ++d) {
      next.box.begin[d] = place(d, one.box.begin[d]);
      next.box.size[d] =
          place(d, one.box.begin[d] + one.box.size[d]) - next.box.begin[d];
    }
    if (!next.box.isEmpty())
      result.push_back(std::move(next));
  }
  return result;
}

template <typename Place>
SwitchTensor placed(SwitchTensor tensor, int64_t elementBytes, Place place) {
  tensor.elementBytes = elementBytes;
  tensor.from = placed(tensor.from, place);
  tensor.to = placed(tensor.to, place);
  return tensor;
}

/// The tensors of one weight in one state of its layer, and where they lie.
class WeightState {
public:
  WeightState(const Model &model, int parameter, const LayerState &state)
      : model_(model), parameter_(parameter), state_(state),
        rows_(model.rows(parameter)), columns_(model.rowElements(parameter)) {}

  bool carries(ParameterPart part) const {
    if (part == ParameterPart::Mask || part == ParameterPart::Score)
      return state_.form != WeightForm::Csr && !state_.frozen;
    return !state_.frozen || isValue(part);
  }
  bool isValue(ParameterPart part) const {
    return part == valuePart(model_, parameter_);
  }

  void add(const SwitchTensor &tensor, std::vector<SwitchTensor> &all) const {
    if (state_.form != WeightForm::Csr) {
      all.push_back(tensor);
      if (isValue(tensor.part) && state_.form == WeightForm::Masked &&
          !state_.frozen && !model_.hasMask(parameter_)) {
        all.push_back(tensor);
        all.back().part = ParameterPart::Mask;
        all.back().elementBytes = 1;
      }
      return;
    }
    auto shrunk = [&](int d, int64_t border) { return shrink(d, border); };
    all.push_back(placed(tensor, tensor.elementBytes, shrunk));
    if (!isValue(tensor.part))
      return;
    all.push_back(placed(
        tensor, byRowBytes + (state_.prefix ? 0 : byColumnBytes), shrunk));
    all.push_back(
        placed(tensor, tileBytes * (state_.prefix ? 1 : 2),
               [](int, int64_t border) { return dyna_sparse_tiles(border); }));
  }

private:
  int64_t shrink(int d, int64_t border) const {
    if (d != (rows_ < columns_))
      return border;
    const int64_t size = d == 0 ? rows_ : columns_;
    const auto scaled =
        std::llround(static_cast<double>(border) * (1 - state_.sparsity));
    return border < size ? scaled : std::max<int64_t>(scaled, 1);
  }

  const Model &model_;
  const int parameter_;
  const LayerState state_;
  const int64_t rows_, columns_;
};

} // namespace

std::vector<SwitchTensor> movedState(const ExecutableGraph &from,
                                     const ExecutableGraph &to,
                                     const LayerStates &states) {
  std::vector<SwitchTensor> dense = stateTensors(from, to);
  if (states.empty())
    return dense;
  std::vector<SwitchTensor> all;
  for (const SwitchTensor &tensor : dense) {
    const WeightState weight(
        from.model(), tensor.parameter,
        parameterState(from.model(), states, tensor.parameter));
    if (weight.carries(tensor.part))
      weight.add(tensor, all);
  }
  return all;
}

} // namespace dyna
