//===- LayerState.cpp - Describes pruned, frozen and exited layers --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/LayerState.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

Status checkState(const Model &model, int layer, const LayerState &state) {
  const std::string &name = model.layer(layer).name();
  if (!(state.sparsity >= 0 && state.sparsity < 1))
    return Status::invalidArgument(formatText(
        "layer '%s': sparsity expects 0 or more and less than 1, but got %g",
        name, state.sparsity));
  if (state.sparsity > 0 && !hasProducts(model.kind(layer)))
    return Status::invalidArgument(formatText(
        "layer '%s': has sparsity %g, but no matrix products whose weights "
        "could be pruned: leave it out",
        name, state.sparsity));
  if (!(state.reach > 0 && state.reach <= 1))
    return Status::invalidArgument(formatText(
        "layer '%s': the share of tokens that reach it expects more than 0 and "
        "at most 1, but got %g",
        name, state.reach));
  return Status::ok();
}

/// Fails if a parameter trains in one layer and is frozen in another one.
Status checkShared(const Model &model, const LayerStates &states) {
  std::vector<int> first(model.parameters(), -1);
  for (int l = 0; l < model.layers(); ++l)
    for (int p : model.layer(l).parameters()) {
      const int other = first[p] < 0 ? l : first[p];
      first[p] = other;
      if (states[other].frozen == states[l].frozen)
        continue;
      const bool isOther = states[other].frozen;
      return Status::invalidArgument(formatText(
          "parameter '%s' is shared by layer '%s', which is frozen, and layer "
          "'%s', which trains: freeze both or none",
          model.parameter(p).name(), model.layer(isOther ? other : l).name(),
          model.layer(isOther ? l : other).name()));
    }
  return Status::ok();
}

} // namespace

const char *describeForm(WeightForm form) {
  return form == WeightForm::Dense    ? "dense"
         : form == WeightForm::Masked ? "masked"
                                      : "CSR";
}

bool hasProducts(const plan::LayerKind &kind) {
  return kind.flops_per_token() > 0 || kind.flops_per_part_token() > 0 ||
         kind.flops_per_target() > 0;
}

StatusOr<LayerStates> resolveStates(const Model &model, LayerStates states) {
  if (static_cast<int>(states.size()) != model.layers())
    return Status::invalidArgument(
        formatText("%d states of layers, but the model has %d layers",
                   states.size(), model.layers()));
  for (int l = 0; l < model.layers(); ++l) {
    DYNA_RETURN_IF_ERROR(checkState(model, l, states[l]));
    if (states[l].sparsity > 0 && states[l].form == WeightForm::Dense)
      states[l].form = WeightForm::Masked;
  }
  if (std::all_of(states.begin(), states.end(),
                  [](const LayerState &state) { return state.frozen; }))
    return Status::invalidArgument(
        "all layers are frozen, so nothing trains: leave one of them free");
  DYNA_RETURN_IF_ERROR(checkShared(model, states));
  for (int l = 0; l < model.layers(); ++l) {
    const auto &producers = model.layer(l).producers();
    states[l].prefix =
        states[l].frozen &&
        std::all_of(producers.begin(), producers.end(),
                    [&](int producer) { return states[producer].prefix; });
  }
  return states;
}

Load loadThatReaches(const Load &load, const LayerState &state) {
  const double reach = state.reach;
  if (reach == 1)
    return load;
  auto rounded = [](double count, int64_t all) {
    return std::clamp<int64_t>(std::llround(count), std::min<int64_t>(1, all),
                               all);
  };
  auto share = [&](int64_t count) {
    return rounded(reach * static_cast<double>(count), count);
  };
  // Each query is one of the keys that it sees.
  auto pairs = [&](int64_t count) {
    const auto own = static_cast<double>(std::min(load.queries, count));
    const auto others = static_cast<double>(count) - own;
    return rounded(
        reach * (state.byTokens ? own + reach * others : own + others), count);
  };
  Load left;
  left.queries = share(load.queries);
  left.keys = share(load.keys);
  left.segments = state.byTokens ? load.segments : share(load.segments);
  left.pairs = pairs(load.pairs);
  left.causalPairs = pairs(load.causalPairs);
  left.targets = share(load.targets);
  left.context = share(load.context);
  return left;
}

LayerState parameterState(const Model &model, const LayerStates &states,
                          int parameter) {
  LayerState least;
  if (states.empty())
    return least;
  bool isFound = false;
  for (int l = 0; l < model.layers(); ++l) {
    const auto &list = model.layer(l).parameters();
    if (std::find(list.begin(), list.end(), parameter) == list.end())
      continue;
    LayerState state = states[l];
    if (!hasProducts(model.kind(l)) ||
        model.parameter(parameter).shape_size() < 2) {
      state.sparsity = 0;
      state.form = WeightForm::Dense;
    }
    const bool prefix = state.prefix && (!isFound || least.prefix);
    if (!isFound || state.sparsity < least.sparsity)
      least = state;
    least.prefix = prefix;
    isFound = true;
  }
  return least;
}

} // namespace dyna
