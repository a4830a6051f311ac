//===- LoadCheckpoint.h - Reads checkpoints from disk -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the checkpoints of CheckpointStore.h, and models from elsewhere. Every
// file of a checkpoint is compared with the sizes and checksums of its
// checkpoint.json.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_LOADCHECKPOINT_H
#define DYNA_RUNTIME_CHECKPOINT_LOADCHECKPOINT_H

#include "runtime/checkpoint/Safetensors.h"

#include <optional>
#include <string>
#include <vector>

namespace dyna {

/// A checkpoint that was found complete and undamaged.
struct Checkpoint {
  std::string path; ///< its own directory or file
  int64_t step = 0;
  SafetensorsFile model;
  /// Missing if `path` is a model to load, not a run to resume.
  std::optional<SafetensorsFile> optimizer;
  std::string state;
  std::string config; ///< contents of config.json; may be empty
  /// Messages for the user: newer checkpoints that cannot be read were passed over.
  std::vector<std::string> notes;

  bool canResume() const { return optimizer.has_value(); }
  /// Returns the checksum of all data that a run takes from it. Reads the
  /// files.
  uint64_t checksum() const;
  /// Fails if an earlier read could not get all bytes.
  Status checkReadable() const;
};

/// Loads the newest complete checkpoint of a directory of checkpoints. `path`
/// may also name one step's directory, or a .safetensors file. A directory with
/// a model.safetensors or with shards (ModelShards.h) is read as HuggingFace
/// writes it. If such a file has a checkpoint.json beside it, the file is
/// compared with it.
///
/// A checkpoint is not trusted: no name and no link in it may lead out of its
/// folder.
StatusOr<Checkpoint> loadCheckpoint(const std::string &path);

/// Loads the directory of one step, and checks every file.
StatusOr<Checkpoint> loadStep(const std::string &path);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_LOADCHECKPOINT_H
