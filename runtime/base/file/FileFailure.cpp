//===- FileFailure.cpp - Describes failures of files for people -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/FileFailure.h"

#include "runtime/base/file/DiskFull.h"

#include <cerrno>
#include <cstring>
#include <sys/statvfs.h>

using namespace dyna;

static std::string beginning(std::string_view action, const std::string &path) {
  return std::string("cannot ").append(action).append(" ").append(path) + ": ";
}

/// Returns what a file system that lacks inodes fails with.
static Status inodesUsedUp(std::string_view action, const std::string &path) {
  return Status::resourceExhausted(beginning(action, path) +
                                   "its file system holds as many files as it "
                                   "may (no inode is free); remove "
                                   "some files or choose another directory");
}

/// Returns true if the file system of `path` has room for bytes, but no inode
/// for another file. `path` itself may not exist.
static bool lacksInodes(const std::string &path) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct statvfs facts;
  if (::statvfs(path.c_str(), &facts) != 0 &&
      ::statvfs(folder.c_str(), &facts) != 0)
    return false;
  // Some file systems do not count inodes and report 0 in all.
  return facts.f_files > 0 && facts.f_favail == 0 && facts.f_bavail > 0;
}

Status dyna::diskFull(std::string_view action, const std::string &path) {
  return Status::resourceExhausted(
      beginning(action, path) +
      "the disk is full; free some space or choose another directory");
}

Status dyna::checkInodes(const std::string &folder, uint64_t files) {
  struct statvfs facts;
  const bool counts =
      ::statvfs(folder.c_str(), &facts) == 0 && facts.f_files > 0;
  if (!counts || facts.f_favail >= files)
    return Status::ok();
  return Status::resourceExhausted(
      beginning("write into", folder) + "its file system has inodes for " +
      std::to_string(facts.f_favail) + " more files, and " +
      std::to_string(files) +
      " are needed; remove some files or choose another directory");
}

Status dyna::fileFailure(std::string_view action, const std::string &path,
                         int error) {
  const std::string text = beginning(action, path);
  switch (error) {
  case ENOSPC:
    return lacksInodes(path) ? inodesUsedUp(action, path)
                             : diskFull(action, path);
  case EDQUOT:
    return Status::resourceExhausted(
        text + "the disk quota is used up; remove some files or choose another "
               "directory");
  case EFBIG:
    return Status::resourceExhausted(
        text + "the file would pass the size limit of this process or file "
               "system; raise it (ulimit -f) or choose another directory");
  case ENOENT:
  case ENOTDIR:
    return Status::invalidArgument(text + std::strerror(error) +
                                   "; check the path");
  case EACCES:
  case EPERM:
  case EROFS:
    return Status::invalidArgument(
        text + std::strerror(error) +
        "; check its permissions or choose another path");
  case EMFILE:
    return Status::invalidArgument(
        text + "this process has as many open files as it may; raise the limit "
               "(ulimit -n) or give fewer files");
  case ENFILE:
    return Status::invalidArgument(
        text + "this machine has as many open files as it may; close some");
  case EIO:
    return Status::invalidArgument(
        text + "the disk or the server that holds it has failed (" +
        std::strerror(error) + "); use a copy elsewhere");
  default:
    return Status::invalidArgument(text + std::strerror(error));
  }
}
