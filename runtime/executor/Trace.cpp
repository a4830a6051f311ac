//===- Trace.cpp - What ran when ------------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/Trace.h"

#include "runtime/base/Text.h"

#include <chrono>

namespace dyna {

static double clockSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

TraceRecorder::TraceRecorder(size_t limit)
    : limit_(limit), start_(clockSeconds()) {}

double TraceRecorder::now() const { return clockSeconds() - start_; }

double TraceRecorder::at(std::chrono::steady_clock::time_point moment) const {
  return std::chrono::duration<double>(moment.time_since_epoch()).count() -
         start_;
}

void TraceRecorder::add(const TraceSlice &slice) {
  if (!isFull())
    slices_.push_back(slice);
}

std::string TraceRecorder::events(int rank) const {
  std::string text =
      formatText("{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, "
                 "\"args\": {\"name\": \"rank %d\"}}",
                 rank, rank);
  for (const TraceSlice &slice : slices_) {
    std::string arguments = formatText("\"step\": %d", slice.step);
    if (slice.layer >= 0)
      arguments += formatText(", \"layer\": %d", slice.layer);
    if (slice.microBatch >= 0)
      arguments += formatText(", \"micro_batch\": %d", slice.microBatch);
    if (slice.flops > 0)
      arguments += formatText(", \"flops\": %.0f", slice.flops);
    text += formatText(
        ",\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, "
        "\"tid\": 0, \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}",
        slice.name, slice.category, rank, slice.beginSeconds * 1e6,
        slice.seconds * 1e6, arguments);
    if (slice.isInner)
      continue; // of an instruction that has said it
    text += formatText(",\n{\"name\": \"live bytes\", \"ph\": \"C\", \"pid\": "
                       "%d, \"ts\": %.3f, \"args\": {\"bytes\": %d}}",
                       rank, slice.beginSeconds * 1e6, slice.liveBytes);
  }
  return text;
}

std::string TraceRecorder::toJson() const { return toJson({this}); }

std::string
TraceRecorder::toJson(const std::vector<const TraceRecorder *> &ranks,
                      int firstRank) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (size_t index = 0; index < ranks.size(); ++index)
    text += (index ? ",\n" : "") +
            ranks[index]->events(firstRank + static_cast<int>(index));
  return text + "\n]}\n";
}

} // namespace dyna
