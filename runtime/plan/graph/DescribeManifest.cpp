//===- DescribeManifest.cpp - Describes a manifest for people and tools ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/DescribeManifest.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <set>

namespace dyna {
namespace {

template <typename Shape> std::string shapeText(const Shape &shape) {
  std::string text = "[";
  for (int64_t size : shape) {
    if (text.size() > 1)
      text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
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

/// Describes layers: "layers 1 to 6 block", with equal neighbours in one line.
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

/// Formats parts: "[tp]", "[tp:2/1]" (size 2, stride 1), as runtime/layout
/// writes them.
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

/// Describes the tensor degrees, and the parts of each kind's parameters on
/// their ranks.
std::string degreesText(const Model &model) {
  const plan::Manifest &manifest = model.manifest();
  std::string text;
  if (manifest.strategies_size() > 0)
    text += "strategies\n";
  for (const std::string &strategy : manifest.strategies())
    text += "  " + strategy + "\n";
  if (!manifest.ranges().empty())
    text += "ranges of lengths, where a run is told nothing else\n  " +
            manifest.ranges() + "\n";
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

std::string memoryText(const Model &model, int64_t tokens) {
  const RankView view = RankView::whole(model);
  const Load load = loadOfSample(tokens);
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
      kept += view.keptBytes(l, nearest, load);
      late = std::max(late, view.lateBytes(l, nearest, false, load));
    }
    text += formatText("    recompute %-10s %12s, and %s once\n", names[mode],
                       formatBytes(kept), formatBytes(late));
  }
  int64_t workspace = 0;
  for (int l = 0; l < view.layers(); ++l)
    for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
      if (view.hasRole(l, role))
        workspace = std::max(workspace, view.workspaceBytes(l, role, load));
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
                       model.isFrozen(p)            ? "frozen"
                       : model.parameter(p).decay() ? ""
                                                    : "no decay");
  return text + degreesText(model) + memoryText(model, tokens);
}

std::string manifestToJson(const Model &model) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  plan::Manifest manifest = model.manifest();
  manifest.set_gradient_type(
      model.gradientType()); // printed even if it is the default
  std::string text;
  auto printed =
      google::protobuf::util::MessageToJsonString(manifest, &text, options);
  // JSON can express every manifest that was read.
  return printed.ok() ? text : "{}\n";
}

} // namespace dyna
