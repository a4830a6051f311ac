//===- SmallManifest.h - Manifests that inputs start from -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_FUZZ_SMALLMANIFEST_H
#define DYNA_TEST_FUZZ_SMALLMANIFEST_H

#include "runtime/plan/model/Model.h"

namespace dyna::test {

inline void addKind(plan::Manifest &manifest, const char *name) {
  plan::LayerKind &kind = *manifest.add_kinds();
  kind.set_name(name);
  plan::TensorSpec &parameter = *kind.add_parameters();
  parameter.set_type(plan::F32);
  parameter.add_shape(8);
  parameter.add_shape(4);
  for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier) {
    plan::LinearBytes &bytes = *kind.add_tiers();
    bytes.set_tq(64);
    bytes.set_s(8);
    bytes.set_constant(128);
  }
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
    kind.add_roles()->set_present(true);
  kind.set_flops_per_token(64);
  kind.set_causal(true);
}

inline void setActivation(plan::TensorSpec &spec) {
  spec.set_type(plan::F32);
  spec.set_rows(plan::TensorSpec::TQ);
  spec.add_shape(4);
}

inline void setIds(plan::TensorSpec &spec) {
  spec.set_type(plan::I32);
  spec.set_rows(plan::TensorSpec::TQ);
}

/// An embedding, a block and a head tied to the embedding.
inline plan::Manifest makeManifest() {
  plan::Manifest manifest;
  manifest.set_format(1);
  manifest.set_model("example");
  manifest.set_compute_type(plan::F32);
  manifest.mutable_facts()->set_vocabulary(8);
  manifest.mutable_facts()->set_positions(16);
  for (const char *name : {"wte", "w"}) {
    plan::Parameter &parameter = *manifest.add_parameters();
    parameter.set_name(name);
    parameter.add_shape(8);
    parameter.add_shape(4);
    parameter.set_normal_std(0.02);
  }
  const char *names[] = {"embedding", "block", "head"};
  for (int i = 0; i < 3; ++i) {
    addKind(manifest, names[i]);
    plan::LayerKind &kind = *manifest.mutable_kinds(i);
    if (i == 0)
      setIds(*kind.add_inputs());
    else
      setActivation(*kind.add_inputs());
    if (i == 2) {
      setIds(*kind.add_inputs());
      plan::TensorSpec &loss = *kind.add_outputs();
      loss.set_type(plan::F64);
      loss.add_shape(1);
    } else {
      setActivation(*kind.add_outputs());
    }
    plan::Layer &layer = *manifest.add_layers();
    layer.set_name(names[i]);
    layer.set_kind(i);
    if (i > 0)
      layer.add_producers(i - 1);
    layer.add_parameters(i == 1 ? 1 : 0);
  }
  manifest.set_hash(manifestHash(manifest));
  return manifest;
}

/// The same with a tensor degree, its tables split over two ranks.
inline plan::Manifest makeManifestWithDegree() {
  plan::Manifest manifest = makeManifest();
  auto addWhole = [](auto *parts) {
    plan::AxisPart *part = parts->Add();
    part->set_stride(1);
    part->set_size(2);
  };
  plan::TensorDegree &degree = *manifest.add_degrees();
  degree.set_tp(2);
  for (const plan::LayerKind &whole : manifest.kinds()) {
    plan::LayerKind &kind = *degree.add_kinds();
    kind = whole;
    kind.set_name(whole.name() + ".tp2");
    kind.mutable_parameters(0)->set_shape(0, 4);
    addWhole(kind.add_splits()->mutable_parts());
  }
  plan::TensorGroup &group = *manifest.add_groups();
  group.set_tp(2);
  addWhole(group.mutable_parts());
  manifest.add_strategies("a: tp=2");
  manifest.set_hash(manifestHash(manifest));
  return manifest;
}

} // namespace dyna::test

#endif // DYNA_TEST_FUZZ_SMALLMANIFEST_H
