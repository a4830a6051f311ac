//===- PlanFiles.cpp - Names the files of a folder of plans ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/PlanFiles.h"

#include "runtime/base/file/FileFailure.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <vector>

namespace dyna {

std::string planPath(const std::string &folder, int64_t step) {
  return joinPath(folder, "step-" + std::to_string(step + 1) + ".plan");
}

/// Returns the number of the step in metrics; 0 if no plan has this name.
static int64_t stepOfName(const std::string &name) {
  constexpr std::string_view front = "step-", back = ".plan";
  if (name.size() <= front.size() + back.size() ||
      name.compare(0, front.size(), front) != 0 ||
      name.compare(name.size() - back.size(), back.size(), back) != 0)
    return 0;
  const std::string number =
      name.substr(front.size(), name.size() - front.size() - back.size());
  int64_t step = 0;
  const char *end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, step);
  return rest == end && error == std::errc() ? std::max<int64_t>(step, 0) : 0;
}

Status checkPlansBehind(const std::string &folder, int64_t steps) {
  std::error_code error;
  int64_t first = 0, count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    const int64_t step = stepOfName(entry.path().filename().string());
    if (step <= steps)
      continue;
    first = count++ == 0 ? step : std::min(first, step);
  }
  // A missing folder holds no plans; the writer reports other errors.
  if (count == 0)
    return Status::ok();
  return Status::invalidArgument(formatText(
      "%s is of a step behind the last of this run, %d, and would stay among "
      "its "
      "plans%s: remove %s, or name another folder",
      planPath(folder, first - 1), steps,
      count > 1 ? formatText(", as would %d more", count - 1) : std::string(),
      count > 1 ? "them" : "it"));
}

StatusOr<std::string> describePlans(const std::string &folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".plan")
      names.push_back(entry.path().filename().string());
  if (error)
    return fileFailure("read", folder, error.value());
  std::sort(names.begin(), names.end());
  uint64_t hash = names.size();
  for (const std::string &name : names) {
    DYNA_ASSIGN_OR_RETURN(std::string bytes, readFile(joinPath(folder, name)));
    hash = hashBytes(bytes, hashBytes(name, hash));
  }
  return formatText("%d plans, checksum %016x", names.size(), hash);
}

} // namespace dyna
