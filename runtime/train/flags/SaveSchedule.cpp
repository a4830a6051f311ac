//===- SaveSchedule.cpp - Decides when a run is saved ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/SaveSchedule.h"

#include <algorithm>
#include <charconv>

namespace dyna {

StatusOr<SaveSchedule> SaveSchedule::parse(const std::string &text) {
  static constexpr std::pair<const char *, int64_t> units[] = {
      {"s", 1}, {"min", 60}, {"h", 3600}};
  constexpr int64_t most = INT64_C(1000000000000);
  int64_t count = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, count);
  std::string unit(rest, end);
  SaveSchedule schedule;
  bool isGood = error == std::errc() && count >= 0 && count <= most;
  if (isGood && unit.empty()) {
    schedule.steps_ = count;
    return schedule;
  }
  for (auto [name, seconds] : units)
    if (isGood && count > 0 && unit == name) {
      schedule.time_ =
          std::chrono::seconds(std::min(count, most / seconds) * seconds);
      return schedule;
    }
  return Status::invalidArgument(
      "--save-every expects steps or a time such as 100, 30s, 10min or 2h, or "
      "0 for the end alone, but got '" +
      text + "'");
}

bool SaveSchedule::isDue(int64_t steps, Clock::time_point now) const {
  if (hasFailed_ && now - last_ >= patience)
    return true;
  if (time_.count() > 0)
    return now - last_ >= time_;
  return steps_ > 0 && steps % steps_ == 0;
}

int64_t SaveSchedule::mostSaves(int64_t steps) const {
  if (time_.count() > 0)
    return steps; // each step may take as long as `time_`
  return steps_ > 0 ? steps / steps_ + 1 : 1;
}

void SaveSchedule::saved(Clock::time_point now) {
  hasFailed_ = false;
  last_ = now;
}

void SaveSchedule::failed(Clock::time_point now) {
  hasFailed_ = true;
  last_ = now;
}

} // namespace dyna
