//===- RecomputeModes.cpp - Recomputation modes by layer ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/request/RecomputeModes.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cstdlib>

namespace dyna {

StatusOr<RecomputeModes> parseRecompute(const std::string &text, int layers) {
  RecomputeModes modes;
  int entries = 0;
  for (size_t begin = 0; begin <= text.size(); ++entries) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    long count = 1;
    if (size_t star = word.find('*'); star != std::string::npos) {
      char *rest = nullptr;
      count = std::strtol(word.c_str() + star + 1, &rest, 10);
      if (star + 1 == word.size() || *rest || count < 1 || count > layers)
        return Status::invalidArgument("--recompute: '" + word +
                                       "' does not end in a number of layers");
      word.resize(star);
    }
    plan::Recompute mode;
    if (word == "none")
      mode = plan::RECOMPUTE_NONE;
    else if (word == "selective")
      mode = plan::RECOMPUTE_SELECTIVE;
    else if (word == "full")
      mode = plan::RECOMPUTE_FULL;
    else
      return Status::invalidArgument(
          "--recompute expects none, selective or full, one for each layer, or "
          "auto by itself, but got '" +
          word + "'");
    modes.insert(modes.end(), count, mode);
  }
  if (entries == 1 && modes.size() == 1)
    return RecomputeModes(layers, modes[0]);
  if (modes.size() != static_cast<size_t>(layers))
    return Status::invalidArgument(
        formatText("--recompute lists %d layers, but the model has %d",
                   modes.size(), layers));
  return modes;
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
