//===- Trace.h - Records what ran when --------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Records slices for ui.perfetto.dev (Chrome's JSON trace format). Each
// instruction has one, with layer, micro-batch, bytes and flops. Exchanges
// inside a layer function, and progress of other exchanges that its kernels
// make, are inner slices of category "exchange". The rest of the instruction's
// slice is computation. Arrows lead from the start of a send to the wait that
// has received the message.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_TRACE_TRACE_H
#define DYNA_RUNTIME_EXECUTOR_TRACE_TRACE_H

#include "runtime/base/error/Status.h"
#include "runtime/base/text/TraceWriter.h"

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dyna {

/// Tracks of a rank.
enum TraceTrack {
  TRACK_INSTRUCTIONS = 0,
  TRACK_VALUE_SWITCH, ///< from the first start to the last wait
  TRACK_GRADIENT_SWITCH,
  TRACK_PHASE ///< from its first layer function to its last
};

struct TraceSlice {
  const char *name = ""; ///< a constant
  const char *category = "";
  int64_t step = 0;
  int layer = -1;
  int microBatch = -1;
  TraceTokens tokens; ///< of the micro-batch
  int phase = -1;     ///< of a step of several graphs
  /// Name of the phase's strategy; null if the run has one graph.
  const char *strategy = nullptr;
  int bucket = -1; ///< of a switch
  /// Times that the graphs were replaced before.
  int64_t version = 0;
  int track = 0; ///< TraceTrack
  /// Seconds since the recorder was made. A slice that follows another without
  /// a pause begins exactly at the end of that one.
  double beginSeconds = 0, endSeconds = 0;
  /// Seconds in which the rank's own thread had a core; -1: unknown.
  double coreSeconds = -1;
  int64_t liveBytes = 0; ///< of the dynamic region
  int64_t sentBytes = 0; ///< of messages, as the transport counts them
  double flops = 0;
  bool isInner = false; ///< within the slice before it
  /// Number of the message that it starts to send, or has received; 0: none.
  uint64_t arrow = 0;
  bool startsArrow = false;

  double seconds() const { return endSeconds - beginSeconds; }
};

class TraceRecorder {
public:
  /// Records at most `limit` slices, so that a forgotten flag fills no memory.
  explicit TraceRecorder(size_t limit = 1000000);
  /// Makes a recorder that counts time from the same moment.
  TraceRecorder(size_t limit, const TraceRecorder &other)
      : most_(limit), limit_(limit), start_(other.start_) {}

  double now() const;
  /// Returns the seconds for a moment of the clock.
  double at(std::chrono::steady_clock::time_point moment) const;
  /// Adds a slice. Copies the name of the strategy, which may be destroyed with
  /// its graph.
  void add(const TraceSlice &slice);
  /// Moves a slice to another time. The thread's core time is then unknown for
  /// it.
  void move(size_t slice, double beginSeconds, double endSeconds);
  /// Draws every switch and phase of the step whose slices are [first, end).
  /// Until then slices of a switch carry its track. Draws them even if no more
  /// slices are recorded.
  void addPhases(size_t first, size_t end);
  /// Stops recording until it is opened again.
  void close() { limit_ = slices_.size(); }
  void open() { limit_ = most_; }
  bool isFull() const { return slices_.size() >= limit_; }
  size_t size() const { return slices_.size(); }
  const std::vector<TraceSlice> &slices() const { return slices_; }
  /// Forgets all slices.
  void clear() { slices_.clear(); }

  /// Returns the whole trace as JSON text: that of rank 0 alone, or of several
  /// ranks with a track each. It follows the contents of `writer`.
  std::string toJson() const;
  static std::string toJson(const std::vector<const TraceRecorder *> &ranks,
                            int firstRank = 0, TraceWriter writer = {});

private:
  void addSwitches(size_t first, size_t end);
  void write(TraceWriter &writer, int rank) const;

  const size_t most_;
  size_t limit_; ///< below `most_` while it is closed
  double start_;
  std::vector<TraceSlice> slices_;
  std::set<std::string> strategies_; ///< names that slices point to
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_TRACE_TRACE_H
