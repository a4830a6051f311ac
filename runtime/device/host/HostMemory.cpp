//===- HostMemory.cpp - How much memory can still be taken ----------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/HostMemory.h"

#include <algorithm>
#include <fstream>

using namespace dyna;

namespace {

/// The files of one version of control groups.
struct GroupFiles {
  const char *mount, *limit, *used;
  /// Lines of memory.stat with page cache, the group's children included.
  const char *inactive, *active;
};

constexpr GroupFiles versionTwo = {"/sys/fs/cgroup", "memory.max",
                                   "memory.current", "inactive_file",
                                   "active_file"};
constexpr GroupFiles versionOne = {
    "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
    "total_inactive_file", "total_active_file"};

int64_t smaller(int64_t available, int64_t other) {
  return available < 0 ? other : std::min(available, other);
}

/// What the group in `folder` leaves; `available` if it has no limit.
int64_t cutDown(int64_t available, const GroupFiles &files,
                const std::string &folder) {
  int64_t limit = 0, used = 0;
  std::ifstream limitFile(folder + "/" + files.limit);
  std::ifstream usedFile(folder + "/" + files.used);
  // "max" is no number, and no limit.
  if (!(limitFile >> limit) || !(usedFile >> used))
    return available;
  std::ifstream facts(folder + "/memory.stat");
  std::string key;
  for (int64_t bytes; facts >> key >> bytes;)
    if (key == files.inactive || key == files.active)
      used -= bytes;
  return smaller(available, std::max<int64_t>(limit - used, 0));
}

} // namespace

int64_t dyna::availableMemory(const std::string &root) {
  int64_t available = -1;
  std::ifstream info(root + "/proc/meminfo");
  std::string key, rest;
  for (int64_t kib; info >> key >> kib; std::getline(info, rest))
    if (key == "MemAvailable:")
      available = kib * 1024;
  // Lines such as "4:memory:/a/b" (version 1) and "0::/a/b" (version 2). In a
  // container the path may be that of the host while the mount shows only the
  // group itself, so every folder on the way up is looked at, where it exists.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    bool isTwo = controllers == ",,";
    if (!isTwo && controllers.find(",memory,") == std::string::npos)
      continue;
    const GroupFiles &files = isTwo ? versionTwo : versionOne;
    std::string path = line.substr(second + 1);
    while (!path.empty() && path != "/") {
      available = cutDown(available, files, root + files.mount + path);
      path.resize(path.rfind('/'));
    }
    available = cutDown(available, files, root + files.mount);
  }
  return available;
}
