//===- Trace.h - What ran when ----------------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Slices for ui.perfetto.dev (Chrome's JSON trace format): one per instruction,
// with layer, micro-batch, bytes and flops. Exchanges inside a layer function,
// and progress that its kernels let others make, are slices of category
// "exchange" within the instruction's: what is left of it, it computed. Arrows
// lead from where a message starts to be sent to the wait that has received it.
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

/// What a rank's tracks show.
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
  /// Since the recorder was made. A slice that follows another without a pause
  /// begins at that one's end exactly.
  double beginSeconds = 0, endSeconds = 0;
  /// Seconds in which the rank's own thread had a core; -1: unknown.
  double coreSeconds = -1;
  int64_t liveBytes = 0; ///< of the dynamic region
  int64_t sentBytes = 0; ///< of messages, as the transport counts them
  double flops = 0;
  bool isInner = false; ///< within the slice before it
  /// Of the message that it starts to send, or has received; 0: none.
  uint64_t arrow = 0;
  bool startsArrow = false;

  double seconds() const { return endSeconds - beginSeconds; }
};

class TraceRecorder {
public:
  /// Records at most `limit` slices, so that a forgotten flag fills no memory.
  explicit TraceRecorder(size_t limit = 1000000);
  /// One that counts from the same moment.
  TraceRecorder(size_t limit, const TraceRecorder &other)
      : most_(limit), limit_(limit), start_(other.start_) {}

  double now() const;
  /// The same for a moment of the clock.
  double at(std::chrono::steady_clock::time_point moment) const;
  /// Keeps the name of the strategy, which may go with its graph.
  void add(const TraceSlice &slice);
  /// A slice that is already there was at another time; the thread's own time says
  /// nothing of it then.
  void move(size_t slice, double beginSeconds, double endSeconds);
  /// Draws every switch and phase of the step whose slices are [first, end): those
  /// of a switch's instructions carry its track until then. Also when no more slices
  /// are recorded.
  void addPhases(size_t first, size_t end);
  /// Records no more, until it is opened again.
  void close() { limit_ = slices_.size(); }
  void open() { limit_ = most_; }
  bool isFull() const { return slices_.size() >= limit_; }
  size_t size() const { return slices_.size(); }
  const std::vector<TraceSlice> &slices() const { return slices_; }
  /// Forgets all slices.
  void clear() { slices_.clear(); }

  /// The whole trace as JSON text: that of rank 0 alone, or of several ranks,
  /// each a track of its own, behind what `writer` has.
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
