//===- PruneFlag.cpp - Parses the value of --prune ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/PruneFlag.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <set>

namespace dyna {
namespace {

Status refuse(const std::string &word, const std::string &expected) {
  return Status::invalidArgument(
      formatText("--prune: '%s': %s", word, expected));
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
  if (key == "criterion" && value != "magnitude")
    return refuse(word, "there is criterion=magnitude");
  if (key == "structure" && value != "element")
    return refuse(word, "there is structure=element");
  if (key == "criterion" || key == "structure")
    return true;
  static const std::set<std::string> ofSchedule = {"final", "initial", "from",
                                                   "until", "every"};
  if (ofSchedule.count(key) == 0)
    return refuse(word, "there are final, initial, from, until, every, params, "
                        "scope, criterion and structure, each with = and a "
                        "value");
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
    if (isOwn && !given.insert(key).second)
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
  return flag;
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
  if (before.parameters != next.parameters)
    return Status::invalidArgument(formatText(
        "--prune: the saved run has pruned %s, so params= cannot change%s",
        before.parameters.empty() ? "the linear weights of blocks"
                                  : "params=" + before.parameters,
        asBefore));
  return Status::ok();
}

} // namespace dyna
