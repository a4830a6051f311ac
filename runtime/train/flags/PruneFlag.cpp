//===- PruneFlag.cpp - Parses the value of --prune ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/PruneFlag.h"

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace dyna {
namespace {

Status refuse(const std::string &word, const std::string &expected) {
  return Status::invalidArgument(
      formatText("--prune: '%s': %s", word, expected));
}

StatusOr<bool> readRegrow(const std::string &word, const std::string &value,
                          PruneFlag &flag) {
  const char *end = value.data() + value.size();
  auto [last, error] = std::from_chars(value.data(), end, flag.regrow);
  if (error != std::errc() || last != end ||
      !(flag.regrow > 0 && flag.regrow < 1))
    return refuse(word, "give a share of the survivors above 0 and below 1");
  return true;
}

/// Checks what words say together, and completes the schedule.
Status completeFlag(const std::set<std::string> &given, PruneFlag &flag) {
  PruningSchedule &schedule = flag.schedule;
  if (flag.isByGradient && schedule.from < 2)
    return Status::invalidArgument(
        "--prune: criterion=gradient averages over the steps before an event, "
        "and there are none before step 1: give from=2 or later");
  const bool hasUnits = flag.structure != PrunedStructure::Element;
  if (hasUnits && (!flag.parameters.empty() || flag.regrow > 0))
    return Status::invalidArgument(formatText(
        "--prune: structure=%s prunes all matrices of a unit, and no unit "
        "grows again: leave out params= and regrow=",
        nameOf(flag.structure)));
  if (flag.regrow == 0)
    return Status::ok();
  if (given.count("initial") > 0)
    return Status::invalidArgument(
        "--prune: regrow= keeps the sparsity of final= from the first event "
        "on: leave out initial=");
  schedule.initial = schedule.final;
  if (schedule.events() == 1)
    return Status::invalidArgument(
        "--prune: nothing is pruned before the first event, so nothing can "
        "grow again in it: give until= and every= to regrow=");
  if (flag.regrow * (1 - schedule.final) > schedule.final)
    return Status::invalidArgument(formatText(
        "--prune: regrow=%g of the survivors are more weights than are pruned "
        "with final=%g: give at most regrow=%g",
        flag.regrow, schedule.final, schedule.final / (1 - schedule.final)));
  return Status::ok();
}

/// Reads a word that no schedule has. Returns false if it is none.
StatusOr<bool> readWord(const std::string &word, const std::string &key,
                        const std::string &value, PruneFlag &flag) {
  if (key == "params") {
    flag.parameters = value;
    if (value.empty() || value.front() == '+' || value.back() == '+' ||
        value.find("++") != std::string::npos)
      return refuse(word, "give names of matrices with + between them; * "
                          "stands for any characters");
    return true;
  }
  if (key == "scope") {
    flag.isPerLayer = value == "layer";
    if (value != "layer" && value != "global")
      return refuse(word, "there are scope=global and scope=layer");
    return true;
  }
  if (key == "criterion") {
    flag.isByGradient = value == "gradient";
    if (value != "magnitude" && value != "gradient")
      return refuse(word, "there are criterion=magnitude and "
                          "criterion=gradient");
    return true;
  }
  if (key == "regrow")
    return readRegrow(word, value, flag);
  if (key == "structure") {
    for (PrunedStructure one : {PrunedStructure::Element, PrunedStructure::Head,
                                PrunedStructure::Channel})
      if (value == nameOf(one)) {
        flag.structure = one;
        return true;
      }
    return refuse(word, "there are structure=element, structure=head and "
                        "structure=channel");
  }
  static const std::set<std::string> ofSchedule = {"final", "initial", "from",
                                                   "until", "every"};
  if (ofSchedule.count(key) == 0)
    return refuse(word, "there are final, initial, from, until, every, params, "
                        "scope, criterion, regrow and structure, each with = "
                        "and a value");
  return false;
}

} // namespace

StatusOr<PruneFlag> parsePruneFlag(const std::string &text) {
  PruneFlag flag;
  std::string schedule;
  std::set<std::string> given;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const size_t sign = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, sign);
    const std::string value =
        sign < word.size() ? word.substr(sign + 1) : std::string();
    begin = end + 1;
    DYNA_ASSIGN_OR_RETURN(const bool isOwn, readWord(word, key, value, flag));
    const bool isFirst = given.insert(key).second;
    if (isOwn && !isFirst)
      return refuse(word, formatText("%s is given twice", key));
    if (!isOwn)
      schedule += (schedule.empty() ? "" : ",") + word;
  }
  if (schedule.empty())
    return Status::invalidArgument("--prune: give final= and from=, as in "
                                   "final=0.9,from=3000,until=7000,every=1000");
  auto parsed = parsePruningSchedule(schedule);
  if (!parsed.isOk()) {
    const std::string said = parsed.status().message(), prefix = "pruning";
    return Status(parsed.status().code(),
                  said.rfind(prefix, 0) == 0
                      ? "--prune" + said.substr(prefix.size())
                      : said);
  }
  flag.schedule = *parsed;
  DYNA_RETURN_IF_ERROR(completeFlag(given, flag));
  return flag;
}

/// Fails if the first event comes before a step that gives the scores for it.
static Status checkScores(const std::string &saved, const PruneFlag &next,
                          int64_t steps) {
  const int64_t first = next.schedule.from;
  if (!next.hasScores() || first > steps + 1)
    return Status::ok();
  PruneFlag before;
  if (!saved.empty()) {
    DYNA_ASSIGN_OR_RETURN(before, parsePruneFlag(saved));
  }
  const bool hasSums =
      before.isByGradient && before.schedule.nextEvent(steps + 1) >= 0;
  const bool hasGradients =
      before.regrow > 0 && before.schedule.hasEvent(steps + 1);
  if ((hasSums || !next.isByGradient) && (hasGradients || next.regrow == 0))
    return Status::ok();
  return Status::invalidArgument(formatText(
      "--prune: the event at step %d needs gradients of the steps before it, "
      "which the saved run has not kept: give from=%d or later",
      first, steps + 2));
}

Status checkResumedPruning(const std::string &saved, const std::string &now,
                           int64_t steps, const PrunedSoFar &pruned) {
  if (saved == now || now.empty())
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(const PruneFlag next, parsePruneFlag(now));
  const std::string asBefore =
      saved.empty() ? "" : ", or go on with that of the saved run: " + saved;
  if (next.schedule.from <= steps)
    return Status::invalidArgument(formatText(
        "--prune: the first event, at step %d, is in the past: the saved run "
        "has done %d steps; give from=%d or later%s",
        next.schedule.from, steps, steps + 1, asBefore));
  DYNA_RETURN_IF_ERROR(checkScores(saved, next, steps));
  if (pruned.sparsity == 0)
    return Status::ok();
  const double first = next.schedule.sparsityAt(next.schedule.from);
  constexpr double rounding = 1e-9;
  if (first < pruned.sparsity - rounding)
    return Status::invalidArgument(formatText(
        "--prune: sparsity would fall from %g, which the saved run has, to %g "
        "at step %d: give initial=%g or more%s",
        pruned.sparsity, first, next.schedule.from, pruned.sparsity, asBefore));
  DYNA_ASSIGN_OR_RETURN(const PruneFlag before, parsePruneFlag(saved));
  if (before.structure != next.structure)
    return Status::invalidArgument(formatText(
        "--prune: the saved run has pruned by structure=%s, so "
        "structure= cannot change: give structure=%s%s",
        nameOf(before.structure), nameOf(before.structure), asBefore));
  if (before.parameters != next.parameters)
    return Status::invalidArgument(formatText(
        "--prune: the saved run has pruned %s, so params= cannot change%s",
        before.parameters.empty() ? "the linear weights of blocks"
                                  : "params=" + before.parameters,
        asBefore));
  return Status::ok();
}

void PrunedSoFar::addTo(JsonObject &state) const {
  if (weights > 0)
    state.add("pruned", JsonObject()
                            .add("sparsity", sparsity)
                            .add("weights", weights)
                            .add("survivors", survivors)
                            .add("event", event));
}

bool PrunedSoFar::readFrom(const JsonValue &state) {
  const JsonValue *pruned = state.find("pruned");
  if (!pruned)
    return true;
  const JsonValue *share = pruned->find("sparsity");
  const auto all = pruned->findInteger("weights"),
             left = pruned->findInteger("survivors");
  if (!share || share->kind != JsonValue::Kind::Number ||
      !(share->number >= 0 && share->number < 1) || !all || !left ||
      *left < 1 || *left > *all)
    return false;
  // Earlier versions did not store the event.
  *this = {share->number, *all, *left,
           pruned->findInteger("event").value_or(-1)};
  return true;
}

} // namespace dyna
