//===- Checkpointing.h - Saving, loading and resuming runs ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The run's side of checkpoints: which tensors there are, and what state.json
// holds:
//
//     {"format": 1, "step": 200, "seed": 1, "model_hash": "0123456789abcdef",
//      "cursor": {...}, "skipped": 0, "held_out": "", "costs": "", "arguments": ["--data=/corpus", "--lr=0.0003", ...]}
//
// "version" counts the replacements of the run's graphs. It is there if there were any; the
// arguments then name the strategy of that moment.
//
// "pruned" has the sparsity, weights and survivors of a run that has pruned weights.
//
// Masters are the model's tensors, stored as its manifest says;
// optimizer state is stored under "<parameter>.m" and "<parameter>.v". The mask of a
// parameter that is pruned is "<parameter>.mask", beside them: a byte for each weight.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_CHECKPOINTING_H
#define DYNA_RUNTIME_TRAIN_CHECKPOINTING_H

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/data/BatchReader.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/train/flags/CommandLine.h"
#include "runtime/train/flags/PruneFlag.h"

namespace dyna {

struct RunState {
  int64_t step = 0; ///< steps done
  int64_t seed = 0;
  std::string modelHash;
  DataCursor cursor;
  int64_t skipped = 0; ///< steps that were not finite; part of `step`
  std::string heldOut; ///< fingerprint of what is held out; empty: nothing
  std::string costs;   ///< fingerprint of those of --costs; empty: none
  int64_t version = 0; ///< times that the graphs were replaced
  PrunedSoFar pruned;
  std::vector<std::string> arguments;

  std::string toJson() const;
  static StatusOr<RunState> fromJson(const std::string &text);
};

/// Of what a saved run depends on, whatever device it runs on.
std::string modelHashText(const Model &model);

/// Bytes of the files of a checkpoint, or a little more. Many shards of a model count as
/// a few files of as many bytes.
std::vector<int64_t> checkpointBytes(const Model &model, int64_t shardBytes);

/// Memory that saving or loading takes for a while, beside the arena: a few
/// pieces of tensors, and the largest that is stored otherwise than it is kept.
int64_t checkpointBufferBytes(const Model &model);

/// Writes a checkpoint of everything that the ranks have; without a store, this
/// process only hands over its part.
/// `shardBytes` is as in CheckpointContents.
/// `endToken`: that of every document, where it is known.
Status saveRun(CheckpointStore *store, RankTeam &ranks, const RunState &state,
               int64_t shardBytes, std::optional<int32_t> endToken);

/// What the configuration beside the checkpoint says otherwise than that of
/// this program: "n_head is 6 there and 5 here". Fields that say how a model
/// computes, where both have them; the tensors alone may fit both. Empty: the
/// same, or not known.
std::string otherConfig(const Checkpoint &checkpoint, const Model &model);

/// What the user should know about the checkpoint: what was passed over when it
/// was found, and whether its parameters are rounded to those of this model.
std::vector<std::string> loadingNotes(const Checkpoint &checkpoint,
                                      const Model &model);

/// Fills the masters from the checkpoint's model. A checkpoint of another model
/// is an error that names the first tensor that differs. `notFinite`: the first
/// parameter with a value that is NaN or infinite, else empty.
Status loadModel(const Checkpoint &checkpoint, RankTeam &ranks,
                 std::string &notFinite);

/// What the user should know about it.
std::string notFiniteWarning(const Checkpoint &checkpoint,
                             const std::string &notFinite);

/// Fills the optimizer state too.
Status loadOptimizer(const Checkpoint &checkpoint, RankTeam &ranks);

/// Fills the masks of a run that prunes. A checkpoint without any leaves all weights
/// alive. Fails if other parameters have masks there than here.
Status loadMasks(const Checkpoint &checkpoint, RankTeam &ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHECKPOINTING_H
