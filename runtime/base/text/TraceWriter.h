//===- TraceWriter.h - Writes traces as JSON --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes traces for ui.perfetto.dev (the JSON events of Chrome's tracing).
// Ranks are processes, and their streams are tracks. Measured and simulated
// steps are written alike.
//
// Callers give times in seconds; the file has microseconds. Perfetto drops a
// slice that overlaps another one of its track without lying inside it, even by
// 1 ns. So the writer rounds both ends of a slice to eighths of a microsecond,
// and the duration is their difference. Such numbers are exact in decimals and
// in binary. Rounding keeps the order of times: slices that touch still touch,
// and slices inside others stay inside. A caller that knows an end must give
// the end. A duration added to the begin may give another number.
//
// Perfetto orders slices by their begin, and slices with the same begin by
// their place in the file. So an outer slice is written before the slices
// inside it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_TRACEWRITER_H
#define DYNA_RUNTIME_BASE_TEXT_TRACEWRITER_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace dyna {

/// Tokens of a micro-batch of a step that slices samples.
struct TraceTokens {
  int64_t sample = -1; ///< index in the mini-batch; -1: several samples
  int64_t samples = 0; ///< 0: nothing is said of tokens
  int64_t tokens = 0;
  int64_t context = 0; ///< earlier tokens of these samples
};

/// Attributes of a slice beside its time; -1 and 0 are left out.
struct TraceArguments {
  /// Step, from 0. It is always written, and counted from 1 as in metrics.
  int64_t step = 0;
  int64_t layer = -1, microBatch = -1;
  TraceTokens tokens; ///< of the micro-batch
  int64_t phase = -1; ///< of a step of several graphs
  /// Name of the phase's strategy, written unchanged; null is left out.
  const char *strategy = nullptr;
  int64_t bucket = -1; ///< of a switch
  /// Number of earlier replacements of the graphs; 0 is left out.
  int64_t version = 0;
  double flops = 0;
  int64_t bytes = 0;
  /// Part of the slice's time in which its thread had a core; -1 is left out.
  double coreSeconds = -1;
};

class TraceWriter {
public:
  /// Names a process. Names must be plain, because they are written unchanged.
  /// Each is written once.
  void nameProcess(int process, const std::string &name);
  /// Names a track with a fixed number, below `kFreeTracks`.
  void nameTrack(int process, int track, const std::string &name);
  /// Returns the number of the track of that name; a new name gets the next
  /// free number.
  int track(int process, const std::string &name);
  static constexpr int kFreeTracks = 8;
  void slice(int process, int track, const std::string &name,
             const std::string &category, double begin, double end,
             const TraceArguments &arguments);
  void liveBytes(int process, double time, int64_t bytes);
  /// Writes one end of an arrow, from or to the slice of that time.
  void arrow(int process, int track, double begin, double end, uint64_t id,
             bool starts);

  /// Returns the whole trace as JSON, even if nothing was written.
  std::string finish() const;

private:
  std::string &event();

  std::string text_;
  std::map<int, std::string> processes_;
  std::map<std::pair<int, std::string>, int> tracks_; ///< by process and name
  std::map<int, int> used_; ///< free tracks of a process
};

/// Returns the id of the arrow of a message. Processes compute the same id
/// without knowing of each other. `from` and `to` are ranks. `channelIndex`
/// distinguishes edges between the same ranks.
uint64_t messageArrow(int64_t step, int from, int to, bool isGradient,
                      int microBatch, int channelIndex = 0);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_TRACEWRITER_H
