//===- TinyManifest.cpp - What the tiny program says of itself ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/Model.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/executor/TinyVariants.h"

#include <algorithm>
#include <array>
#include <map>

namespace dyna {

TinySizes tinySizes;

namespace {

constexpr int64_t W = tinyWidth;

void addSpec(plan::TensorSpec *spec, plan::ElementType type,
             plan::TensorSpec::Rows rows,
             std::initializer_list<int64_t> shape) {
  spec->set_type(type);
  spec->set_rows(rows);
  for (int64_t size : shape)
    spec->add_shape(size);
}

void addRoles(plan::LayerKind *kind, std::initializer_list<int> roles) {
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
    kind->add_roles();
  for (int role : roles)
    kind->mutable_roles(role)->set_present(true);
}

void addTable(plan::LayerKind *kind, plan::ElementType type) {
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED,
          {tinySizes.vocabulary, W});
  addRoles(kind, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD, DYNA_ROLE_BACKWARD,
                  DYNA_ROLE_UPDATE, DYNA_ROLE_GRAD_NORM, DYNA_ROLE_CAST});
}

plan::LayerKind *addKind(plan::Manifest &manifest, const char *name) {
  plan::LayerKind *kind = manifest.add_kinds();
  kind->set_name(name);
  for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier)
    kind->add_tiers();
  return kind;
}

void addBlock(plan::LayerKind *kind, const TinyOptions &options) {
  plan::ElementType type = options.compute;
  int64_t e = elementBytes(type), H = options.hidden;
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {H, W});
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {H});
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {W, H});
  addSpec(kind->add_inputs(), type, plan::TensorSpec::TQ, {W});
  addSpec(kind->add_outputs(), type, plan::TensorSpec::TQ, {W});
  kind->mutable_tiers(DYNA_TIER_INPUT)->set_tq(e * W);
  kind->mutable_tiers(DYNA_TIER_PRODUCTS)->set_tq(e * H);
  kind->mutable_tiers(DYNA_TIER_ELEMENTWISE)->set_tq(e * (W + H));
  kind->mutable_tiers(DYNA_TIER_DEFERRED)->set_tq(e * (W + H));
  addRoles(kind, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD,
                  DYNA_ROLE_RECOMPUTE_SELECTIVE, DYNA_ROLE_RECOMPUTE_FULL,
                  DYNA_ROLE_UPDATE, DYNA_ROLE_GRAD_NORM, DYNA_ROLE_CAST});
  kind->mutable_roles(DYNA_ROLE_BACKWARD)->set_present(options.wholeBackward);
  for (int role : {DYNA_ROLE_BACKWARD_INPUT, DYNA_ROLE_BACKWARD_WEIGHT})
    kind->mutable_roles(role)->set_present(options.splitBackward);
  for (int role : {DYNA_ROLE_EVALUATE, DYNA_ROLE_BACKWARD})
    kind->mutable_roles(role)->mutable_workspace()->set_tq(e * (W + H));
  for (int role : {DYNA_ROLE_BACKWARD_INPUT, DYNA_ROLE_BACKWARD_WEIGHT})
    kind->mutable_roles(role)->mutable_workspace()->set_tq(e * W);
  kind->set_key_bytes(e * W);
  kind->set_key_gradient_bytes((type == plan::F64 ? 8 : 4) * W);
  kind->set_flops_per_token(4 * W * H);
  for (auto [role, products] :
       {std::pair(DYNA_ROLE_EVALUATE, 2), std::pair(DYNA_ROLE_FORWARD, 2),
        std::pair(DYNA_ROLE_RECOMPUTE_FULL, 1),
        std::pair(DYNA_ROLE_BACKWARD, 4),
        std::pair(DYNA_ROLE_BACKWARD_INPUT, 2),
        std::pair(DYNA_ROLE_BACKWARD_WEIGHT, 2)})
    kind->mutable_roles(role)->set_flops_per_token(products * 2 * W * H);
}

void addParameter(plan::Manifest &manifest, const std::string &name,
                  std::initializer_list<int64_t> shape, double std) {
  plan::Parameter *parameter = manifest.add_parameters();
  parameter->set_name(name);
  for (int64_t size : shape)
    parameter->add_shape(size);
  parameter->set_normal_std(std);
  parameter->set_decay(true);
}

void addLayer(plan::Manifest &manifest, const std::string &name, int kind,
              std::initializer_list<int> parameters) {
  const int before = manifest.layers_size();
  plan::Layer *layer = manifest.add_layers();
  if (before > 0)
    layer->add_producers(before - 1);
  layer->set_name(name);
  layer->set_kind(kind);
  for (int p : parameters)
    layer->add_parameters(p);
}

/// Deals dimension `dim` of a kind's parameter to all ranks.
void deal(plan::LayerKind *kind, int slot, int dim, int tp) {
  plan::ParameterSplit *split = kind->mutable_splits(slot);
  split->set_dim(dim);
  addPart(split->mutable_parts(), 1, tp);
  plan::TensorSpec *spec = kind->mutable_parameters(slot);
  spec->set_shape(dim, (spec->shape(dim) + tp - 1) / tp);
}

using Exchange = plan::LayerExchange;

/// An exchange of `bytes` per token, in all functions of these roles.
void addExchange(plan::LayerKind *kind, std::initializer_list<int> roles,
                 Exchange::Kind what, int64_t bytes) {
  for (int role : roles) {
    Exchange *exchange = kind->mutable_roles(role)->add_exchanges();
    exchange->set_group(DYNA_GROUP_TP);
    Exchange::Tensor *tensor = exchange->add_tensors();
    tensor->set_kind(what);
    tensor->mutable_bytes()->set_tq(bytes);
  }
}

/// What the functions of TinyModel.cpp call, in order.
void addExchanges(plan::LayerKind *embedding, plan::LayerKind *block,
                  plan::LayerKind *head, int64_t row, bool sp) {
  Exchange::Kind sum = sp ? Exchange::REDUCE_SCATTER : Exchange::ALL_REDUCE;
  constexpr auto gather = Exchange::ALL_GATHER;
  addExchange(embedding, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD}, sum, row);
  if (sp) {
    addExchange(embedding, {DYNA_ROLE_BACKWARD}, gather, row);
    addExchange(block,
                {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD,
                 DYNA_ROLE_RECOMPUTE_SELECTIVE, DYNA_ROLE_RECOMPUTE_FULL,
                 DYNA_ROLE_BACKWARD, DYNA_ROLE_BACKWARD_INPUT},
                gather, row);
    addExchange(head, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD}, gather, row);
  }
  addExchange(block,
              {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD, DYNA_ROLE_BACKWARD,
               DYNA_ROLE_BACKWARD_INPUT},
              sum, row);
  for (int64_t numbers : {1, 2})
    addExchange(head, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD},
                Exchange::ALL_REDUCE, 8 * numbers);
  addExchange(head, {DYNA_ROLE_FORWARD}, sum, row);
  // A role that is not there has none.
  for (plan::LayerKind::Role &role : *block->mutable_roles())
    if (!role.present())
      role.clear_exchanges();
}

/// Where ranks have parts of the tokens, functions collect and add up all of
/// them in the workspace.
void addRoom(plan::LayerKind *kind, int64_t row) {
  for (int role = 0; role <= DYNA_ROLE_BACKWARD_WEIGHT; ++role) {
    plan::LinearBytes *bytes = kind->mutable_roles(role)->mutable_workspace();
    if (kind->roles(role).present())
      bytes->set_tq(bytes->tq() + 2 * row);
  }
}

/// Parameters are numbered as `shares` does, whichever layer uses them first.
void addSharedBlocks(plan::Manifest &manifest, const TinyOptions &options) {
  std::map<int, int> slots; // of each number, one at which it is used
  for (const std::array<int, 3> &block : options.shares)
    for (int slot = 0; slot < 3; ++slot)
      slots[block[slot]] = slot;
  std::map<int, int> parameters;
  for (auto [number, slot] : slots) {
    const int64_t H = options.hidden;
    parameters[number] = manifest.parameters_size();
    const std::string name = "shared." + std::to_string(number);
    if (slot == 1)
      addParameter(manifest, name, {H}, 0.1);
    else if (slot == 0)
      addParameter(manifest, name, {H, W}, 0.4);
    else
      addParameter(manifest, name, {W, H}, 0.4);
  }
  for (size_t b = 0; b < options.shares.size(); ++b) {
    const auto &[w1, b1, w2] = options.shares[b];
    addLayer(manifest, "h." + std::to_string(b), 1,
             {parameters[w1], parameters[b1], parameters[w2]});
  }
}

} // namespace

void addPart(google::protobuf::RepeatedPtrField<plan::AxisPart> *parts,
             int64_t stride, int64_t size) {
  plan::AxisPart *part = parts->Add();
  part->set_stride(stride);
  part->set_size(size);
}

plan::TensorDegree *addDegree(plan::Manifest &manifest, int tp, bool sp) {
  plan::TensorDegree *degree = manifest.add_degrees();
  degree->set_tp(tp);
  degree->set_sp(sp);
  for (const plan::LayerKind &whole : manifest.kinds()) {
    plan::LayerKind *kind = degree->add_kinds();
    *kind = whole;
    kind->clear_weight_groups();
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
  plan::LayerKind *embedding = degree->mutable_kinds(0);
  plan::LayerKind *block = degree->mutable_kinds(1);
  plan::LayerKind *head = degree->mutable_kinds(2);
  deal(embedding, 0, 0, tp);
  for (int slot : {0, 1})
    deal(block, slot, 0, tp);
  deal(block, 2, 1, tp);
  deal(head, 0, 0, tp);
  // Hidden features come out even, the vocabulary need not.
  block->set_flops_per_token(block->flops_per_token() / tp);
  for (plan::LayerKind::Role &role : *block->mutable_roles())
    role.set_flops_per_token(role.flops_per_token() / tp);
  int64_t V = head->flops_per_target() / (2 * W), part = (V + tp - 1) / tp;
  head->set_flops_per_target(2 * part * W);
  for (plan::LayerKind::Role &role : *head->mutable_roles())
    role.set_flops_per_target(role.flops_per_target() / V * part);
  // Every rank has seen other tokens.
  if (sp && head->splits_size() > 1)
    addPart(head->mutable_splits(1)->mutable_gradient_partial(), 1, tp);
  int64_t row = elementBytes(manifest.compute_type()) * W;
  addExchanges(embedding, block, head, row, sp);
  for (plan::LayerKind &kind : *degree->mutable_kinds())
    if (sp)
      addRoom(&kind, row);
  return degree;
}

plan::Manifest tinyManifest(const TinyOptions &options) {
  plan::Manifest manifest;
  plan::ElementType type = options.compute;
  int64_t V = options.vocabulary, H = options.hidden;
  tinySizes = {V, H, options.headBias, options.batchTables};
  manifest.set_batch_tables(options.batchTables);
  manifest.set_format(1);
  manifest.set_model("tiny");
  manifest.set_compute_type(type);
  manifest.set_gradient_type(options.gradients);
  manifest.mutable_facts()->set_family("custom");
  manifest.mutable_facts()->set_vocabulary(V);
  manifest.mutable_facts()->set_positions(64);
  plan::LayerKind *embedding = addKind(manifest, "embedding");
  addTable(embedding, type);
  addSpec(embedding->add_inputs(), plan::I32, plan::TensorSpec::TQ, {});
  addSpec(embedding->add_outputs(), type, plan::TensorSpec::TQ, {W});
  embedding->mutable_tiers(DYNA_TIER_INPUT)->set_tq(4);
  plan::LayerKind *block = addKind(manifest, "block");
  addBlock(block, options);
  plan::LayerKind *head = addKind(manifest, "head");
  addTable(head, type);
  if (options.headBias)
    addSpec(head->add_parameters(), type, plan::TensorSpec::FIXED, {W});
  addSpec(head->add_inputs(), type, plan::TensorSpec::TQ, {W});
  addSpec(head->add_inputs(), plan::I32, plan::TensorSpec::TQ, {});
  addSpec(head->add_outputs(), plan::F64, plan::TensorSpec::FIXED, {1});
  head->mutable_tiers(DYNA_TIER_INPUT)->set_tq(elementBytes(type) * W);
  head->mutable_tiers(DYNA_TIER_PRODUCTS)->set_tq(elementBytes(type) * W);
  for (int role : {DYNA_ROLE_FORWARD, DYNA_ROLE_EVALUATE}) {
    plan::LinearBytes *bytes = head->mutable_roles(role)->mutable_workspace();
    bytes->set_constant(8 * V);
    bytes->set_tq(3 * 8);
  }
  head->set_flops_per_target(2 * V * W);
  head->mutable_roles(DYNA_ROLE_EVALUATE)->set_flops_per_target(2 * V * W);
  head->mutable_roles(DYNA_ROLE_FORWARD)->set_flops_per_target(6 * V * W);

  addParameter(manifest, "wte", {V, W}, 0.5);
  addLayer(manifest, "embedding", 0, {0});
  addSharedBlocks(manifest, options);
  for (int b = 0; options.shares.empty() && b < options.blocks; ++b) {
    std::string name = "h." + std::to_string(b);
    int p = manifest.parameters_size();
    addParameter(manifest, name + ".w1", {H, W}, 0.4);
    addParameter(manifest, name + ".b1", {H}, 0.1);
    bool ties = options.nestedTie && b > 0 && b + 1 == options.blocks;
    if (!ties)
      addParameter(manifest, name + ".w2", {W, H}, 0.4);
    constexpr int firstW2 = 3;
    addLayer(manifest, name, 1, {p, p + 1, ties ? firstW2 : p + 2});
  }
  if (options.untied)
    addParameter(manifest, "head.w", {V, W}, 0.5);
  addLayer(manifest, "head", 2,
           {options.untied ? manifest.parameters_size() - 1 : 0});
  if (options.headBias) {
    manifest.mutable_layers()->rbegin()->add_parameters(
        manifest.parameters_size());
    addParameter(manifest, "head.b", {W}, 0.1);
  }
  for (plan::Parameter &parameter : *manifest.mutable_parameters())
    if (std::count(options.frozen.begin(), options.frozen.end(),
                   parameter.name()) > 0)
      parameter.set_frozen(true);
  for (const TinyDegree &degree : options.degrees)
    addDegree(manifest, degree.tp, degree.sp);
  if (options.freezable)
    addTinyVariants(manifest);
  // A channel is a row of the first matrix, and a column of the second one.
  plan::WeightGroups *channels = manifest.mutable_kinds(1)->add_weight_groups();
  channels->set_kind(plan::WeightGroups::CHANNEL);
  channels->set_count(options.hidden);
  channels->add_parts()->set_parameter(0);
  channels->add_parts()->set_parameter(2);
  channels->mutable_parts(1)->set_dimension(1);
  manifest.set_hash(manifestHash(manifest));
  manifest.set_producer("by hand");
  manifest.set_matmul("generated");
  return manifest;
}

} // namespace dyna
