//===- FreezeEvents.cpp - Freezes layers while a run trains ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/FreezeEvents.h"

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>

namespace dyna {

Status setFrozen(const Model &model, const TrainOptions &options,
                 const RunState *resumed, Session &session) {
  FrozenLayers frozen(model.layers(), false);
  if (resumed && !resumed->frozen.layers.empty()) {
    auto refuse = [](const Status &status) {
      return Status(status.code(),
                    "the saved run has frozen layers: " + status.message());
    };
    StatusOr<FrozenLayers> before = parseLayers(model, resumed->frozen.layers);
    if (!before.isOk())
      return refuse(before.status());
    if (auto next = freezeLayers(model, *before); !next.isOk())
      return refuse(next.status());
    session.frozenBefore = frozen = *before;
    session.frozenStep = resumed->step;
  }
  DYNA_ASSIGN_OR_RETURN(const auto events, parseFreezes(options.freeze));
  if (resumed && !events.empty() && events.front().isAuto() &&
      events.front().step == resumed->step && resumed->frozen.norms.empty())
    return Status::invalidArgument(formatText(
        "--freeze %s needs the gradients of the step before, which the "
        "checkpoint does not have: give it from @%d on",
        describeFreeze(events.front()), resumed->step + 1));
  return checkFreezes(model, events, frozen, resumed ? resumed->step : 0);
}

FreezeEvents::FreezeEvents(Session &session, std::vector<double> norms)
    : session_(session), now_(session.compiled->layers(), false),
      norms_(std::move(norms)),
      wanted_(session.frozenBefore.empty() ? now_ : session.frozenBefore) {}

bool FreezeEvents::isOn() const {
  return !session_.options.freeze.empty() ||
         std::find(wanted_.begin(), wanted_.end(), true) != wanted_.end();
}

StatusOr<std::optional<FrozenLayers>> FreezeEvents::next(int64_t step) const {
  DYNA_ASSIGN_OR_RETURN(const auto events,
                        parseFreezes(session_.options.freeze));
  FrozenLayers frozen = wanted_;
  for (const FreezeEvent &event : events)
    if (event.step == step) {
      DYNA_ASSIGN_OR_RETURN(
          frozen, frozenBehind(*session_.compiled, event, frozen, norms_));
    }
  return frozen == now_ ? std::optional<FrozenLayers>()
                        : std::optional<FrozenLayers>(std::move(frozen));
}

int64_t FreezeEvents::nextStep(int64_t step) const {
  if (const auto events = parseFreezes(session_.options.freeze); events.isOk())
    for (const FreezeEvent &event : *events)
      if (event.step >= step)
        return event.step;
  return -1;
}

bool FreezeEvents::needsNorms(int64_t step) const {
  if (const auto events = parseFreezes(session_.options.freeze); events.isOk())
    for (const FreezeEvent &event : *events)
      if (event.step == step)
        return event.isAuto();
  return false;
}

void FreezeEvents::sawNorms(const std::vector<double> &squares) {
  norms_.clear();
  for (double square : squares)
    norms_.push_back(std::sqrt(square));
}

void FreezeEvents::end(int64_t step) {
  const auto events = parseFreezes(session_.options.freeze);
  if (!events.isOk())
    return;
  std::vector<FreezeEvent> left;
  for (const FreezeEvent &event : *events)
    if (event.step > step)
      left.push_back(event);
  session_.options.freeze = describeFreezes(left);
}

void FreezeEvents::froze(FrozenLayers layers) {
  now_ = std::move(layers);
  wanted_ = now_;
}

std::string FreezeEvents::saved() const {
  const bool isAny =
      std::find(wanted_.begin(), wanted_.end(), true) != wanted_.end();
  return isAny ? describeLayers(*session_.compiled, wanted_) : "";
}

std::string FreezeEvents::record(int64_t step) const {
  return JsonObject()
      .add("step", step)
      .add("freeze",
           JsonObject()
               .add("frozen", saved())
               .add("layers", static_cast<int64_t>(
                                  std::count(now_.begin(), now_.end(), true)))
               .add("forward_alone", layersForwardAlone(*session_.model)))
      .text();
}

std::string FreezeEvents::describe() const {
  const auto frozen = std::count(now_.begin(), now_.end(), true);
  if (frozen == 0)
    return "no layer is frozen";
  int64_t elements = 0;
  for (int p = 0; p < session_.model->parameters(); ++p)
    elements += session_.model->isFrozen(p) ? session_.model->elements(p) : 0;
  return formatText(
      "frozen: %s, %d of %d layers with %s of %s parameters; %d of them, at "
      "the beginning, run forward alone",
      describeLayers(*session_.compiled, now_), frozen, now_.size(),
      groupDigits(elements), groupDigits(session_.model->totalElements()),
      layersForwardAlone(*session_.model));
}

} // namespace dyna
