//===- TraceWriter.cpp - Traces as text -----------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/TraceWriter.h"

#include "runtime/abi/Random.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cmath>

namespace dyna {

/// The precision of times, in microseconds: exact in binary and in "%.3f".
static constexpr double kTick = 0.125;

/// Whole ticks, in microseconds.
static double microseconds(double seconds) {
  return std::round(seconds * (1e6 / kTick)) * kTick;
}

std::string &TraceWriter::event() {
  if (!text_.empty())
    text_ += ",\n";
  return text_;
}

void TraceWriter::nameProcess(int process, const std::string &name) {
  std::string &known = processes_[process];
  if (known == name)
    return;
  known = name;
  event() += formatText("{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": "
                        "%d, \"args\": {\"name\": \"%s\"}}",
                        process, name);
}

void TraceWriter::nameTrack(int process, int track, const std::string &name) {
  if (!tracks_.insert({{process, name}, track}).second)
    return;
  event() += formatText("{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": "
                        "%d, \"tid\": %d, \"args\": {\"name\": \"%s\"}}",
                        process, track, name);
}

int TraceWriter::track(int process, const std::string &name) {
  auto found = tracks_.find({process, name});
  if (found != tracks_.end())
    return found->second;
  const int track = kFreeTracks + used_[process]++;
  nameTrack(process, track, name);
  return track;
}

void TraceWriter::slice(int process, int track, const std::string &name,
                        const std::string &category, double begin, double end,
                        const TraceArguments &arguments) {
  std::string said = formatText("\"step\": %d", arguments.step + 1);
  if (arguments.layer >= 0)
    said += formatText(", \"layer\": %d", arguments.layer);
  if (arguments.microBatch >= 0)
    said += formatText(", \"micro_batch\": %d", arguments.microBatch);
  if (arguments.phase >= 0)
    said += formatText(", \"phase\": %d", arguments.phase);
  if (arguments.strategy)
    said += formatText(", \"strategy\": \"%s\"", arguments.strategy);
  if (arguments.bucket >= 0)
    said += formatText(", \"bucket\": %d", arguments.bucket);
  if (arguments.flops > 0)
    said += formatText(", \"flops\": %.0f", arguments.flops);
  if (arguments.bytes > 0)
    said += formatText(", \"bytes\": %d", arguments.bytes);
  // The format's word for it.
  std::string core =
      arguments.coreSeconds >= 0
          ? formatText(", \"tdur\": %.3f", arguments.coreSeconds * 1e6)
          : "";
  const double first = microseconds(begin);
  event() += formatText(
      "{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, "
      "\"tid\": %d, \"ts\": %.3f, \"dur\": %.3f%s, \"args\": {%s}}",
      name, category, process, track, first, microseconds(end) - first, core,
      said);
}

void TraceWriter::liveBytes(int process, double time, int64_t bytes) {
  event() += formatText("{\"name\": \"live bytes\", \"ph\": \"C\", \"pid\": "
                        "%d, \"ts\": %.3f, \"args\": {\"bytes\": %d}}",
                        process, microseconds(time), bytes);
}

void TraceWriter::arrow(int process, int track, double begin, double end,
                        uint64_t id, bool starts) {
  // An arrow starts with its slice, and ends within one, as late as can be: what
  // waits was there before.
  const double first = microseconds(begin);
  double time = starts ? first : std::max(first, microseconds(end) - kTick);
  event() += formatText(
      "{\"name\": \"message\", \"cat\": \"message\", \"ph\": \"%s\", "
      "\"id\": %d, \"pid\": %d, \"tid\": %d, \"ts\": %.3f%s}",
      starts ? "s" : "f", id, process, track, time,
      starts ? "" : ", \"bp\": \"e\"");
}

std::string TraceWriter::finish() const {
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + text_ +
         "\n]}\n";
}

uint64_t messageArrow(int64_t step, int from, int to, bool isGradient,
                      int microBatch, int channelIndex) {
  uint64_t key = dyna_mix64(static_cast<uint64_t>(step));
  key = dyna_mix64(
      key ^ (static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)));
  key = dyna_mix64(key ^ (static_cast<uint64_t>(channelIndex) << 48 |
                          static_cast<uint64_t>(microBatch) << 1 |
                          (isGradient ? 1 : 0)));
  return key >> 12; // as a number of JSON: readers keep 53 bits
}

} // namespace dyna
