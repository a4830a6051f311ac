//===- CheckpointFolder.h - Recognizes folders of checkpoints ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names of the files of a checkpoint, and marks by which this program
// recognizes its own folders (CheckpointStore.h). Readers and writers of
// checkpoints share them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
#define DYNA_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H

#include "runtime/base/error/Status.h"
#include "runtime/base/text/Json.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dyna {

/// Returns the number of a folder's name "step-N"; -1 for other names.
int64_t stepOfName(std::string_view name);

namespace checkpoint {

inline constexpr const char *optimizerFile = "optimizer.safetensors";
inline constexpr const char *configFile = "config.json";
inline constexpr const char *stateFile = "state.json";
inline constexpr const char *listFile = "checkpoint.json";
inline constexpr const char *markFile = "dyna-unfinished";
inline constexpr const char *temporaryPrefix = ".dyna-tmp-";
/// Prefix of files that reserve room for a while (`proveRoom`).
inline constexpr const char *roomPrefix = ".dyna-tmp-room-";
inline constexpr int64_t formatVersion = 1;

std::string stepPath(const std::string &directory, int64_t step);
/// Returns the last part of a path, without trailing slashes.
std::string fileName(const std::string &path);
/// Calls `visit` with the name of each entry; never if there is no such folder.
void forEachName(const std::string &directory,
                 const std::function<void(const std::string &)> &visit);
/// Returns the steps of folders "step-N", newest first.
std::vector<int64_t> listSteps(const std::string &directory);
/// Removes our files from a folder, and the folder if it is then empty.
void removeOwnFiles(const std::string &path);
/// Returns a checksum in the form of checkpoint.json.
std::string hexText(uint64_t value);

/// Contents of a checkpoint.json.
struct FileList {
  int64_t step = 0;
  JsonValue files; ///< name to size and checksum
};

StatusOr<FileList> readList(const std::string &path);
/// Fails if the path is a symbolic link. The author of a checkpoint must not
/// decide what else is read.
Status checkNoLink(const std::string &path);

/// Returns true if DIR/step-N is a checkpoint of this program, whole or
/// damaged, and has no other files. Only then may it be removed.
bool isOwnStep(const std::string &directory, int64_t step);
/// Returns true if DIR/step-N is empty, or has only files of a checkpoint but
/// no readable list. It may be skipped and renamed, but not removed.
bool isDamagedStep(const std::string &directory, int64_t step);
/// Returns true if `path` is the remains of a save: our files, or an empty
/// folder.
bool isRemains(const std::string &path);

} // namespace checkpoint
} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
