//===- DescribeManifest.cpp - A manifest for people and tools -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/DescribeManifest.h"

#include "runtime/base/Text.h"
#include "runtime/plan/PersistentLayout.h"

#include <algorithm>
#include <set>

namespace dyna {
namespace {

const char *const roleNames[DYNA_ROLE_COUNT] = {"evaluate",
                                                "forward",
                                                "recompute_selective",
                                                "recompute_full",
                                                "backward",
                                                "backward_input",
                                                "backward_weight",
                                                "update",
                                                "grad_norm",
                                                "cast"};

std::string quote(const std::string &text) {
  std::string quoted = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      quoted += '\\', quoted += static_cast<char>(c);
    else if (c < 0x20)
      quoted += formatText("\\u%04x", c);
    else
      quoted += static_cast<char>(c);
  }
  return quoted + "\"";
}

template <typename Shape> std::string shapeText(const Shape &shape) {
  std::string text = "[";
  for (int64_t size : shape) {
    if (text.size() > 1)
      text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::string formulaJson(const plan::LinearBytes &formula) {
  return formatText("{\"tq\": %d, \"tkv\": %d, \"s\": %d, \"constant\": %d}",
                    formula.tq(), formula.tkv(), formula.s(),
                    formula.constant());
}

template <typename Specs> std::string specsJson(const Specs &specs) {
  static const char *const rows[] = {"fixed", "tq", "tkv", "s", "tq_part"};
  std::string text = "[";
  for (const plan::TensorSpec &spec : specs) {
    if (text.size() > 1)
      text += ", ";
    text += formatText("{\"type\": \"%s\", \"rows\": \"%s\", \"shape\": %s}",
                       elementTypeName(spec.type()), rows[spec.rows()],
                       shapeText(spec.shape()));
  }
  return text + "]";
}

template <typename Parts> std::string partsJson(const Parts &parts) {
  std::string text = "[";
  for (const plan::AxisPart &part : parts)
    text += formatText("%s{\"stride\": %d, \"size\": %d}",
                       text.size() > 1 ? ", " : "", part.stride(), part.size());
  return text + "]";
}

std::string splitsJson(const plan::LayerKind &kind) {
  std::string text = "[";
  for (const plan::ParameterSplit &split : kind.splits())
    text += formatText("%s{\"dim\": %d, \"parts\": %s, "
                       "\"gradient_partial\": %s}",
                       text.size() > 1 ? ", " : "", split.dim(),
                       partsJson(split.parts()),
                       partsJson(split.gradient_partial()));
  return text + "]";
}

std::string exchangesJson(const plan::LayerKind::Role &role) {
  static const char *const kinds[] = {"all_reduce", "all_gather",
                                      "reduce_scatter", "all_to_all"};
  std::string text;
  for (const plan::LayerExchange &exchange : role.exchanges()) {
    text +=
        formatText("%s{\"group\": %d, \"per_chunk\": %s, \"tensors\": [",
                   text.empty() ? ", \"exchanges\": [" : ", ", exchange.group(),
                   exchange.per_chunk() ? "true" : "false");
    const char *comma = "";
    for (const plan::LayerExchange::Tensor &tensor : exchange.tensors()) {
      text += formatText("%s{\"kind\": \"%s\", \"dealt_group\": %d, "
                         "\"bytes\": %s}",
                         comma, kinds[tensor.kind()], tensor.dealt_group(),
                         formulaJson(tensor.bytes()));
      comma = ", ";
    }
    text += "]}";
  }
  return text.empty() ? text : text + "]";
}

std::string kindJson(const plan::LayerKind &kind) {
  std::string text =
      "{\"name\": " + quote(kind.name()) +
      ",\n     \"parameters\": " + specsJson(kind.parameters()) +
      (kind.splits_size() > 0 ? ",\n     \"splits\": " + splitsJson(kind)
                              : std::string()) +
      ",\n     \"inputs\": " + specsJson(kind.inputs()) +
      ",\n     \"outputs\": " + specsJson(kind.outputs());
  for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier)
    text += formatText(",\n     \"%s_tier\": %s", tierName(tier),
                       formulaJson(kind.tiers(tier)));
  text += ",\n     \"roles\": {";
  bool first = true;
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role) {
    if (!kind.roles(role).present())
      continue;
    const plan::LayerKind::Role &said = kind.roles(role);
    text += formatText(
        "%s\n      \"%s\": {\"workspace\": %s, \"flops_per_token\": %d, "
        "\"flops_per_target\": %d, \"flops_per_pair\": %d, "
        "\"flops_per_causal_pair\": %d%s}",
        first ? "" : ",", roleNames[role], formulaJson(said.workspace()),
        said.flops_per_token(), said.flops_per_target(), said.flops_per_pair(),
        said.flops_per_causal_pair(), exchangesJson(said));
    first = false;
  }
  return text +
         formatText("},\n     \"flops_per_token\": %d, \"flops_per_target\": "
                    "%d, \"attention_flops_per_pair\": %d, \"causal\": %s}",
                    kind.flops_per_token(), kind.flops_per_target(),
                    kind.attention_flops_per_pair(),
                    kind.causal() ? "true" : "false");
}

std::string factsText(const plan::ModelFacts &facts) {
  std::string text = formatText("family %s, vocabulary %d", facts.family(),
                                facts.vocabulary());
  auto add = [&](const char *name, int64_t value) {
    if (value > 0)
      text += formatText(", %s %d", name, value);
  };
  add("positions", facts.positions());
  add("width", facts.width());
  add("heads", facts.heads());
  add("kv heads", facts.kv_heads());
  add("head size", facts.head_dim());
  add("feed-forward", facts.feed_forward());
  return text;
}

/// "layers 1 to 6 block", equal neighbours in one line.
std::string layersText(const Model &model) {
  std::string text;
  for (int first = 0; first < model.layers();) {
    int last = first;
    while (last + 1 < model.layers() &&
           model.layer(last + 1).kind() == model.layer(first).kind())
      ++last;
    std::string range = first == last ? std::to_string(first)
                                      : formatText("%d to %d", first, last);
    const plan::LayerKind &kind = model.kind(first);
    int64_t elements = 0;
    for (int p : model.layer(first).parameters())
      elements += model.elements(p);
    text += formatText("  %-10s %-20s %14d parameters each\n", range,
                       kind.name(), elements);
    first = last + 1;
  }
  return text;
}

/// "[tp]", "[tp:2/1]" (size 2, stride 1), as runtime/layout writes them.
template <typename Parts> std::string partsText(const Parts &parts, int tp) {
  std::string text = "[";
  for (const plan::AxisPart &part : parts) {
    if (text.size() > 1)
      text += ", ";
    text += part.size() == tp
                ? std::string("tp")
                : formatText("tp:%d/%d", part.size(), part.stride());
  }
  return text + "]";
}

/// The tensor degrees, and how each kind's parameters lie on their ranks.
std::string degreesText(const Model &model) {
  const plan::Manifest &manifest = model.manifest();
  std::string text;
  if (manifest.strategies_size() > 0)
    text += "strategies\n";
  for (const std::string &strategy : manifest.strategies())
    text += "  " + strategy + "\n";
  for (const plan::TensorDegree &degree : manifest.degrees()) {
    text +=
        formatText("tensor degree tp=%d%s: each rank's part of parameters\n",
                   degree.tp(), degree.sp() ? ", sp=1" : "");
    std::set<int> shown;
    for (int l = 0; l < model.layers(); ++l) {
      int k = model.layer(l).kind();
      if (!shown.insert(k).second)
        continue;
      const plan::LayerKind &kind = degree.kinds(k);
      for (int slot = 0; slot < kind.splits_size(); ++slot) {
        const plan::ParameterSplit &split = kind.splits(slot);
        std::string place = "on every rank";
        if (split.parts_size() > 0)
          place = formatText("dimension %d over %s", split.dim(),
                             partsText(split.parts(), degree.tp()));
        if (split.gradient_partial_size() > 0)
          place += ", gradient summed over " +
                   partsText(split.gradient_partial(), degree.tp());
        text +=
            formatText("  %-44s %-18s %s\n",
                       model.parameter(model.layer(l).parameters(slot)).name(),
                       shapeText(kind.parameters(slot).shape()), place);
      }
    }
  }
  for (int g = 0; g < manifest.groups_size(); ++g)
    text += formatText(
        "group %d: %s of tp=%d\n", DYNA_GROUP_COUNT + g,
        partsText(manifest.groups(g).parts(), manifest.groups(g).tp()),
        manifest.groups(g).tp());
  return text;
}

/// The same for tools, behind the layers.
std::string degreesJson(const plan::Manifest &manifest) {
  std::string text = " \"degrees\": [";
  for (int d = 0; d < manifest.degrees_size(); ++d) {
    const plan::TensorDegree &degree = manifest.degrees(d);
    text +=
        formatText("%s\n  {\"tp\": %d, \"sp\": %s, \"kinds\": [", d ? "," : "",
                   degree.tp(), degree.sp() ? "true" : "false");
    for (int k = 0; k < degree.kinds_size(); ++k)
      text += (k ? ",\n    " : "\n    ") + kindJson(degree.kinds(k));
    text += "]}";
  }
  text += "],\n \"groups\": [";
  for (int g = 0; g < manifest.groups_size(); ++g)
    text += formatText("%s{\"tp\": %d, \"parts\": %s}", g ? ", " : "",
                       manifest.groups(g).tp(),
                       partsJson(manifest.groups(g).parts()));
  text += "],\n \"strategies\": [";
  for (int s = 0; s < manifest.strategies_size(); ++s)
    text += (s ? ", " : "") + quote(manifest.strategies(s));
  return text + "],\n";
}

std::string memoryText(const Model &model, int64_t tokens) {
  const RankView view = RankView::whole(model);
  Extent extent{tokens, tokens, 1};
  PersistentLayout persistent = persistentLayout(view);
  std::string text =
      formatText("memory\n  parameters, gradients, optimizer state: %s\n",
                 formatBytes(persistent.bytes));
  text += formatText("  kept from forward to backward by one micro-batch of "
                     "%d tokens in one sample\n",
                     tokens);
  const char *const names[] = {"none", "selective", "full"};
  for (int mode = 0; mode < 3; ++mode) {
    int64_t kept = 0, late = 0;
    for (int l = 0; l < view.layers(); ++l) {
      auto nearest =
          nearestMode(view.kind(l), static_cast<plan::Recompute>(mode));
      kept += view.keptBytes(l, nearest, extent);
      late = std::max(late, view.lateBytes(l, nearest, false, extent));
    }
    text += formatText("    recompute %-10s %12s, and %s once\n", names[mode],
                       formatBytes(kept), formatBytes(late));
  }
  int64_t workspace = 0;
  for (int l = 0; l < view.layers(); ++l)
    for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
      if (view.hasRole(l, role))
        workspace = std::max(workspace, view.workspaceBytes(l, role, extent));
  text += formatText("  workspace: %s\n", formatBytes(workspace));
  return text;
}

} // namespace

const char *elementTypeName(plan::ElementType type) {
  switch (type) {
  case plan::F64:
    return "f64";
  case plan::F32:
    return "f32";
  case plan::BF16:
    return "bf16";
  case plan::I32:
    return "i32";
  default:
    return "unknown";
  }
}

std::string describeManifest(const Model &model, int64_t tokens) {
  const plan::Manifest &manifest = model.manifest();
  std::string text = formatText(
      "model %s\n  %s\n  %d parameters, compute type %s, gradients in %s, "
      "matrix products: %s\n  compiled by %s, model hash %016x\n",
      manifest.model(), factsText(manifest.facts()), model.totalElements(),
      elementTypeName(manifest.compute_type()),
      elementTypeName(model.gradientType()), manifest.matmul(),
      manifest.producer(), manifest.hash());
  text += "layers\n" + layersText(model);
  text += "parameters\n";
  for (int p = 0; p < model.parameters(); ++p)
    text += formatText("  %-44s %-18s %s\n", model.parameter(p).name(),
                       shapeText(model.parameter(p).shape()),
                       model.parameter(p).decay() ? "" : "no decay");
  return text + degreesText(model) + memoryText(model, tokens);
}

std::string manifestToJson(const Model &model) {
  const plan::Manifest &manifest = model.manifest();
  const plan::ModelFacts &facts = manifest.facts();
  std::string text = formatText(
      "{\"format\": %d,\n \"model\": %s,\n \"compute_type\": \"%s\",\n "
      "\"gradient_type\": \"%s\",\n",
      manifest.format(), quote(manifest.model()),
      elementTypeName(manifest.compute_type()),
      elementTypeName(model.gradientType()));
  text += formatText(
      " \"facts\": {\"family\": %s, \"vocabulary\": %d, \"positions\": %d, "
      "\"width\": %d, \"heads\": %d, \"kv_heads\": %d, \"head_dim\": "
      "%d, \"feed_forward\": %d, \"config_json\": %s},\n",
      quote(facts.family()), facts.vocabulary(), facts.positions(),
      facts.width(), facts.heads(), facts.kv_heads(), facts.head_dim(),
      facts.feed_forward(), quote(facts.config_json()));
  text += " \"parameters\": [";
  for (int p = 0; p < model.parameters(); ++p) {
    const plan::Parameter &parameter = model.parameter(p);
    text += formatText("%s\n  {\"name\": %s, \"shape\": %s, \"constant\": "
                       "%.17g, \"normal_std\": %.17g, \"decay\": %s}",
                       p ? "," : "", quote(parameter.name()),
                       shapeText(parameter.shape()), parameter.constant(),
                       parameter.normal_std(),
                       parameter.decay() ? "true" : "false");
  }
  text += "],\n \"kinds\": [";
  for (int k = 0; k < manifest.kinds_size(); ++k)
    text += (k ? ",\n    " : "\n    ") + kindJson(manifest.kinds(k));
  text += "],\n \"layers\": [";
  for (int l = 0; l < model.layers(); ++l)
    text += formatText("%s\n  {\"name\": %s, \"kind\": %d, \"parameters\": %s, "
                       "\"producers\": %s}",
                       l ? "," : "", quote(model.layer(l).name()),
                       model.layer(l).kind(),
                       shapeText(model.layer(l).parameters()),
                       shapeText(model.layer(l).producers()));
  text += "],\n" + degreesJson(manifest);
  text += formatText(" \"persistent_bytes\": %d,\n",
                     persistentLayout(RankView::whole(model)).bytes);
  return text +
         formatText(" \"hash\": \"%016x\", \"producer\": %s, \"matmul\": "
                    "%s}\n",
                    manifest.hash(), quote(manifest.producer()),
                    quote(manifest.matmul()));
}

} // namespace dyna
