//===- ManifestFuzz.cpp - Manifests ---------------------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "runtime/plan/DescribeManifest.h"
#include "runtime/plan/ManifestView.h"

#include <google/protobuf/stubs/logging.h>

using namespace dyna;
using namespace dyna::test;

namespace {

void addKind(plan::Manifest &manifest, const char *name) {
  plan::LayerKind &kind = *manifest.add_kinds();
  kind.set_name(name);
  plan::TensorSpec &parameter = *kind.add_parameters();
  parameter.set_type(plan::F32);
  parameter.add_shape(8);
  parameter.add_shape(4);
  for (plan::LinearBytes *tier :
       {kind.mutable_input_tier(), kind.mutable_products_tier(),
        kind.mutable_elementwise_tier(), kind.mutable_deferred_tier()}) {
    tier->set_tq(64);
    tier->set_s(8);
    tier->set_constant(128);
  }
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
    kind.add_roles()->set_present(true);
  kind.set_flops_per_token(64);
  kind.set_causal(true);
}

void setActivation(plan::TensorSpec &spec) {
  spec.set_type(plan::F32);
  spec.set_rows(plan::TensorSpec::TQ);
  spec.add_shape(4);
}

void setIds(plan::TensorSpec &spec) {
  spec.set_type(plan::I32);
  spec.set_rows(plan::TensorSpec::TQ);
}

/// An embedding, a block and a head tied to the embedding.
plan::Manifest makeManifest() {
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
    layer.add_parameters(i == 1 ? 1 : 0);
  }
  manifest.set_hash(manifestHash(manifest));
  return manifest;
}

/// The same with a tensor degree, its tables split over two ranks.
plan::Manifest makeManifestWithDegree() {
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

/// Everything that is worked out from a manifest must stay in range.
void useView(const ManifestView &view) {
  for (int p = 0; p < view.parameters(); ++p) {
    require(view.elements(p) > 0, "parameters have elements");
    require(view.owner(p) >= 0 && view.owner(p) < view.layers(),
            "parameters have owners");
    require(view.findParameter(view.parameter(p).name()) == p,
            "parameters are found by name");
  }
  Extent extent;
  extent.tq = extent.tkv = 4096;
  extent.s = 64;
  for (int l = 0; l < view.layers(); ++l) {
    require(view.inputBytes(l, extent) >= 0, "input bytes");
    require(view.gradientBytes(l, extent) >= 0, "gradient bytes");
    for (plan::Recompute mode :
         {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
          plan::RECOMPUTE_FULL}) {
      plan::Recompute nearest = view.nearestMode(l, mode);
      require(view.keptBytes(l, nearest, extent) >= 0, "kept bytes");
      require(view.lateBytes(l, nearest, view.splitsBackward(l), extent) >= 0,
              "late bytes");
    }
    for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
      require(view.workspaceBytes(l, role, extent) >= 0, "workspace bytes");
  }
  require(view.trainingFlops(4096, 4096, 4096) >= 0, "flops");
  require(!describeManifest(view, 64).empty(), "descriptions");
  require(!manifestToJson(view).empty(), "descriptions for tools");
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  return {makeManifest().SerializeAsString(),
          makeManifestWithDegree().SerializeAsString()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Every broken message would be reported on its own.
  google::protobuf::LogSilencer silencer;
  StatusOr<ManifestView> whole =
      ManifestView::parse(data, static_cast<int64_t>(size));
  if (whole.isOk())
    useView(*whole);
  // Almost no mutation keeps the hash: repair it to get past it.
  plan::Manifest manifest;
  if (!manifest.ParseFromArray(data, static_cast<int>(size)))
    return 0;
  manifest.set_hash(manifestHash(manifest));
  StatusOr<ManifestView> view = ManifestView::create(std::move(manifest));
  if (!view.isOk())
    return 0;
  ++acceptedInputs;
  useView(*view);
  return 0;
}
