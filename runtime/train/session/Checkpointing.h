//===- Checkpointing.h - Saves, loads and resumes runs ----------*- C++ -*-===//
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
// "pruned" has the sparsity, weights and survivors of a run that has pruned weights. Its
// "event" is the number of steps before the last event. A run that resumes at this very
// step does not repeat the event.
//
// "frozen" names the layers that --freeze has frozen, as --freeze does. "layer_norms" has the
// norms of the last gradients, if an event before the next step needs them.
//
// "loss_weights" has the weights of the losses of a model with exits (SavedWeights.h).
//
// Masters are the model's tensors, stored as its manifest says;
// optimizer state is stored under "<parameter>.m" and "<parameter>.v". The mask of a
// parameter that is pruned is "<parameter>.mask", beside them: a byte for each weight.
// Scores, if the run keeps some, are "<parameter>.score".
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_CHECKPOINTING_H
#define DYNA_RUNTIME_TRAIN_CHECKPOINTING_H

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/data/BatchReader.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/train/flags/CommandLine.h"
#include "runtime/train/flags/FreezeList.h"
#include "runtime/train/flags/PruneFlag.h"
#include "runtime/train/session/SavedWeights.h"

namespace dyna {

struct RunState {
  int64_t step = 0; ///< steps done
  int64_t seed = 0;
  std::string modelHash;
  DataCursor cursor;
  int64_t skipped = 0; ///< steps that were not finite; part of `step`
  std::string heldOut; ///< fingerprint of held-out data; empty: none
  std::string costs;   ///< fingerprint of --costs; empty: none
  int64_t version = 0; ///< times that the graphs were replaced
  PrunedSoFar pruned;
  FrozenSoFar frozen;
  SavedWeights lossWeights; ///< of a model with exits
  std::vector<std::string> arguments;

  std::string toJson() const;
  static StatusOr<RunState> fromJson(const std::string &text);
};

/// Returns a text of everything that a saved run depends on, independent of the
/// device.
std::string modelHashText(const Model &model);

/// Returns an upper bound of the bytes of each file of a checkpoint. Many
/// shards of a model are counted as a few files with the same sum.
std::vector<int64_t> checkpointBytes(const Model &model, int64_t shardBytes);

/// Returns the bytes of buffers for saving or loading, beside the arena. They
/// hold a few pieces of tensors, and the largest tensor that is stored in
/// another form than in the arena.
int64_t checkpointBufferBytes(const Model &model);

/// Writes a checkpoint of everything that the ranks have. Without a store, this
/// process only hands over its part. `shardBytes` is as in CheckpointContents.
/// `endToken` is the token that ends every document, if known.
Status saveRun(CheckpointStore *store, RankTeam &ranks, const RunState &state,
               int64_t shardBytes, std::optional<int32_t> endToken);

/// Returns warnings about the checkpoint for the user. They concern what was
/// ignored when it was found, another configuration, and parameters that are
/// rounded to this model's type.
std::vector<std::string> loadingNotes(const Checkpoint &checkpoint,
                                      const Model &model);

/// Fills the masters from the checkpoint's model. If the checkpoint is of
/// another model, the error names the first tensor that differs. Adds warnings
/// for the user: about a NaN or infinite value, and about exits and adapters
/// that begin anew although the checkpoint has others.
Status loadModel(const Checkpoint &checkpoint, RankTeam &ranks,
                 std::vector<std::string> &warnings);

/// Fills the optimizer state from the checkpoint. Fails if it has none.
Status loadOptimizer(const Checkpoint &checkpoint, RankTeam &ranks);

/// Fills the masks of a run that prunes. Without masks in the checkpoint, all
/// weights are alive. Fails if other parameters have masks there than here.
Status loadMasks(const Checkpoint &checkpoint, RankTeam &ranks);

/// Fills the scores of a run that keeps some. Without scores in the checkpoint, all are 0.
Status loadScores(const Checkpoint &checkpoint, RankTeam &ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHECKPOINTING_H
