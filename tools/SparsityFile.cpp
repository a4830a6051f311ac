//===- SparsityFile.cpp - Reads states of layers from a table -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/SparsityFile.h"

#include "runtime/base/file/InputFile.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace dyna {
namespace {

constexpr int64_t maxFileBytes = INT64_C(1) << 24;

std::string trimmed(const std::string &text) {
  const char *around = " \t\r\"";
  const size_t first = text.find_first_not_of(around);
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(around) - first + 1);
}

std::vector<std::string> fieldsOf(const std::string &line) {
  std::vector<std::string> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

std::string shortened(const std::string &text) {
  constexpr size_t most = 100;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

StatusOr<double> parseSparsity(const std::string &field) {
  const char *begin = field.c_str();
  char *end = nullptr;
  const double value = std::strtod(begin, &end);
  if (field.empty() || *end != '\0' ||
      std::isspace(static_cast<unsigned char>(*begin)))
    return Status::invalidArgument(
        formatText("expects a sparsity, the share of weights that are zero, "
                   "but got '%s'",
                   shortened(field)));
  if (!(value >= 0 && value < 1))
    return Status::invalidArgument(
        formatText("sparsity expects 0 or more and less than 1, but got %s%s",
                   shortened(field), value > 1 ? ": 90 % is 0.9" : ""));
  return value;
}

/// Reads one line into the state of its layer, and returns the layer.
StatusOr<int> readLine(const std::vector<std::string> &fields,
                       const Model &model, LayerStates &states) {
  if (fields.size() < 2 || fields.size() > 3)
    return Status::invalidArgument(
        formatText("expects LAYER, SPARSITY or LAYER, SPARSITY, frozen, but "
                   "got %d field%s",
                   fields.size(), fields.size() == 1 ? "" : "s"));
  const int layer = findLayer(model, fields[0]);
  if (layer < 0)
    return Status::invalidArgument(formatText(
        "the model has no layer '%s': expects a name such as '%s', or a number "
        "from 0 to %d",
        shortened(fields[0]), model.layer(model.layers() / 2).name(),
        model.layers() - 1));
  DYNA_ASSIGN_OR_RETURN(states[layer].sparsity, parseSparsity(fields[1]));
  if (fields.size() == 3 && fields[2] != "frozen" && !fields[2].empty())
    return Status::invalidArgument(
        formatText("the third field expects frozen or nothing, but got '%s'",
                   shortened(fields[2])));
  states[layer].frozen = fields.size() == 3 && fields[2] == "frozen";
  return layer;
}

} // namespace

int findLayer(const Model &model, const std::string &field) {
  for (int l = 0; l < model.layers(); ++l)
    if (model.layer(l).name() == field)
      return l;
  constexpr size_t mostDigits = 9;
  const bool isNumber = !field.empty() && field.size() <= mostDigits &&
                        std::all_of(field.begin(), field.end(), [](char c) {
                          return c >= '0' && c <= '9';
                        });
  const int number = isNumber ? std::atoi(field.c_str()) : -1;
  return number < model.layers() ? number : -1;
}

StatusOr<LayerStates> parseLayerStates(const std::string &text,
                                       const std::string &name,
                                       const Model &model) {
  LayerStates states(model.layers());
  std::map<int, int> lineOf;
  int number = 0;
  bool isFirst = true;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    if (trimmed(line).empty())
      continue;
    const std::vector<std::string> fields = fieldsOf(line);
    if (std::exchange(isFirst, false) && fields.front() == "layer")
      continue;
    auto layer = readLine(fields, model, states);
    if (!layer.isOk())
      return Status::invalidArgument(
          formatText("%s:%d: %s", name, number, layer.status().message()));
    const auto [other, isNew] = lineOf.emplace(*layer, number);
    if (!isNew)
      return Status::invalidArgument(formatText(
          "%s:%d: layer '%s' is in line %d already: keep one of them", name,
          number, model.layer(*layer).name(), other->second));
  }
  if (lineOf.empty())
    return Status::invalidArgument(
        name + ": names no layer: expects lines of LAYER, SPARSITY");
  return states;
}

StatusOr<LayerStates> readLayerStates(const std::string &path,
                                      const Model &model) {
  StatusOr<std::string> text = readFile(path, maxFileBytes);
  if (!text.isOk())
    return Status(text.status().code(),
                  "no states of layers: " + text.status().message());
  return parseLayerStates(*text, path, model);
}

std::string describeStates(const LayerStates &states) {
  std::map<WeightForm, int> layers;
  int frozen = 0, prefix = 0;
  double least = 1, most = 0;
  for (const LayerState &state : states) {
    ++layers[state.form];
    frozen += state.frozen;
    prefix += state.prefix;
    if (state.sparsity > 0) {
      least = std::min(least, state.sparsity);
      most = std::max(most, state.sparsity);
    }
  }
  std::string text = "states of layers:";
  const char *separator = " ";
  for (const auto &[form, count] : layers) {
    text += formatText("%s%d %s", separator, count, describeForm(form));
    separator = ", ";
  }
  if (most > 0)
    text += formatText("; %.4g to %.4g of their weights are zero", least, most);
  if (frozen > 0)
    text +=
        formatText("; %d frozen, %d of these without backward", frozen, prefix);
  return text;
}

} // namespace dyna
