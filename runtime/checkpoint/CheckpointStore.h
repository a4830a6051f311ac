//===- CheckpointStore.h - Writes checkpoints to disk -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A directory of checkpoints, at every moment with a complete one in it once
// the first save is done:
//
//   DIR/step-200/model.safetensors      logical tensors of the model; if it is
//                                       large, shards and an index (ModelShards.h)
//   DIR/step-200/optimizer.safetensors  what else training needs of each
//   DIR/step-200/config.json            the family's config, if it has one
//   DIR/step-200/state.json             step, seed, data cursor: the caller's
//   DIR/step-200/checkpoint.json        sizes and checksums of those files
//   DIR/step-300/...
//
// A save fills DIR/.dyna-tmp-300, flushes it to the disk and renames it to
// DIR/step-300; only then are older ones removed. A kill at any moment leaves a
// `.dyna-tmp-*` behind at worst, which the next `open` removes.
//
// The folder may hold what others wrote. Only what carries our mark is removed: a
// folder (no link) named as above that holds files of these names alone, and one of
// two marks. They are `dyna-unfinished`, which a save writes first, and a
// checkpoint.json of this format, for step-N of this step. A step-N whose
// checkpoint.json is damaged or gone is passed over, and renamed where it is in the
// way of a new one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_CHECKPOINTSTORE_H
#define DYNA_RUNTIME_CHECKPOINT_CHECKPOINTSTORE_H

#include "runtime/checkpoint/Safetensors.h"

#include <map>

namespace dyna {

/// What one save writes. The tensors' memory is read during `save` only; those
/// without memory are asked for, first those of the model, then those of the
/// optimizer, each list as sortAsInFiles has it.
struct CheckpointContents {
  int64_t step = 0;
  std::vector<TensorView> model;
  int64_t shardBytes =
      0; ///< of the model, at most about so many in a file; 0: any
  std::vector<TensorView> optimizer;
  GiveTensor give;    ///< null if all tensors have memory
  std::string state;  ///< JSON
  std::string config; ///< JSON; empty: none
};

/// The writing side. Holds a lock on the directory, so that two runs cannot mix
/// their checkpoints; the lock ends with the process, however it ends.
class CheckpointStore {
public:
  /// Makes the directory if it is not there and removes remains of broken
  /// saves. A symbolic link is followed once: `directory()` is where it leads.
  /// `resumedStep` is the step at which this run started (-1: a new run): newer
  /// checkpoints belong to another run and are an error, unless they are
  /// damaged ones that a resumed run steps back from. After each save the
  /// newest `keep` that are whole stay.
  static StatusOr<CheckpointStore>
  open(const std::string &given, int64_t resumedStep = -1, int64_t keep = 2);

  CheckpointStore(CheckpointStore &&other) = default;
  CheckpointStore &operator=(CheckpointStore &&other) = default;

  /// Proves that `count` checkpoints with files of these sizes can be written
  /// into the directory, beside what is there; leaves nothing behind.
  Status proveRoom(const std::vector<int64_t> &bytes, int64_t count = 1) const;
  /// Checkpoints of this program in the directory, damaged ones included.
  int64_t countOwn() const;
  /// From now on a save that finds no room for files of these sizes removes the
  /// oldest checkpoints first, all but the newest whole one.
  void removeFirst(std::vector<int64_t> bytes);

  /// Writes DIR/step-N, then removes what is too old. After a failure DIR holds
  /// what it held before, but for what `removeFirst` allows. Makes DIR again if it
  /// was removed. A damaged checkpoint at the name of the new one is renamed.
  Status save(const CheckpointContents &contents);
  /// Returns notes for the user about the saves so far, each once.
  std::vector<std::string> takeNotes() { return std::exchange(notes_, {}); }

  const std::string &directory() const { return directory_; }

private:
  CheckpointStore(std::string directory, Descriptor lock, int64_t keep)
      : directory_(std::move(directory)), lock_(std::move(lock)), keep_(keep) {}

  Status reopen();
  void makeRoom(int64_t step);
  bool isWhole(int64_t step);

  Status writeFiles(const std::string &path,
                    const CheckpointContents &contents) const;
  Status publish(const std::string &temporary, int64_t step);
  Status moveAside(const std::string &path);
  void removeStep(int64_t step);
  void removeOld(int64_t step);

  std::string directory_;
  Descriptor lock_; ///< of the directory
  int64_t keep_ = 2;
  std::vector<int64_t> removedFirst_; ///< sizes of files; empty: not allowed
  std::vector<std::string> notes_;
  std::map<int64_t, bool> whole_; ///< steps that were looked at, or saved
};

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_CHECKPOINTSTORE_H
