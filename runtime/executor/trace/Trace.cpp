//===- Trace.cpp - Records what ran when ----------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/trace/Trace.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace dyna {

static double clockSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

TraceRecorder::TraceRecorder(size_t limit)
    : most_(limit), limit_(limit), start_(clockSeconds()) {}

double TraceRecorder::now() const { return clockSeconds() - start_; }

double TraceRecorder::at(std::chrono::steady_clock::time_point moment) const {
  return std::chrono::duration<double>(moment.time_since_epoch()).count() -
         start_;
}

void TraceRecorder::add(const TraceSlice &slice) {
  if (isFull())
    return;
  slices_.push_back(slice);
  if (slice.strategy)
    slices_.back().strategy = strategies_.insert(slice.strategy).first->c_str();
}

void TraceRecorder::move(size_t slice, double beginSeconds, double endSeconds) {
  slices_[slice].beginSeconds = beginSeconds;
  slices_[slice].endSeconds = endSeconds;
  slices_[slice].coreSeconds = -1;
}

void TraceRecorder::write(TraceWriter &writer, int rank) const {
  writer.nameProcess(rank, formatText("rank %d", rank));
  bool switches = false;
  for (const TraceSlice &slice : slices_) {
    TraceArguments arguments;
    arguments.step = slice.step;
    arguments.layer = slice.layer;
    arguments.microBatch = slice.microBatch;
    arguments.tokens = slice.tokens;
    arguments.phase = slice.phase;
    arguments.strategy = slice.strategy;
    arguments.bucket = slice.bucket;
    arguments.version = slice.version;
    arguments.flops = slice.flops;
    arguments.bytes = slice.sentBytes;
    arguments.coreSeconds = slice.coreSeconds;
    writer.slice(rank, slice.track, slice.name, slice.category,
                 slice.beginSeconds, slice.endSeconds, arguments);
    switches |= slice.track != TRACK_INSTRUCTIONS;
    if (slice.isInner || slice.track != TRACK_INSTRUCTIONS)
      continue; // not an instruction of the plan
    writer.liveBytes(rank, slice.beginSeconds, slice.liveBytes);
    if (slice.arrow != 0)
      writer.arrow(rank, 0, slice.beginSeconds, slice.endSeconds, slice.arrow,
                   slice.startsArrow);
  }
  if (!switches)
    return;
  writer.nameTrack(rank, TRACK_INSTRUCTIONS, "instructions");
  writer.nameTrack(rank, TRACK_VALUE_SWITCH, "switches: values");
  writer.nameTrack(rank, TRACK_GRADIENT_SWITCH, "switches: gradients");
  writer.nameTrack(rank, TRACK_PHASE, "phases");
}

/// Clears the fields of one instruction in a slice that stands for several.
static void forgetInstruction(TraceSlice &slice) {
  slice.layer = slice.microBatch = slice.bucket = -1;
  slice.tokens = {};
  slice.coreSeconds = -1;
  slice.flops = 0;
  slice.arrow = 0;
}

/// Extends a slice to the earlier begin and the later end of two.
static void spanBoth(TraceSlice &all, const TraceSlice &slice) {
  all.beginSeconds = std::min(all.beginSeconds, slice.beginSeconds);
  all.endSeconds = std::max(all.endSeconds, slice.endSeconds);
}

void TraceRecorder::addPhases(size_t first, size_t end) {
  std::map<int, TraceSlice> phases;
  for (size_t index = first; index < end; ++index) {
    const TraceSlice &slice = slices_[index];
    if (slice.phase < 0 || slice.bucket >= 0 || slice.isInner ||
        slice.layer < 0)
      continue;
    TraceSlice &life = phases.insert({slice.phase, slice}).first->second;
    spanBoth(life, slice);
  }
  addSwitches(first, end);
  for (auto &[number, phase] : phases) {
    forgetInstruction(phase);
    phase.name = phase.strategy ? phase.strategy : "phase";
    phase.category = "phase";
    phase.track = TRACK_PHASE;
    phase.sentBytes = 0;
    slices_.push_back(phase);
  }
}

void TraceRecorder::addSwitches(size_t first, size_t end) {
  // A slice for each track and phase spans all of its buckets.
  std::map<std::pair<int, int>, TraceSlice> lives;
  for (size_t index = first; index < end; ++index) {
    const TraceSlice &slice = slices_[index];
    if (slice.bucket < 0 || slice.isInner)
      continue;
    auto [found, isNew] = lives.insert({{slice.track, slice.phase}, slice});
    TraceSlice &life = found->second;
    spanBoth(life, slice);
    life.sentBytes += isNew ? 0 : slice.sentBytes;
  }
  for (size_t index = first; index < end; ++index)
    if (slices_[index].bucket >= 0)
      slices_[index].track = TRACK_INSTRUCTIONS;
  for (auto &[key, life] : lives) {
    life.name =
        key.first == TRACK_VALUE_SWITCH ? "values come" : "gradients go home";
    forgetInstruction(life);
    slices_.push_back(life);
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
