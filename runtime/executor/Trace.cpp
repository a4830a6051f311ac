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

void TraceRecorder::write(TraceWriter &writer, int rank) const {
  writer.nameProcess(rank, formatText("rank %d", rank));
  for (const TraceSlice &slice : slices_) {
    TraceArguments arguments;
    arguments.step = slice.step;
    arguments.layer = slice.layer;
    arguments.microBatch = slice.microBatch;
    arguments.flops = slice.flops;
    arguments.bytes = slice.sentBytes;
    arguments.coreSeconds = slice.coreSeconds;
    writer.slice(rank, 0, slice.name, slice.category, slice.beginSeconds,
                 slice.seconds, arguments);
    if (slice.isInner)
      continue; // of an instruction that has said it
    writer.liveBytes(rank, slice.beginSeconds, slice.liveBytes);
    if (slice.arrow != 0)
      writer.arrow(rank, 0, slice.beginSeconds, slice.seconds, slice.arrow,
                   slice.startsArrow);
  }
}

std::string TraceRecorder::toJson() const { return toJson({this}); }

std::string
TraceRecorder::toJson(const std::vector<const TraceRecorder *> &ranks,
                      int firstRank, TraceWriter writer) {
  for (size_t index = 0; index < ranks.size(); ++index)
    ranks[index]->write(writer, firstRank + static_cast<int>(index));
  return writer.finish();
}

} // namespace dyna
