//===- FileId.cpp - Identifies files by any of their names ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/FileId.h"

#include <filesystem>
#include <sys/stat.h>

using namespace dyna;

std::optional<FileId> dyna::fileIdOf(const std::string &path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return std::nullopt;
  return FileId(facts.st_dev, facts.st_ino);
}

bool dyna::isAt(int descriptor, const std::string &path) {
  struct stat open, named;
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

bool dyna::areOneOutput(const std::string &a, const std::string &b) {
  if (std::optional<FileId> id = fileIdOf(a))
    return id == fileIdOf(b);
  namespace fs = std::filesystem;
  fs::path one(a), other(b);
  std::error_code error;
  if (fs::exists(one, error) || one.filename() != other.filename())
    return false;
  auto folder = [](const fs::path &path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
  };
  return fs::equivalent(folder(one), folder(other), error);
}
