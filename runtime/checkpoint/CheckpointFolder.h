//===- CheckpointFolder.h - What lies in folders of checkpoints -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names of the files of a checkpoint, and marks by which a folder is recognized as one
// that this program wrote (CheckpointStore.h). Whoever reads and whoever writes
// checkpoints shares them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
#define DYNA_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H

#include "runtime/base/Json.h"
#include "runtime/base/Status.h"

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
/// Returns the last part of a path, without slashes behind it.
std::string fileName(const std::string &path);
/// Calls `visit` with the name of each entry; with none if there is no such folder.
void forEachName(const std::string &directory,
                 const std::function<void(const std::string &)> &visit);
/// Returns the steps of folders "step-N", newest first.
std::vector<int64_t> listSteps(const std::string &directory);
/// Removes our files from a folder, and the folder if that was all.
void removeOwnFiles(const std::string &path);
/// Returns a checksum as checkpoint.json has it.
std::string hexText(uint64_t value);

/// Contents of a checkpoint.json.
struct FileList {
  int64_t step = 0;
  JsonValue files; ///< name to size and checksum
};

StatusOr<FileList> readList(const std::string &path);
/// Fails if the path is a symbolic link. Whoever wrote a checkpoint must not choose what
/// else is read.
Status checkNoLink(const std::string &path);

/// Returns true if DIR/step-N is a checkpoint of this program, whole or damaged, and
/// nothing else lies in it. Only then may it be removed.
bool isOwnStep(const std::string &directory, int64_t step);
/// Returns true if DIR/step-N is empty, or holds the files of a checkpoint alone but no
/// readable list. It may be passed over and moved aside, but not removed.
bool isDamagedStep(const std::string &directory, int64_t step);
/// Returns true if `path` is what a save has left: ours, or empty.
bool isRemains(const std::string &path);

} // namespace checkpoint
} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
