//===- TraceWriter.h - Traces as text ---------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes what ui.perfetto.dev shows (the JSON events of Chrome's tracing): ranks
// are processes, their streams are tracks. Steps that ran and steps that were
// simulated are written alike.
//
// Callers give times in seconds; the file has microseconds. Perfetto drops a slice
// that overlaps another one of its track without lying inside it, be it by 1 ns. So
// the writer rounds both ends of a slice to whole eighths of a microsecond, and the
// duration is their difference. Such numbers are exact in decimals and in binary,
// and rounding keeps the order of times: slices that touch still touch, and slices
// inside others stay inside. Callers that know an end give that end, and not a
// duration, which added to the begin may give another number.
//
// Perfetto orders slices by their begin, and those of one begin by their place in
// the file: an outer slice is written before the slices inside it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TRACEWRITER_H
#define DYNA_RUNTIME_BASE_TRACEWRITER_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace dyna {

/// What one slice says beside its time; -1 and 0 are left out.
struct TraceArguments {
  /// From 0; always there, and counted from 1 as metrics count steps.
  int64_t step = 0;
  int64_t layer = -1, microBatch = -1;
  int64_t phase = -1; ///< of a step of several graphs
  /// Of that phase, by its name, written as it is; null is left out.
  const char *strategy = nullptr;
  int64_t bucket = -1; ///< of a switch
  /// Times that the graphs were replaced before; 0 is left out.
  int64_t version = 0;
  double flops = 0;
  int64_t bytes = 0;
  /// Of the slice's time, what its thread had of a core; -1 is left out.
  double coreSeconds = -1;
};

class TraceWriter {
public:
  /// Names must be plain: they are written as they are, each once, however often
  /// it is given.
  void nameProcess(int process, const std::string &name);
  /// Of tracks that have a number everywhere, below `kFreeTracks`.
  void nameTrack(int process, int track, const std::string &name);
  /// The number of the track of that name, the next free one where it is new.
  int track(int process, const std::string &name);
  static constexpr int kFreeTracks = 8;
  void slice(int process, int track, const std::string &name,
             const std::string &category, double begin, double end,
             const TraceArguments &arguments);
  void liveBytes(int process, double time, int64_t bytes);
  /// One end of an arrow, from or to the slice of that time.
  void arrow(int process, int track, double begin, double end, uint64_t id,
             bool starts);

  /// The whole as JSON; of one that nothing was written to, too.
  std::string finish() const;

private:
  std::string &event();

  std::string text_;
  std::map<int, std::string> processes_;
  std::map<std::pair<int, std::string>, int> tracks_; ///< by process and name
  std::map<int, int> used_; ///< free tracks of a process
};

/// The id of the arrow of a message: processes that know nothing of each other
/// give it the same one. Ranks number `from` and `to`.
/// `channelIndex` tells edges between the same ranks apart.
uint64_t messageArrow(int64_t step, int from, int to, bool isGradient,
                      int microBatch, int channelIndex = 0);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TRACEWRITER_H
