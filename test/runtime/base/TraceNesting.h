//===- TraceNesting.h - Checks that Perfetto keeps all slices ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_BASE_TRACENESTING_H
#define DYNA_TEST_RUNTIME_BASE_TRACENESTING_H

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dyna {

/// Reads a trace as Perfetto does and returns the slices that it drops, a line each;
/// empty if it keeps all. test/tools/Inputs/nesting.py has the same rule.
///
/// Perfetto cuts times off to whole nanoseconds, and orders the slices of a track by
/// their begin; equal ones stay in the order of the file. It then ends the open
/// slices that end before a new one begins. A new slice that ends behind the
/// innermost open one is dropped.
inline std::string droppedSlices(const std::string &trace) {
  auto json = parseJson(trace);
  if (!json.isOk())
    return json.status().message();
  struct Slice {
    int64_t begin, end;
    size_t number;
    std::string name;
  };
  auto nanoseconds = [](const JsonValue &slice, const char *name) {
    return static_cast<int64_t>(slice.find(name)->number * 1000.0);
  };
  std::map<std::pair<double, double>, std::vector<Slice>> tracks;
  for (const JsonValue &event : json->find("traceEvents")->items) {
    if (event.find("ph")->text != "X")
      continue;
    const int64_t begin = nanoseconds(event, "ts");
    auto &slices =
        tracks[{event.find("pid")->number, event.find("tid")->number}];
    slices.push_back({begin, begin + nanoseconds(event, "dur"), slices.size(),
                      event.find("name")->text});
  }
  std::string dropped;
  for (auto &[track, slices] : tracks) {
    std::sort(slices.begin(), slices.end(),
              [](const Slice &one, const Slice &other) {
                return std::tie(one.begin, one.number) <
                       std::tie(other.begin, other.number);
              });
    std::vector<const Slice *> open;
    for (const Slice &slice : slices) {
      while (!open.empty() && open.back()->end <= slice.begin)
        open.pop_back();
      if (slice.end < slice.begin ||
          (!open.empty() && slice.end > open.back()->end))
        dropped += formatText(
            "process %.0f, track %.0f: '%s' [%d, %d] ns in '%s' to %d ns\n",
            track.first, track.second, slice.name, slice.begin, slice.end,
            open.empty() ? "" : open.back()->name,
            open.empty() ? 0 : open.back()->end);
      else
        open.push_back(&slice);
    }
  }
  return dropped;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_BASE_TRACENESTING_H
