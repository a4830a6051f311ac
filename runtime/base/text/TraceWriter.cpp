//===- TraceWriter.cpp - Writes traces as JSON ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/TraceWriter.h"

#include "runtime/abi/Random.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>

namespace dyna {

/// The precision of times, in microseconds: exact in binary and in "%.3f".
static constexpr double kTick = 0.125;

/// Returns whole ticks, in microseconds.
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
  event() += JsonObject()
                 .add("name", "process_name")
                 .add("ph", "M")
                 .add("pid", process)
                 .add("args", JsonObject().add("name", name))
                 .text();
}

void TraceWriter::nameTrack(int process, int track, const std::string &name) {
  if (!tracks_.insert({{process, name}, track}).second)
    return;
  event() += JsonObject()
                 .add("name", "thread_name")
                 .add("ph", "M")
                 .add("pid", process)
                 .add("tid", track)
                 .add("args", JsonObject().add("name", name))
                 .text();
}

int TraceWriter::track(int process, const std::string &name) {
  auto found = tracks_.find({process, name});
  if (found != tracks_.end())
    return found->second;
  const int track = kFreeTracks + used_[process]++;
  nameTrack(process, track, name);
  return track;
}

static void addTokens(JsonObject &said, const TraceTokens &tokens) {
  if (tokens.samples == 0)
    return;
  if (tokens.sample >= 0)
    said.add("sample", tokens.sample);
  else
    said.add("samples", tokens.samples);
  said.add("tokens", tokens.tokens).add("context", tokens.context);
}

void TraceWriter::slice(int process, int track, const std::string &name,
                        const std::string &category, double begin, double end,
                        const TraceArguments &arguments) {
  JsonObject said;
  said.add("step", arguments.step + 1);
  if (arguments.layer >= 0)
    said.add("layer", arguments.layer);
  if (arguments.microBatch >= 0)
    said.add("micro_batch", arguments.microBatch);
  addTokens(said, arguments.tokens);
  if (arguments.phase >= 0)
    said.add("phase", arguments.phase);
  if (arguments.strategy)
    said.add("strategy", arguments.strategy);
  if (arguments.bucket >= 0)
    said.add("bucket", arguments.bucket);
  if (arguments.version > 0)
    said.add("version", arguments.version);
  if (arguments.flops > 0)
    said.add("flops", jsonFixed(arguments.flops, 0));
  if (arguments.bytes > 0)
    said.add("bytes", arguments.bytes);
  const double first = microseconds(begin);
  JsonObject slice;
  slice.add("name", name)
      .add("cat", category)
      .add("ph", "X")
      .add("pid", process)
      .add("tid", track)
      .add("ts", jsonFixed(first, 3))
      .add("dur", jsonFixed(microseconds(end) - first, 3));
  // The trace format calls the time on a core `tdur`.
  if (arguments.coreSeconds >= 0)
    slice.add("tdur", jsonFixed(arguments.coreSeconds * 1e6, 3));
  event() += slice.add("args", said).text();
}

void TraceWriter::liveBytes(int process, double time, int64_t bytes) {
  event() += JsonObject()
                 .add("name", "live bytes")
                 .add("ph", "C")
                 .add("pid", process)
                 .add("ts", jsonFixed(microseconds(time), 3))
                 .add("args", JsonObject().add("bytes", bytes))
                 .text();
}

void TraceWriter::arrow(int process, int track, double begin, double end,
                        uint64_t id, bool starts) {
  // An arrow starts with its slice. It ends inside its target slice, as late as
  // possible, because the waiting slice began earlier.
  const double first = microseconds(begin);
  double time = starts ? first : std::max(first, microseconds(end) - kTick);
  JsonObject event;
  event.add("name", "message")
      .add("cat", "message")
      .add("ph", starts ? "s" : "f")
      .add("id", id)
      .add("pid", process)
      .add("tid", track)
      .add("ts", jsonFixed(time, 3));
  if (!starts)
    event.add("bp", "e");
  this->event() += event.text();
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
  return key >> 12; // JSON readers keep only 53 bits
}

} // namespace dyna
