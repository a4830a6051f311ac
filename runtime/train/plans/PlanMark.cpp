//===- PlanMark.cpp - Names the keys of a store of plans ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanMark.h"

#include "runtime/abi/Random.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/train/flags/Flags.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unistd.h>

namespace dyna {

std::string PlanMark::toJson() const {
  return JsonObject()
      .add("run", formatText("%016x", run))
      .add("step", step)
      .add("ahead", ahead)
      .add("cursor", cursor.toJson())
      .text();
}

StatusOr<PlanMark> PlanMark::fromJson(const std::string &text) {
  Status bad = Status::invalidArgument(
      "the store holds no valid place of the executors: " +
      text.substr(0, 100));
  StatusOr<JsonValue> json = parseJson(text);
  if (!json.isOk() || !json->isObject())
    return bad;
  const JsonValue *run = json->find("run"), *place = json->find("cursor");
  auto step = json->findInteger("step"), ahead = json->findInteger("ahead");
  if (!run || !run->isString() || !place || !place->isObject() || !step ||
      *step < 0 || *step > mostSteps || !ahead || *ahead < 0 ||
      *ahead > mostSteps)
    return bad;
  PlanMark mark;
  mark.run = std::strtoull(run->text.c_str(), nullptr, 16);
  mark.step = *step;
  mark.ahead = *ahead;
  DYNA_ASSIGN_OR_RETURN(mark.cursor, DataCursor::fromJson(*place));
  return mark;
}

/// Steps that wait are at most `ahead_`: so this one is wanted when the one so far
/// before it had been taken.
bool RunPlace::want(int64_t step, const DataCursor &begin) {
  begins_[step] = begin;
  int64_t at = std::max(begins_.begin()->first, step - ahead_);
  begins_.erase(begins_.begin(), begins_.lower_bound(at));
  auto [first, cursor] = *begins_.begin();
  if (isMarked_ && first <= mark_.step)
    return false;
  // The thread of a later step may come first. Planners plan nothing before the
  // mark, so it has to begin at the first step of the run.
  if (!isMarked_ && first > first_)
    return false;
  mark_.step = first;
  mark_.cursor = cursor;
  return isMarked_ = true;
}

/// Returns false for flags that change no plan: numbers of steps, of threads
/// and of seconds.
static bool mattersToPlans(const std::string &flag) {
  for (const char *name : {"steps", "plan-ahead", "plan-threads", "timeout",
                           "held-out-tokens", "evaluate-every", "strategy"})
    if (flag == std::string("--") + name)
      return false;
  if (flag == "--no-gradient-norm")
    return true;
  for (const Flag &row : flags()) {
    std::string section = row.section;
    if (flag == std::string("--") + row.name)
      return section == "Data" || section == "Steps" || section == "Ranks";
  }
  return false;
}

std::string planPrefix(const Session &session) {
  std::string facts = formatText("%016x %016x %s\n", session.model->hash(),
                                 session.data->dataset().fingerprint(),
                                 session.home().graph->name());
  for (const PlannedGraph &graph : session.graphs->graphs())
    facts += graph.graph->name() + "\n";
  facts += session.costsMark() + "\n";
  // The version keeps ranks from using plans for the graphs before.
  if (session.version > 0)
    facts += formatText("version %d\n", session.version);
  for (const auto &[name, value] : commonFlags(session.options))
    if (mattersToPlans(name))
      facts += name + "=" + value + "\n";
  for (const PlannedGraph &graph : session.graphs->graphs())
    for (int64_t limit : graph.options.dynamicLimits)
      facts += std::to_string(limit) + "\n";
  for (int64_t bytes : session.planner->regionBytes())
    facts += std::to_string(bytes) + "\n";
  return formatText("dyna:%016x", hashBytes(facts, 0));
}

uint64_t drawRun() {
  static std::atomic<uint64_t> drawn{0};
  auto now = std::chrono::system_clock::now().time_since_epoch().count();
  uint64_t number = dyna_mix64(static_cast<uint64_t>(now)) ^
                    dyna_mix64(static_cast<uint64_t>(getpid()) << 32 ^ ++drawn);
  return number >> 1 | 1;
}

std::string runPrefix(const std::string &prefix, uint64_t run) {
  return formatText("%s:%016x", prefix, run);
}

std::string slotKey(const std::string &prefix, int slot) {
  return formatText("%s:run:%d", prefix, slot);
}

std::string plannersKey(const std::string &prefix) {
  return prefix + ":planners";
}

std::string plannerKey(const std::string &run, int64_t index) {
  return formatText("%s:planner:%d", run, index);
}

std::string endedKey(const std::string &run) { return run + ":ended"; }

std::string planKey(const std::string &run, const PlannedStep &step, int rank) {
  std::string lengths = std::to_string(step.batch.targets);
  for (int64_t length : step.batch.lengths())
    lengths += "," + std::to_string(length);
  return formatText("%s:%d:%d:%016x", run, step.step, rank,
                    hashBytes(lengths, 0));
}

StatusOr<PlannerNumber> parsePlannerNumber(const std::string &text) {
  constexpr int64_t most = 1024;
  char *end = nullptr;
  PlannerNumber number;
  number.index = std::strtol(text.c_str(), &end, 10);
  bool isGood = end != text.c_str() && *end == '/';
  if (isGood) {
    const char *count = end + 1;
    number.count = std::strtol(count, &end, 10);
    isGood = end != count && !*end;
  }
  if (!isGood || number.index < 0 || number.count < 1 || number.count > most ||
      number.index >= number.count)
    return Status::invalidArgument(
        formatText("--plan-only expects I/N, planner I from 0 to N-1 of N, at "
                   "most %d, but got '%s'",
                   most, text));
  return number;
}

} // namespace dyna
