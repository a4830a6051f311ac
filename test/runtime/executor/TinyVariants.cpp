//===- TinyVariants.cpp - Kinds of the tiny model that freeze -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyVariants.h"

#include "runtime/abi/Abi.h"

#include <algorithm>

namespace dyna {
namespace {

void keepRoles(plan::LayerKind &kind, std::initializer_list<int> kept) {
  for (int role = 0; role < kind.roles_size(); ++role)
    if (std::find(kept.begin(), kept.end(), role) == kept.end())
      kind.mutable_roles(role)->Clear();
}

void makeFrozen(plan::LayerKind &kind) {
  kind.set_frozen(true);
  for (int slot = 0; slot < kind.splits_size(); ++slot)
    kind.mutable_splits(slot)->clear_gradient_partial();
  kind.mutable_tiers(DYNA_TIER_DEFERRED)->Clear();
  // The products for gradients of weights are half of backward.
  plan::LayerKind::Role *backward = kind.mutable_roles(DYNA_ROLE_BACKWARD);
  backward->set_flops_per_token(
      kind.roles(DYNA_ROLE_BACKWARD_INPUT).flops_per_token());
}

void makePassing(plan::LayerKind &kind) {
  makeFrozen(kind);
  keepRoles(kind, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD,
                   DYNA_ROLE_RECOMPUTE_SELECTIVE, DYNA_ROLE_RECOMPUTE_FULL,
                   DYNA_ROLE_BACKWARD});
}

/// Backward has the gradient of its input in the workspace.
void makeFirst(plan::LayerKind &kind) {
  kind.set_stops_gradient(true);
  const int64_t row = kind.tiers(DYNA_TIER_INPUT).tq();
  for (int role : {DYNA_ROLE_BACKWARD, DYNA_ROLE_BACKWARD_INPUT})
    if (kind.roles(role).present()) {
      plan::LinearBytes *bytes = kind.mutable_roles(role)->mutable_workspace();
      bytes->set_tq(bytes->tq() + row);
    }
}

void makeAlone(plan::LayerKind &kind, bool stops) {
  makeFrozen(kind);
  kind.set_stops_gradient(stops);
  keepRoles(kind, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD});
  for (int tier : {DYNA_TIER_PRODUCTS, DYNA_TIER_ELEMENTWISE})
    kind.mutable_tiers(tier)->Clear();
  *kind.mutable_roles(DYNA_ROLE_FORWARD)->mutable_workspace() =
      kind.roles(DYNA_ROLE_EVALUATE).workspace();
  kind.set_key_gradient_bytes(0);
}

/// Adds the variants of one list of kinds, whose names end in `suffix`.
template <typename Kinds> void addTo(Kinds &kinds, const std::string &suffix) {
  auto add = [&](int base, const char *name) -> plan::LayerKind & {
    plan::LayerKind copy = kinds->Get(base);
    std::string whole = copy.name();
    whole.resize(whole.size() - suffix.size());
    copy.set_variant_of(whole);
    copy.set_name(whole + name + suffix);
    return *kinds->Add() = copy;
  };
  makeAlone(add(0, ".alone"), /*stops=*/false);
  makeFirst(add(1, ".first"));
  makePassing(add(1, ".passing"));
  makeAlone(add(1, ".alone"), /*stops=*/true);
  add(2, ".first").set_stops_gradient(true);
  plan::LayerKind &head = add(2, ".passing");
  const int64_t flops = head.roles(DYNA_ROLE_FORWARD).flops_per_target();
  makePassing(head);
  head.mutable_roles(DYNA_ROLE_FORWARD)->set_flops_per_target(flops / 3 * 2);
}

} // namespace

void addTinyVariants(plan::Manifest &manifest) {
  auto *kinds = manifest.mutable_kinds();
  addTo(kinds, "");
  for (plan::TensorDegree &degree : *manifest.mutable_degrees()) {
    auto *locals = degree.mutable_kinds();
    addTo(locals,
          ".tp" + std::to_string(degree.tp()) + (degree.sp() ? ".sp" : ""));
  }
}

} // namespace dyna
