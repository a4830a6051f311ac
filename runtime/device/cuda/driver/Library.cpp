//===- Library.cpp - Opens libraries at run time --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/Library.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>

using namespace dyna;
using cuda::Library;

/// Returns the non-empty parts of `list`, which are separated by ':'.
static std::vector<std::string> foldersOf(std::string_view list) {
  std::vector<std::string> folders;
  while (!list.empty()) {
    size_t end = std::min(list.find(':'), list.size());
    if (end > 0)
      folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return folders;
}

StatusOr<Library> Library::open(const std::vector<std::string> &names) {
  const char *list = std::getenv(kLibraryPathVariable);
  const std::vector<std::string> folders = foldersOf(list ? list : "");
  for (const std::string &name : names) {
    for (const std::string &folder : folders) {
      std::string path = folder + "/" + name;
      if (access(path.c_str(), F_OK) != 0)
        continue;
      if (void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
        return Library(handle, path);
      const char *reason = dlerror();
      return Status::invalidArgument(
          formatText("%s cannot be used: %s", printable(path),
                     printable(reason ? reason : "no reason given")));
    }
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return Library(handle, name);
  }
  std::string all;
  for (const std::string &name : names)
    all += (all.empty() ? "" : " or ") + name;
  std::string where = "where the system looks";
  if (folders.empty())
    where += formatText("; %s, which may name folders, is not set",
                        kLibraryPathVariable);
  else
    where += formatText(" nor in %s=%s", kLibraryPathVariable, printable(list));
  return Status::invalidArgument(formatText("%s was not found %s", all, where));
}

void *Library::find(const char *symbol) const { return dlsym(handle_, symbol); }
