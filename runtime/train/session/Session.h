//===- Session.h - Holds one run of a compiled binary -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// State that training and evaluation share: program, device, executor and data,
// set up from the flags.
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
  /// Model of the present graphs. It is `compiled`, or has layers frozen.
  const Model *model = nullptr;
  const Model *compiled = nullptr;
  /// Owns `model`, unless that is `compiled`.
  std::shared_ptr<const Model> stageModel;
  /// Layers that a resumed run had frozen; empty: none. Set before the session is opened.
  std::vector<bool> frozenBefore;
  int64_t frozenStep = 0; ///< step after which they are frozen again
  const dyna_program *program = nullptr;
  const dyna_variant *variant = nullptr;
  /// Device of the only rank, if devices have their own memory. Null once the
  /// rank has it.
  std::unique_ptr<Device> opened;
  /// Graph of --strategy, or those of --ranges.
  std::unique_ptr<StepGraphs> graphs;
  /// Plans steps of these graphs; null until the memory of ranks is known.
  std::unique_ptr<StepPlanner> planner;
  /// Choices that were made for the user, as lines for people.
  std::vector<std::string> notes;
  /// One for each rank of this process; the first is also the loop's own.
  std::vector<std::unique_ptr<TraceRecorder>> traces;
  std::vector<Device *> devices; ///< owned by `ranks`
  std::unique_ptr<RankTeam> ranks;
  /// Least bytes of the arena of each rank. 0: as many as plans of the first
  /// graphs can use. Runs that replace graphs set it before the session is
  /// opened, because the next graphs must fit the same arenas
  /// (open/ReplaceGraphs.h).
  int64_t arenaBytes = 0;
  /// Bytes that --repack needs in the arena of each rank; empty without it
  /// (open/SizeMoves.h).
  std::vector<int64_t> arenasAtLeast;
  /// Bytes of addresses that --rebalance needs in the arena of each rank, for any cut.
  /// Memory is taken for them when it is needed. Empty without it.
  std::vector<int64_t> reservedBytes;
  /// Seconds to choose and size the graphs of a strategy, once measured.
  double graphSeconds = 0;
  /// Ranks of the run, if that can be more than home has; 0: those of home.
  int mostRanks = 0;
  /// Bytes of the allocated arenas, of the ranks of all processes.
  std::vector<int64_t> arenas;
  /// Number of times that the graphs were replaced since the run began, resumed
  /// parts included.
  int64_t version = 0;
  /// Training and held-out documents, if they are opened before anything else.
  std::optional<std::pair<DatasetPointer, DatasetPointer>> documents;
  SampleIndexPointer data;
  SampleIndexPointer heldOut; ///< null: none
  uint64_t run = 0;           ///< of --store: the same number on all processes
  int64_t dataBytes = 0;      ///< memory of `data` and `heldOut`
  int64_t fileBytes = 0;      ///< buffers for saving and loading
  int64_t batchBytes = 0;     ///< mini-batches in flight, estimated
  int64_t programBytes = 0;   ///< the program and its libraries

  /// Largest number of tokens of a sample, by the model's positions and a
  /// rank's memory.
  int64_t sampleLimit = 0;
  BatchOptions batchOptions() const;
  /// Returns the next mini-batch to train on, padded and joined as the flags
  /// say. It has no samples at the end of the data.
  StatusOr<MiniBatch> readBatch(BatchReader &reader) const;
  /// Returns the peak memory of this process: what --memory-limit limits, and
  /// the kernels' scratch.
  int64_t peakBytes() const;
  Device &device() const { return *devices.front(); }
  const PlannedGraph &home() const { return graphs->home(); }
  /// Returns the number of ranks of the job, those without a place in the
  /// graphs included.
  int worldRanks() const {
    return mostRanks > 0 ? mostRanks : home().graph->ranks();
  }
  /// Returns true if samples are assigned to strategies by length, even if
  /// there is one strategy.
  bool hasRanges() const { return !options.ranges.empty(); }
  /// Returns true if there are measured costs. Steps are then predicted; by
  /// estimates alone they are not.
  bool hasCosts() const {
    return home().planner->costs().table().fingerprint() != 0;
  }
  /// Returns a mark of --costs for checkpoints and other processes; empty
  /// without --costs.
  std::string costsMark() const;
  /// Returns true if this process writes the files of a run: metrics and
  /// checkpoints.
  bool writesFiles() const { return ranks->hasRankZero(); }
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SESSION_H
