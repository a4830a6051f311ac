//===- TinyDegrees.h - Tensor degrees of the tiny model ---------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_TINYDEGREES_H
#define DYNA_TEST_RUNTIME_PLAN_TINYDEGREES_H

#include "test/runtime/executor/TinyModel.h"

namespace dyna {

inline void addPart(google::protobuf::RepeatedPtrField<plan::AxisPart> *parts,
                    int64_t stride, int64_t size) {
  plan::AxisPart *part = parts->Add();
  part->set_stride(stride);
  part->set_size(size);
}

/// Deals dimension `dim` of a kind's parameter to all ranks.
inline void deal(plan::LayerKind *kind, int slot, int dim, int tp) {
  plan::ParameterSplit *split = kind->mutable_splits(slot);
  split->set_dim(dim);
  addPart(split->mutable_parts(), 1, tp);
  plan::TensorSpec *spec = kind->mutable_parameters(slot);
  spec->set_shape(dim, (spec->shape(dim) + tp - 1) / tp);
}

/// The tiny model, tables split over the vocabulary, its block's products by
/// columns and rows.
inline plan::TensorDegree *addDegree(plan::Manifest &manifest, int tp,
                                     bool sp) {
  plan::TensorDegree *degree = manifest.add_degrees();
  degree->set_tp(tp);
  degree->set_sp(sp);
  for (const plan::LayerKind &whole : manifest.kinds()) {
    plan::LayerKind *kind = degree->add_kinds();
    *kind = whole;
    kind->set_name(whole.name() + ".tp" + std::to_string(tp) +
                   (sp ? ".sp" : ""));
    for (int slot = 0; slot < kind->parameters_size(); ++slot)
      kind->add_splits();
    auto localize = [&](plan::TensorSpec &spec) {
      if (sp && spec.rows() == plan::TensorSpec::TQ && spec.type() != plan::I32)
        spec.set_rows(plan::TensorSpec::TQ_PART);
    };
    for (plan::TensorSpec &spec : *kind->mutable_inputs())
      localize(spec);
    for (plan::TensorSpec &spec : *kind->mutable_outputs())
      localize(spec);
  }
  deal(degree->mutable_kinds(0), 0, 0, tp);
  for (int slot : {0, 1})
    deal(degree->mutable_kinds(1), slot, 0, tp);
  deal(degree->mutable_kinds(1), 2, 1, tp);
  deal(degree->mutable_kinds(2), 0, 0, tp);
  return degree;
}

inline plan::Manifest manifestWithDegrees() {
  plan::Manifest manifest = tinyManifest();
  addDegree(manifest, 2, false);
  addDegree(manifest, 4, true);
  plan::TensorGroup *group = manifest.add_groups();
  group->set_tp(4);
  addPart(group->mutable_parts(), 1, 2);
  manifest.add_strategies("a: dp=2,tp=2");
  manifest.add_strategies("b: tp=4,sp=1");
  return manifest;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_TINYDEGREES_H
