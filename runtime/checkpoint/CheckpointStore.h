//===- CheckpointStore.h - Writes checkpoints to disk -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A directory of checkpoints. Once the first save is done, it has a complete
// checkpoint at every moment:
//
//     DIR/step-200/model.safetensors      logical tensors of the model; if it
//                                         is large, shards and an index
//                                         (ModelShards.h)
//     DIR/step-200/optimizer.safetensors  other tensors that training needs
//     DIR/step-200/config.json            the family's config, if it has one
//     DIR/step-200/state.json             step, seed, data cursor: the caller's
//     DIR/step-200/checkpoint.json        sizes and checksums of those files
//     DIR/step-300/...
//
// A save fills DIR/.dyna-tmp-300, flushes it to the disk and renames it to
// DIR/step-300. Only then are older ones removed. A kill at any moment leaves
// at most a `.dyna-tmp-*` behind, which the next `open` removes.
//
// The folder may have files of others. Only a folder that carries our mark is
// removed. It must be no link, have a name as above, and have only files of
// these names. There are two marks. A save writes `dyna-unfinished` first. A
// finished step-N has a checkpoint.json of this format and step. A step-N whose
// checkpoint.json is damaged or missing is skipped. It is renamed if a new
// checkpoint needs the name.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_CHECKPOINTSTORE_H
#define DYNA_RUNTIME_CHECKPOINT_CHECKPOINTSTORE_H

#include "runtime/checkpoint/Safetensors.h"

#include <map>

namespace dyna {

/// Contents of one save. The tensors' memory is read only during `save`. For
/// tensors without memory, `give` is called. Those of the model come first,
/// then those of the optimizer, each list in the order of sortAsInFiles.
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

/// Writes checkpoints. Holds a lock on the directory, so that two runs cannot
/// mix their checkpoints. The lock ends with the process, however it ends.
class CheckpointStore {
public:
  /// Creates the directory if it does not exist, and removes remains of broken
  /// saves. A symbolic link is followed once: `directory()` is its target.
  /// After each save the newest `keep` whole checkpoints stay.
  ///
  /// `resumedStep` is the step at which this run started (-1: a new run). Newer
  /// checkpoints belong to another run and are an error. Damaged ones are
  /// allowed if a resumed run went back before them.
  static StatusOr<CheckpointStore>
  open(const std::string &given, int64_t resumedStep = -1, int64_t keep = 2);

  CheckpointStore(CheckpointStore &&other) = default;
  CheckpointStore &operator=(CheckpointStore &&other) = default;

  /// Checks that `count` checkpoints with files of these sizes can be written
  /// into the directory, beside its contents. Leaves nothing behind.
  Status proveRoom(const std::vector<int64_t> &bytes, int64_t count = 1) const;
  /// Returns the number of this program's checkpoints in the directory, with
  /// damaged ones.
  int64_t countOwn() const;
  /// Changes later saves. If a save finds no room for files of these sizes, it
  /// removes the oldest checkpoints first, all but the newest whole one.
  void removeFirst(std::vector<int64_t> bytes);

  /// Writes DIR/step-N, then removes old checkpoints. After a failure DIR has
  /// its former content, except for removals that `removeFirst` allows. Creates
  /// DIR again if it was removed. Renames a damaged checkpoint with the name of
  /// the new one.
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
