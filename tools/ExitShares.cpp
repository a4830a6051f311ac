//===- ExitShares.cpp - Reads shares of tokens that leave at exits --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/ExitShares.h"

#include "runtime/base/text/Text.h"
#include "tools/SparsityFile.h"

#include <cstdlib>
#include <map>

namespace dyna {
namespace {

Status refuse(const std::string &text, const std::string &why) {
  return Status::invalidArgument(
      "--exit-shares expects layers and the shares of tokens that leave behind "
      "them, as in \"h.3:0.3; h.7:0.2\", but got \"" +
      text + "\": " + why);
}

std::string trimmed(const std::string &text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Returns the last layer that tokens pass that leave behind `layer`.
int leavesBehind(const Model &model, int layer) {
  const int next = layer + 1;
  return next < model.layers() - 1 && model.lossOf(next) >= 0 ? next : layer;
}

struct Entry {
  int layer = 0;
  double share = 0;
};

/// Reads LAYER:SHARE; the error says why it is none.
StatusOr<Entry> parseEntry(const std::string &text, const Model &model) {
  const size_t colon = text.rfind(':');
  const std::string name = trimmed(text.substr(0, colon));
  if (name.empty())
    return Status::invalidArgument("an entry names no layer");
  if (colon == std::string::npos)
    return Status::invalidArgument(
        formatText("the share of '%s' is missing", name));
  Entry entry;
  entry.layer = findLayer(model, name);
  if (entry.layer < 0)
    return Status::invalidArgument(formatText(
        "the model has no layer '%s': expects a name such as '%s', or a number "
        "from 0 to %d",
        name, model.layer(model.layers() / 2).name(), model.layers() - 2));
  if (entry.layer == model.layers() - 1)
    return Status::invalidArgument(formatText(
        "behind '%s', the last layer, there is nothing to leave out", name));
  entry.layer = leavesBehind(model, entry.layer);
  const std::string share = trimmed(text.substr(colon + 1));
  char *end = nullptr;
  entry.share = std::strtod(share.c_str(), &end);
  if (share.empty() || *end != '\0' || !(entry.share >= 0 && entry.share < 1))
    return Status::invalidArgument(
        formatText("the share '%s' of '%s' is no number from 0 to less than 1",
                   share, name));
  return entry;
}

} // namespace

Status setExitShares(const std::string &text, const std::string &unit,
                     const Model &model, LayerStates &states) {
  if (unit != "tokens" && unit != "samples")
    return Status::invalidArgument(
        "--exit-unit expects tokens or samples, but got '" + unit + "'");
  std::map<int, double> leaving;
  double all = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const auto entry = parseEntry(text.substr(begin, end - begin), model);
    begin = end + 1;
    if (!entry.isOk())
      return refuse(text, entry.status().message());
    if (!leaving.emplace(entry->layer, entry->share).second)
      return refuse(text, formatText("tokens leave behind '%s' twice",
                                     model.layer(entry->layer).name()));
    all += entry->share;
  }
  // Ten shares of 0.1 are everything, whatever their sum is rounded to.
  constexpr double rounding = 1e-12;
  if (all > 1 - rounding)
    return refuse(text,
                  formatText("the shares are %g together, so that no "
                             "token would reach '%s'",
                             all, model.layer(model.layers() - 1).name()));
  states.resize(model.layers());
  double left = 0;
  for (int l = 0; l < model.layers(); ++l) {
    states[l].reach = 1 - left;
    states[l].byTokens = left > 0 && unit == "tokens";
    if (const auto found = leaving.find(l); found != leaving.end())
      left += found->second;
  }
  return Status::ok();
}

std::string describeExits(const LayerStates &states) {
  std::string text = "exits: ";
  double before = 0;
  int layers = 0;
  bool isFirst = true, byTokens = false;
  auto add = [&] {
    if (layers > 0)
      text += formatText("%s%d layer%s %s %.4g", isFirst ? "" : ", then ",
                         layers, layers == 1 ? "" : "s",
                         layers == 1 ? "computes" : "compute", before);
    isFirst = isFirst && layers == 0;
  };
  for (const LayerState &state : states) {
    if (layers > 0 && state.reach != before) {
      add();
      layers = 0;
    }
    before = state.reach;
    byTokens |= state.byTokens;
    ++layers;
  }
  add();
  return text +
         formatText(" of the %s; memory, messages and flops in this report are "
                    "of all of them, as plans are made before it is known "
                    "which leave",
                    byTokens ? "tokens" : "samples");
}

} // namespace dyna
