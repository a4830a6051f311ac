//===- RecomputeModes.cpp - Holds recomputation modes by layer ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/request/RecomputeModes.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace dyna {

namespace {

struct Entry {
  plan::Recompute mode = plan::RECOMPUTE_NONE;
  long count = 1; ///< layers
};

/// Parses "full" or "full*6", of at most `layers` layers.
StatusOr<Entry> parseEntry(std::string word, long layers) {
  Entry entry;
  if (size_t star = word.find('*'); star != std::string::npos) {
    char *rest = nullptr;
    entry.count = std::strtol(word.c_str() + star + 1, &rest, 10);
    if (star + 1 == word.size() || *rest || entry.count < 1 ||
        entry.count > layers)
      return Status::invalidArgument("--recompute: '" + word +
                                     "' does not end in a number of layers");
    word.resize(star);
  }
  if (word == "none")
    entry.mode = plan::RECOMPUTE_NONE;
  else if (word == "selective")
    entry.mode = plan::RECOMPUTE_SELECTIVE;
  else if (word == "full")
    entry.mode = plan::RECOMPUTE_FULL;
  else
    return Status::invalidArgument(
        "--recompute expects none, selective or full, one for each layer, or "
        "auto by itself, but got '" +
        word + "'");
  return entry;
}

StatusOr<std::vector<Entry>> parseEntries(const std::string &text,
                                          long layers) {
  std::vector<Entry> entries;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    DYNA_ASSIGN_OR_RETURN(Entry entry,
                          parseEntry(text.substr(begin, end - begin), layers));
    begin = end + 1;
    entries.push_back(entry);
  }
  return entries;
}

} // namespace

StatusOr<RecomputeModes> parseRecompute(const std::string &text, int layers) {
  DYNA_ASSIGN_OR_RETURN(std::vector<Entry> entries, parseEntries(text, layers));
  RecomputeModes modes;
  for (const Entry &entry : entries)
    modes.insert(modes.end(), entry.count, entry.mode);
  if (entries.size() == 1 && modes.size() == 1)
    return RecomputeModes(layers, modes[0]);
  if (modes.size() != static_cast<size_t>(layers))
    return Status::invalidArgument(
        formatText("--recompute lists %d layers, but the model has %d",
                   modes.size(), layers));
  return modes;
}

Status checkRecompute(const std::string &text) {
  if (text == chooseRecomputeWord)
    return Status::ok();
  return parseEntries(text, std::numeric_limits<int>::max()).status();
}

std::string describeRecompute(const RecomputeModes &modes) {
  const bool same = std::all_of(modes.begin(), modes.end(),
                                [&](auto mode) { return mode == modes[0]; });
  std::string text;
  for (plan::Recompute mode : modes) {
    text += text.empty() ? "" : ",";
    text += mode == plan::RECOMPUTE_NONE        ? "none"
            : mode == plan::RECOMPUTE_SELECTIVE ? "selective"
                                                : "full";
    if (same)
      break;
  }
  return text;
}

} // namespace dyna
