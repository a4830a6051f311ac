//===- StoredScores.cpp - Describes attention that stores its scores ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/StoredScores.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

int64_t headsOf(const plan::Manifest &manifest, const plan::LayerKind &whole,
                const plan::LayerKind &compiled) {
  const int64_t perPair = whole.attention_flops_per_pair();
  // Heads are split whole over ranks, and the flops of pairs in proportion.
  return perPair > 0 ? manifest.facts().heads() *
                           compiled.attention_flops_per_pair() / perPair
                     : 0;
}

bool keepsScores(const Model &model) {
  const auto &kinds = model.manifest().kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [](const plan::LayerKind &kind) {
                       return kind.score_bytes_per_pair() > 0;
                     });
}

StatusOr<Model> keepScores(const Model &model,
                           const cost::StoredScores &scores) {
  plan::Manifest manifest = model.manifest();
  if (keepsScores(model))
    return Status::invalidArgument("the model keeps its scores already");
  if (manifest.facts().heads() <= 0)
    return Status::invalidArgument(
        "the model does not say how many heads its attention has, which is "
        "what scores are counted by");
  auto keep = [&](const plan::LayerKind &whole, plan::LayerKind &compiled) {
    compiled.set_score_bytes_per_pair(headsOf(manifest, whole, compiled) *
                                      scores.kept_bytes());
  };
  const auto kinds = manifest.kinds();
  for (int kind = 0; kind < kinds.size(); ++kind) {
    keep(kinds.Get(kind), *manifest.mutable_kinds(kind));
    for (plan::TensorDegree &degree : *manifest.mutable_degrees())
      keep(kinds.Get(kind), *degree.mutable_kinds(kind));
  }
  manifest.set_hash(manifestHash(manifest));
  DYNA_ASSIGN_OR_RETURN(Model keeps, Model::create(std::move(manifest)));
  if (!keepsScores(keeps))
    return Status::invalidArgument("no layer of the model has attention");
  return keeps;
}

} // namespace dyna
