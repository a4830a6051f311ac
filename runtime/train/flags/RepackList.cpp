//===- RepackList.cpp - Parses the value of --repack ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/RepackList.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/request/PlanningWords.h"
#include "runtime/train/flags/EventList.h"
#include "runtime/train/flags/TrainOptions.h"

#include <algorithm>

namespace dyna {
namespace {

constexpr int mostRanks = 1000000;

std::string trim(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

bool isNumber(const std::string &text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

/// Reads `auto` and `auto=GOAL`; returns nothing for other words.
StatusOr<std::optional<PackGoal>> parseGoal(const std::string &text) {
  if (text == "auto")
    return std::optional(PackGoal::Fewest);
  if (text.rfind("auto=", 0) != 0)
    return std::optional<PackGoal>();
  auto goal = findPackGoal(text.substr(5));
  if (!goal.isOk())
    return Status(goal.status().code(),
                  formatText("--repack %s: %s", text, goal.status().message()));
  return std::optional(*goal);
}

StatusOr<Repack> parseEntry(const std::string &text) {
  const size_t at = text.rfind('@');
  DYNA_ASSIGN_OR_RETURN(const std::optional<PackGoal> goal,
                        parseGoal(trim(text.substr(0, at))));
  if (goal && at == std::string::npos) {
    Repack repack;
    repack.step = Repack::always;
    repack.goal = goal;
    return repack;
  }
  if (at == std::string::npos || trim(text.substr(0, at)).empty())
    return Status::invalidArgument(formatText(
        "--repack expects entries RANKS@STEP or STRATEGY@STEP, separated by "
        "';', such as \"6@3000; dp=2,pp=2@7000\", or auto, but got '%s'",
        text));
  Repack repack;
  const std::string target = trim(text.substr(0, at));
  DYNA_ASSIGN_OR_RETURN(
      repack.step, parseWholeNumber("repack " + target + "@STEP",
                                    trim(text.substr(at + 1)), 1, mostSteps));
  if (goal) {
    repack.goal = goal;
    return repack;
  }
  if (!isNumber(target)) {
    repack.strategy = target;
    return repack;
  }
  DYNA_ASSIGN_OR_RETURN(int64_t ranks, parseWholeNumber("repack RANKS@STEP",
                                                        target, 1, mostRanks));
  repack.ranks = static_cast<int>(ranks);
  return repack;
}

} // namespace

StatusOr<std::vector<Repack>> parseRepacks(const std::string &text) {
  std::vector<Repack> repacks;
  for (const std::string &untrimmed : splitEvents(text)) {
    const std::string entry = trim(untrimmed);
    DYNA_ASSIGN_OR_RETURN(Repack repack, parseEntry(entry));
    if (repack.step == Repack::always && !repacks.empty())
      return Status::invalidArgument(
          formatText("--repack '%s' has no step and is not the first entry: "
                     "give it first, "
                     "or with @STEP",
                     entry));
    if (!repacks.empty() && repack.step <= repacks.back().step)
      return eventOutOfOrder("repack", entry, describeRepack(repacks.back()));
    repacks.push_back(std::move(repack));
  }
  return repacks;
}

Status checkRepackSteps(const std::vector<Repack> &repacks, int64_t done) {
  for (const Repack &repack : repacks)
    if (repack.step != Repack::always && repack.step < done)
      return eventInThePast("repack", describeRepack(repack), done);
  return Status::ok();
}

std::string describeRepack(const Repack &repack) {
  if (repack.goal) {
    const std::string text = std::string("auto=") + wordOf(*repack.goal);
    return repack.step == Repack::always
               ? text
               : formatText("%s@%d", text, repack.step);
  }
  return formatText("%s@%d",
                    repack.ranks > 0 ? std::to_string(repack.ranks)
                                     : repack.strategy,
                    repack.step);
}

std::string describeRepacks(const std::vector<Repack> &repacks) {
  std::string text;
  for (const Repack &repack : repacks)
    text += (text.empty() ? "" : "; ") + describeRepack(repack);
  return text;
}

} // namespace dyna
