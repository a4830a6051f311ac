//===- EventList.cpp - Lists of changes before given steps ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/EventList.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

std::vector<std::string> splitEvents(const std::string &text) {
  std::vector<std::string> entries;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    entries.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

Status eventOutOfOrder(const char *flag, const std::string &entry,
                       const std::string &before) {
  return Status::invalidArgument(formatText(
      "--%s '%s' does not come after '%s': give the entries in the order of "
      "their steps, one for each",
      flag, entry, before));
}

Status eventInThePast(const char *flag, const std::string &entry,
                      int64_t done) {
  return Status::invalidArgument(
      formatText("--%s %s is in the past: the run has done %d steps, so give "
                 "entries from @%d on",
                 flag, entry, done, done));
}

} // namespace dyna
