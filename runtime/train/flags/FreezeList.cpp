//===- FreezeList.cpp - Layers that a run freezes and thaws ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/FreezeList.h"

#include "runtime/base/text/Text.h"
#include "runtime/elastic/freeze/FreezeRule.h"
#include "runtime/planner/request/PlanningWords.h"
#include "runtime/train/flags/EventList.h"
#include "runtime/train/flags/TrainOptions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace dyna {
namespace {

constexpr const char *thawWord = "thaw=", *autoWord = "auto=";

std::string withoutSpaces(std::string text) {
  auto isSpace = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  text.erase(std::remove_if(text.begin(), text.end(), isSpace), text.end());
  return text;
}

/// Removes a word at the start of the text, and returns true if it was there.
bool takeWord(std::string &text, const std::string &word) {
  if (text.rfind(word, 0) != 0)
    return false;
  text.erase(0, word.size());
  return true;
}

StatusOr<double> parseShare(const std::string &text) {
  char *end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == 0 && share > 0 && share < 1)
    return share;
  return Status::invalidArgument(formatText(
      "--freeze auto= expects a share of the layers that are left, between 0 "
      "and 1, but got '%s'",
      text));
}

StatusOr<FreezeEvent> parseEntry(const std::string &text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0)
    return Status::invalidArgument(formatText(
        "--freeze expects entries LAYERS@STEP, auto=SHARE@STEP or "
        "thaw=LAYERS@STEP, separated by ';', such as \"embed+h.0-h.5@2000; "
        "auto=0.2@4000; thaw=h.5@6000\", but got '%s'",
        text));
  FreezeEvent event;
  event.layers = text.substr(0, at);
  const std::string name = "freeze " + event.layers + "@STEP";
  event.thaws = takeWord(event.layers, thawWord);
  const bool isAuto = !event.thaws && takeWord(event.layers, autoWord);
  if (isAuto) {
    DYNA_ASSIGN_OR_RETURN(event.share, parseShare(event.layers));
  }
  // The norms of `auto` are those of the step before.
  DYNA_ASSIGN_OR_RETURN(
      event.step,
      parseWholeNumber(name, text.substr(at + 1), isAuto ? 1 : 0, mostSteps));
  return event;
}

Status inEvent(const FreezeEvent &event, const Status &status) {
  return Status(
      status.code(),
      formatText("--freeze %s: %s", describeFreeze(event), status.message()));
}

/// Returns true for a layer that shares a parameter with another one.
bool isShared(const Model &model, int layer) {
  for (int other = 0; other < model.layers(); ++other)
    for (int p : model.layer(other).parameters()) {
      const auto &own = model.layer(layer).parameters();
      if (other != layer && std::find(own.begin(), own.end(), p) != own.end())
        return true;
    }
  return false;
}

/// Returns what the rule freezes beside `now`. A layer that shares parameters with another
/// one counts as if it were frozen, but it trains.
FrozenLayers frozenByRule(const Model &compiled, double share,
                          const FrozenLayers &now,
                          const std::vector<double> &norms) {
  auto isFinite = [](double norm) { return std::isfinite(norm); };
  FrozenLayers frozen = now;
  if (norms.size() != now.size() ||
      !std::all_of(norms.begin(), norms.end(), isFinite))
    return frozen;
  int first = 0;
  while (first < compiled.layers() && (now[first] || isShared(compiled, first)))
    ++first;
  const int next = frozenNext(norms, first, share);
  for (int l = first; l < next; ++l)
    frozen[l] = frozen[l] || !isShared(compiled, l);
  return frozen;
}

/// Returns true if the binary has functions with which layers freeze.
bool hasFreezable(const Model &compiled) {
  const auto &kinds = compiled.manifest().kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [](const plan::LayerKind &kind) {
                       return kind.frozen() && !kind.variant_of().empty();
                     });
}

} // namespace

void FrozenSoFar::addTo(JsonObject &state) const {
  if (!layers.empty())
    state.add("frozen", layers);
  if (norms.empty())
    return;
  JsonArray list;
  for (double norm : norms)
    list.add(norm);
  state.add("layer_norms", list);
}

bool FrozenSoFar::readFrom(const JsonValue &state) {
  const JsonValue *frozen = state.find("frozen");
  const JsonValue *list = state.find("layer_norms");
  if ((frozen && !frozen->isString()) || (list && !list->isArray()))
    return false;
  if (frozen)
    layers = frozen->text;
  for (size_t l = 0; list && l < list->items.size(); ++l)
    norms.push_back(list->items[l].number);
  return true;
}

StatusOr<std::vector<FreezeEvent>> parseFreezes(const std::string &text) {
  std::vector<FreezeEvent> events;
  for (const std::string &spaced : splitEvents(text)) {
    const std::string entry = withoutSpaces(spaced);
    DYNA_ASSIGN_OR_RETURN(FreezeEvent event, parseEntry(entry));
    if (!events.empty() && event.step <= events.back().step)
      return eventOutOfOrder("freeze", entry, describeFreeze(events.back()));
    events.push_back(std::move(event));
  }
  return events;
}

std::string describeFreeze(const FreezeEvent &event) {
  const char *word = event.isAuto() ? autoWord : event.thaws ? thawWord : "";
  return formatText("%s%s@%d", word, event.layers, event.step);
}

std::string describeFreezes(const std::vector<FreezeEvent> &events) {
  std::string text;
  for (const FreezeEvent &event : events)
    text += (text.empty() ? "" : "; ") + describeFreeze(event);
  return text;
}

StatusOr<FrozenLayers> frozenBehind(const Model &compiled,
                                    const FreezeEvent &event,
                                    const FrozenLayers &now,
                                    const std::vector<double> &norms) {
  if (event.isAuto()) {
    FrozenLayers next = frozenByRule(compiled, event.share, now, norms);
    // With layers behind that are frozen by name, nothing may be left.
    return freezeLayers(compiled, next).isOk() ? next : now;
  }
  StatusOr<FrozenLayers> named = parseLayers(compiled, event.layers);
  if (!named.isOk())
    return inEvent(event, named.status());
  FrozenLayers frozen = now;
  for (int l = 0; l < compiled.layers(); ++l) {
    if (!(*named)[l])
      continue;
    if (event.thaws && !now[l])
      return inEvent(
          event, Status::invalidArgument(formatText(
                     "layer '%s' is not frozen then, so it cannot "
                     "be thawed: frozen are %s",
                     compiled.layer(l).name(), describeLayers(compiled, now))));
    frozen[l] = !event.thaws;
  }
  if (StatusOr<Model> model = freezeLayers(compiled, frozen); !model.isOk())
    return inEvent(event, model.status());
  return frozen;
}

Status checkFreezes(const Model &compiled,
                    const std::vector<FreezeEvent> &events,
                    const FrozenLayers &now, int64_t done) {
  FrozenLayers frozen = now;
  bool isKnown = true;
  for (const FreezeEvent &event : events) {
    if (event.step < done)
      return eventInThePast("freeze", describeFreeze(event), done);
    if (event.isAuto() && !hasFreezable(compiled))
      return inEvent(event,
                     Status::invalidArgument(
                         "this binary has no functions of frozen layers: "
                         "compile the model with dynac --freezable"));
    if (event.isAuto()) {
      isKnown = false;
    } else if (isKnown) {
      DYNA_ASSIGN_OR_RETURN(frozen, frozenBehind(compiled, event, frozen));
    } else if (auto named = parseLayers(compiled, event.layers);
               !named.isOk()) {
      return inEvent(event, named.status());
    }
  }
  return Status::ok();
}

} // namespace dyna
