//===- Session.h - One run of a compiled binary -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What training and evaluation share: program, device, executor and data, set
// up from the flags.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SESSION_H
#define DYNA_RUNTIME_TRAIN_SESSION_H

#include "runtime/data/BatchReader.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/planner/step/StepPlanner.h"
#include "runtime/train/flags/CommandLine.h"

#include <memory>

namespace dyna {

struct Session {
  TrainOptions options;
  const Model *model = nullptr;
  const dyna_program *program = nullptr;
  const dyna_variant *variant = nullptr;
  /// Of the only rank, where devices have memory of their own; until the rank has
  /// it.
  std::unique_ptr<Device> opened;
  /// Graph of --strategy, or those of --ranges.
  std::unique_ptr<StepGraphs> graphs;
  /// Plans steps of these graphs; null until the memory of ranks is known.
  std::unique_ptr<StepPlanner> planner;
  /// What was chosen, for people.
  std::vector<std::string> notes;
  /// One for each rank of this process; the first is also the loop's own.
  std::vector<std::unique_ptr<TraceRecorder>> traces;
  std::vector<Device *> devices; ///< owned by `ranks`
  std::unique_ptr<RankTeam> ranks;
  /// Bytes that the arena of each rank has at least. 0: as many as plans of the first
  /// graphs can use. Runs that replace graphs set it before the session is opened, as
  /// the next graphs must fit the same arenas (open/ReplaceGraphs.h).
  int64_t arenaBytes = 0;
  /// Bytes that --repack needs in the arena of each rank; empty without it
  /// (open/SizeMoves.h).
  std::vector<int64_t> arenasAtLeast;
  /// Bytes of addresses that --rebalance needs in the arena of each rank, for any cut.
  /// Memory is taken for them when it is needed. Empty without it.
  std::vector<int64_t> reservedBytes;
  /// Seconds to choose and size the graphs of a strategy, once measured.
  double graphSeconds = 0;
  /// Ranks of the run, if it may get more of them than home has; 0: home's.
  int mostRanks = 0;
  /// Bytes of the arenas that were taken, of the ranks of all processes.
  std::vector<int64_t> arenas;
  /// Times that the graphs were replaced since the run began, resumed parts included.
  int64_t version = 0;
  /// To train on and held out, where they are opened before anything else.
  std::optional<std::pair<DatasetPointer, DatasetPointer>> documents;
  SampleIndexPointer data;
  SampleIndexPointer heldOut; ///< null: none
  uint64_t run = 0;           ///< of --store: one number for all processes
  int64_t dataBytes = 0;      ///< memory of both
  int64_t fileBytes = 0;      ///< what saving and loading take for a while
  int64_t batchBytes = 0;     ///< mini-batches on the way, by an estimate
  int64_t programBytes = 0;   ///< the program and its libraries

  /// Tokens of the longest sample that there may be: what the model's positions
  /// and a rank's memory allow.
  int64_t sampleLimit = 0;
  BatchOptions batchOptions() const;
  /// The next mini-batch to train on, padded and joined as the flags say; without
  /// samples at the data's end.
  StatusOr<MiniBatch> readBatch(BatchReader &reader) const;
  /// All that this process takes: what --memory-limit limits, and the kernels' own
  /// scratch.
  int64_t peakBytes() const;
  Device &device() const { return *devices.front(); }
  const PlannedGraph &home() const { return graphs->home(); }
  /// Ranks that there are, with a place in the graphs or without.
  int worldRanks() const {
    return mostRanks > 0 ? mostRanks : home().graph->ranks();
  }
  /// Returns true if samples go to strategies by their lengths, even if there is one.
  bool hasRanges() const { return !options.ranges.empty(); }
  /// Returns true if steps are predicted: by estimates alone they are not.
  bool hasCosts() const {
    return home().planner->costs().table().fingerprint() != 0;
  }
  /// Those of --costs, as checkpoints and other processes know them; empty: none.
  std::string costsMark() const;
  /// Whether this process writes what a run leaves: metrics, checkpoints.
  bool writesFiles() const { return ranks->hasRankZero(); }
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SESSION_H
