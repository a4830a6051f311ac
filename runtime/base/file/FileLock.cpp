//===- FileLock.cpp - Allows one writer at a time -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/FileLock.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

using namespace dyna;

bool dyna::lockDescriptor(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// The kernel knows the holder; a number that a run had written somewhere could
// be that of another process by now.
std::string dyna::describeLockHolder(int descriptor) {
  std::string unknown = "a process that cannot be seen from here";
  struct stat facts;
  if (::fstat(descriptor, &facts) != 0)
    return unknown;
  auto close = [](std::FILE *file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> locks(
      std::fopen("/proc/locks", "re"), close);
  if (!locks)
    return unknown;
  char line[256];
  while (std::fgets(line, sizeof line, locks.get())) {
    // A line reads: 1: FLOCK  ADVISORY  WRITE 17068 fe:00:247066 0 EOF
    std::istringstream words(line);
    std::string number, kind, mode, access;
    long process = 0;
    unsigned long long inode = 0;
    char colon = 0;
    unsigned major = 0, minor = 0;
    words >> number >> kind >> mode >> access >> process >> std::hex >> major >>
        colon >> minor >> colon >> std::dec >> inode;
    if (words && kind == "FLOCK" && access == "WRITE" && process > 0 &&
        inode == facts.st_ino && makedev(major, minor) == facts.st_dev)
      return "process " + std::to_string(process);
  }
  return unknown;
}
