//===- PlanFiles.cpp - The files of a folder of plans ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/PlanFiles.h"

#include "runtime/base/FileFailure.h"
#include "runtime/base/Files.h"
#include "runtime/base/InputFile.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace dyna {

std::string planPath(const std::string &folder, int64_t step) {
  return joinPath(folder, "step-" + std::to_string(step + 1) + ".plan");
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
