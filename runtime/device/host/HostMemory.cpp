//===- HostMemory.cpp - Measures how much memory is free ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/host/HostMemory.h"

#include <algorithm>
#include <execinfo.h>
#include <fstream>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

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

/// Returns the bytes that the group in `folder` leaves; `available` if it has
/// no limit.
int64_t cutDown(int64_t available, const GroupFiles &files,
                const std::string &folder) {
  int64_t limit = 0, used = 0;
  std::ifstream limitFile(folder + "/" + files.limit);
  std::ifstream usedFile(folder + "/" + files.used);
  // The word "max" means no limit and does not parse as a number.
  if (!(limitFile >> limit) || !(usedFile >> used))
    return available;
  std::ifstream facts(folder + "/memory.stat");
  std::string key;
  for (int64_t bytes; facts >> key >> bytes;)
    if (key == files.inactive || key == files.active)
      used -= bytes;
  // The files are read one after another, so the cache may exceed the used
  // bytes. A group without a limit reports almost the largest number.
  used = std::max<int64_t>(used, 0);
  return smaller(available, std::max<int64_t>(limit - used, 0));
}

} // namespace

int64_t dyna::residentMemory(const std::string &root) {
  std::ifstream sizes(root + "/proc/self/statm"); // in pages
  int64_t all = 0, resident = 0;
  return sizes >> all >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

int64_t dyna::availableMemory(const std::string &root) {
  int64_t available = -1;
  std::ifstream info(root + "/proc/meminfo");
  std::string key, rest;
  for (int64_t kib; info >> key >> kib; std::getline(info, rest))
    if (key == "MemAvailable:")
      available = kib * 1024;
  // Reads lines such as "4:memory:/a/b" (version 1) and "0::/a/b" (version 2).
  // In a container the path may be that of the host while the mount shows only
  // the group itself. So every existing folder on the path is read.
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

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Returns the limit of a resource; -1: none.
static int64_t limitOf(int resource) {
  rlimit limit;
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return -1;
  return static_cast<int64_t>(
      std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(INT64_MAX)));
}

int64_t dyna::availableAddresses(const std::string &root) {
  int64_t all = limitOf(RLIMIT_AS), data = limitOf(RLIMIT_DATA);
  if (all < 0 && data < 0)
    return -1;
  // The numbers count pages: size, resident, shared, text, library, data.
  std::ifstream statm(root + "/proc/self/statm");
  int64_t pages[6];
  for (int64_t &count : pages)
    if (!(statm >> count))
      return -1;
  int64_t left = -1, page = ::sysconf(_SC_PAGESIZE);
  if (all >= 0)
    left = std::max<int64_t>(all - pages[0] * page, 0);
  if (data >= 0)
    left = smaller(left, std::max<int64_t>(data - pages[5] * page, 0));
  return left;
}

int64_t dyna::addressesOfThread() {
  constexpr int64_t usual = int64_t(8) << 20;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0)
    return usual;
  size_t stack = usual, guard = 0;
  ::pthread_attr_getstacksize(&attributes, &stack);
  ::pthread_attr_getguardsize(&attributes, &guard);
  ::pthread_attr_destroy(&attributes);
  return static_cast<int64_t>(stack + guard);
}

void dyna::prepareForLimits() {
  if (limitOf(RLIMIT_AS) < 0 && limitOf(RLIMIT_DATA) < 0)
    return;
  // The C library loads its unwinder at first use, and ends the process if it
  // cannot. Load it before addresses run short.
  void *frame;
  (void)::backtrace(&frame, 1);
  // Each further thread would take 64 MiB of addresses for a heap of its own,
  // or twice that for a moment.
  (void)::mallopt(M_ARENA_MAX, 1);
}
