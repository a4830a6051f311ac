//===- CostText.cpp - Writes tables of costs as text ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostText.h"

#include "runtime/base/text/Text.h"

#include <google/protobuf/text_format.h>

#include <algorithm>

namespace dyna {
namespace {

std::string textOf(const cost::Link &link) {
  return formatText("{ latency_seconds: %.6g  bytes_per_second: %.6g }",
                    link.latency_seconds(), link.bytes_per_second());
}

/// Quotes a name with any contents.
std::string quoted(const std::string &name) {
  std::string text;
  cost::Entry entry;
  entry.set_kind(name);
  google::protobuf::TextFormat::PrintFieldValueToString(
      entry, cost::Entry::descriptor()->FindFieldByName("kind"), -1, &text);
  return text;
}

void writeEntry(const cost::Entry &entry, std::string &text) {
  text += "entries {\n  kind: " + quoted(entry.kind());
  if (entry.tp() > 1 || entry.sp())
    text += formatText("  tp: %d%s", std::max(entry.tp(), 1),
                       entry.sp() ? "  sp: true" : "");
  text += "  direction: " + cost::Direction_Name(entry.direction()) + "\n";
  for (const cost::Point &point : entry.points()) {
    text += "  points {";
    const std::pair<const char *, int64_t> works[] = {
        {"tokens", point.tokens()},
        {"pairs", point.pairs()},
        {"targets", point.targets()},
        {"context", point.context()}};
    for (auto [field, value] : works)
      if (value != 0)
        text += formatText(" %s: %d", field, value);
    text += formatText(" seconds: %.6g }\n", point.seconds());
  }
  text += "}\n";
}

void writeSparse(const cost::SparseProducts &sparse, std::string &text) {
  text += "sparse {\n";
  if (!sparse.source().empty())
    text += "  source: " + quoted(sparse.source()) + "\n";
  for (const cost::SparsePoint &point : sparse.points()) {
    text += formatText("  points { sparsity: %.6g forward: %.6g",
                       point.sparsity(), point.forward());
    for (auto [field, value] :
         {std::pair("input_gradient", point.input_gradient()),
          std::pair("weight_gradient", point.weight_gradient())})
      if (value != 0)
        text += formatText(" %s: %.6g", field, value);
    text += " }\n";
  }
  text += "}\n";
}

bool areOfOneFunction(const cost::Entry &a, const cost::Entry &b) {
  return a.kind() == b.kind() && std::max(a.tp(), 1) == std::max(b.tp(), 1) &&
         a.sp() == b.sp() && a.direction() == b.direction();
}

} // namespace

std::string writeCosts(const cost::Table &table,
                       const std::vector<std::string> &comments) {
  std::string text;
  for (const std::string &comment : comments)
    text += "# " + comment + "\n";
  if (!table.compute_type().empty())
    text += "compute_type: " + quoted(table.compute_type()) + "\n";
  for (const cost::Layer &layer : table.layers()) {
    text += "layers { kind: " + quoted(layer.kind());
    for (auto [field, value] :
         {std::pair("parameters", layer.parameters()),
          std::pair("flops_per_token", layer.flops_per_token()),
          std::pair("flops_per_pair", layer.flops_per_pair()),
          std::pair("flops_per_target", layer.flops_per_target())})
      if (value != 0)
        text += formatText("  %s: %d", field, value);
    text += " }\n";
  }
  for (const cost::Entry &entry : table.entries())
    writeEntry(entry, text);
  if (table.has_device()) {
    const cost::Device &device = table.device();
    text += formatText(
        "device {\n  name: %s\n  f64_flops: %.6g  f32_flops: %.6g  "
        "bf16_flops: %.6g\n  bytes_per_second: %.6g  launch_seconds: %.6g\n",
        quoted(device.name()), device.f64_flops(), device.f32_flops(),
        device.bf16_flops(), device.bytes_per_second(),
        device.launch_seconds());
    for (auto [field, value] :
         {std::pair("flops_reach", device.flops_reach()),
          std::pair("bytes_reach", device.bytes_reach()),
          std::pair("instruction_seconds", device.instruction_seconds()),
          std::pair("step_seconds", device.step_seconds())})
      if (value != 0)
        text += formatText("  %s: %.6g\n", field, value);
    if (device.memory_bytes() != 0)
      text += formatText("  memory_bytes: %d\n", device.memory_bytes());
    text += "}\n";
  }
  if (table.has_cluster()) {
    const cost::Cluster &cluster = table.cluster();
    text += "cluster {\n";
    if (cluster.nodes() != 0)
      text += formatText("  nodes: %d\n", cluster.nodes());
    if (cluster.devices_per_node() != 0)
      text +=
          formatText("  devices_per_node: %d\n", cluster.devices_per_node());
    if (cluster.has_inside())
      text += "  inside " + textOf(cluster.inside()) + "\n";
    if (cluster.has_between())
      text += "  between " + textOf(cluster.between()) + "\n";
    text += "}\n";
  }
  if (table.has_sparse())
    writeSparse(table.sparse(), text);
  return text;
}

std::vector<std::string> costComments(const std::string &text) {
  std::vector<std::string> comments;
  for (size_t at = 0; at < text.size() && text[at] == '#';) {
    size_t end = std::min(text.find('\n', at), text.size());
    size_t begin = text.find_first_not_of("# ", at);
    comments.push_back(
        text.substr(std::min(begin, end), end - std::min(begin, end)));
    at = end + 1;
  }
  return comments;
}

cost::Table mergeCosts(const cost::Table &before, const cost::Table &measured) {
  cost::Table merged = measured;
  for (const cost::Entry &entry : before.entries()) {
    bool isNew = std::none_of(
        measured.entries().begin(), measured.entries().end(),
        [&](const auto &other) { return areOfOneFunction(entry, other); });
    if (isNew)
      *merged.add_entries() = entry;
  }
  if (measured.layers().empty())
    *merged.mutable_layers() = before.layers();
  if (measured.compute_type().empty())
    merged.set_compute_type(before.compute_type());
  if (!measured.has_device() && before.has_device())
    *merged.mutable_device() = before.device();
  if (!measured.has_cluster() && before.has_cluster())
    *merged.mutable_cluster() = before.cluster();
  if (!measured.has_sparse() && before.has_sparse())
    *merged.mutable_sparse() = before.sparse();
  return merged;
}

} // namespace dyna
