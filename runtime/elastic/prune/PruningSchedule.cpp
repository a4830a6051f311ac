//===- PruningSchedule.cpp - Schedules the pruning of weights -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PruningSchedule.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace dyna {
namespace {

Status refuse(const std::string &word, const std::string &expected) {
  return Status::invalidArgument(
      formatText("pruning: '%s': %s", word, expected));
}

Status readShare(const std::string &word, const std::string &value,
                 double &share) {
  const char *end = value.data() + value.size();
  auto [last, error] = std::from_chars(value.data(), end, share);
  if (error != std::errc() || last != end || !(share >= 0 && share < 1))
    return refuse(word, "give a share of weights from 0 to below 1");
  return Status::ok();
}

Status readStep(const std::string &word, const std::string &value,
                int64_t &step) {
  const char *end = value.data() + value.size();
  auto [last, error] = std::from_chars(value.data(), end, step);
  if (error != std::errc() || last != end || step < 1)
    return refuse(word, "give a number of steps from 1 on");
  return Status::ok();
}

Status readWord(const std::string &word, const std::string &key,
                const std::string &value, PruningSchedule &schedule) {
  if (key == "final")
    return readShare(word, value, schedule.final);
  if (key == "initial")
    return readShare(word, value, schedule.initial);
  if (key == "from")
    return readStep(word, value, schedule.from);
  if (key == "until")
    return readStep(word, value, schedule.until);
  if (key == "every")
    return readStep(word, value, schedule.every);
  return refuse(word, "there are final, initial, from, until and every, each "
                      "with = and a number");
}

Status checkSchedule(const PruningSchedule &schedule,
                     const std::set<std::string> &given) {
  for (const char *key : {"final", "from"})
    if (given.count(key) == 0)
      return Status::invalidArgument(
          formatText("pruning: give %s=, as in "
                     "final=0.9,from=3000,until=7000,every=1000",
                     key));
  if (schedule.final < schedule.initial)
    return Status::invalidArgument(
        formatText("pruning: sparsity would fall from %g to %g: give a final "
                   "one that is not below the initial one",
                   schedule.initial, schedule.final));
  if (schedule.until < schedule.from)
    return Status::invalidArgument(
        formatText("pruning: the last event, at step %d, is before the first "
                   "one, at step %d",
                   schedule.until, schedule.from));
  const int64_t steps = schedule.until - schedule.from;
  if (steps > 0 && schedule.every == 0)
    return Status::invalidArgument(formatText(
        "pruning: give every=, the steps between events from step %d to %d",
        schedule.from, schedule.until));
  if (steps > 0 && steps % schedule.every != 0)
    return Status::invalidArgument(
        formatText("pruning: events every %d steps from step %d on do not meet "
                   "step %d: give until=%d, or another every=",
                   schedule.every, schedule.from, schedule.until,
                   schedule.from + steps / schedule.every * schedule.every));
  return Status::ok();
}

} // namespace

bool PruningSchedule::hasEvent(int64_t step) const {
  return step >= from && step <= until &&
         (every == 0 ? step == from : (step - from) % every == 0);
}

int64_t PruningSchedule::nextEvent(int64_t step) const {
  if (step <= from)
    return from;
  if (step > until || every == 0)
    return -1;
  return from + (step - from + every - 1) / every * every;
}

double PruningSchedule::sparsityAt(int64_t step) const {
  if (step < from)
    return 0;
  if (step >= until)
    return final;
  const int64_t event = (step - from) / every;
  const double left =
      1 - static_cast<double>(event) / static_cast<double>(events() - 1);
  return final + (initial - final) * left * left * left;
}

StatusOr<PruningSchedule> parsePruningSchedule(const std::string &text) {
  PruningSchedule schedule;
  std::set<std::string> given;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const size_t sign = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, sign);
    if (!given.insert(key).second)
      return refuse(word, formatText("%s is given twice", key));
    DYNA_RETURN_IF_ERROR(readWord(
        word, key, sign < word.size() ? word.substr(sign + 1) : "", schedule));
    begin = end + 1;
  }
  if (given.count("until") == 0)
    schedule.until = schedule.from;
  DYNA_RETURN_IF_ERROR(checkSchedule(schedule, given));
  if (schedule.until == schedule.from)
    schedule.every = 0;
  return schedule;
}

int64_t survivorsAt(int64_t weights, double sparsity) {
  const auto left = static_cast<int64_t>(
      std::llround(static_cast<double>(weights) * (1 - sparsity)));
  return std::clamp<int64_t>(left, std::min<int64_t>(weights, 1), weights);
}

} // namespace dyna
