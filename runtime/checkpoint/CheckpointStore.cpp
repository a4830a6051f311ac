//===- CheckpointStore.cpp - Writes checkpoints to disk -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointStore.h"

#include "runtime/base/file/DiskFull.h"
#include "runtime/base/file/FileId.h"
#include "runtime/base/file/FileLock.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/checkpoint/ModelShards.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;
using namespace dyna::checkpoint;

/// Returns the target of a user's link. It is read once, because the link may
/// change later.
static StatusOr<std::string> resolveLink(const std::string &directory) {
  namespace fs = std::filesystem;
  fs::path path = directory;
  if (!path.has_filename() && path.has_parent_path())
    path = path.parent_path(); // "link/"
  std::error_code error;
  if (!fs::is_symlink(path, error))
    return directory;
  fs::path target = fs::canonical(path, error);
  if (error || !fs::is_directory(target))
    return Status::invalidArgument(
        directory + " is a symbolic link to " +
        fs::read_symlink(path, error).string() +
        ", which is no folder: make one there, or name another one");
  return target.string();
}

/// Fails if the directory has valid or unknown steps newer than the run's,
/// which belong to another run.
static Status checkNewerSteps(const std::string &directory,
                              int64_t resumedStep) {
  for (int64_t step : listSteps(directory)) {
    if (step <= resumedStep)
      break;
    std::string name = "step-" + std::to_string(step);
    if (!isOwnStep(directory, step) && !isDamagedStep(directory, step))
      return Status::invalidArgument(
          directory + " holds " + name +
          ", which is no checkpoint that this program knows and is left alone; "
          "move it away or choose another directory");
    // Damaged checkpoints may be newer: the run was resumed from an older one.
    if (resumedStep < 0 || loadStep(stepPath(directory, step)).isOk())
      return Status::invalidArgument(
          directory + " already holds " + name +
          " of another run; continue it with --resume " + directory +
          " or choose another directory");
  }
  return Status::ok();
}

/// Makes the directory if it is not there, and locks it.
static StatusOr<Descriptor> lockDirectory(const std::string &directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return fileFailure("create", directory, error.value());
  Descriptor lock(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0)
    return fileFailure("open", directory, errno);
  if (!lockDescriptor(lock.get()))
    return Status::invalidArgument(
        "another run (" + describeLockHolder(lock.get()) + ") saves into " +
        directory + " at this moment; stop it or choose another directory");
  if (!isAt(lock.get(), directory))
    return Status::invalidArgument(
        directory + " was replaced while it was opened; try again");
  return lock;
}

/// Removes what saves that were broken off have left.
static void removeRemains(const std::string &directory) {
  std::vector<std::string> remains;
  forEachName(directory, [&](const std::string &name) {
    if (name.rfind(temporaryPrefix, 0) == 0)
      remains.push_back(joinPath(directory, name));
  });
  for (const std::string &path : remains) {
    std::error_code error;
    const bool isRoom = fileName(path).rfind(roomPrefix, 0) == 0 &&
                        std::filesystem::symlink_status(path, error).type() ==
                            std::filesystem::file_type::regular;
    if (isRoom)
      ::unlink(path.c_str());
    else if (isRemains(path))
      removeOwnFiles(path);
  }
}

StatusOr<CheckpointStore> CheckpointStore::open(const std::string &given,
                                                int64_t resumedStep,
                                                int64_t keep) {
  DYNA_ASSIGN_OR_RETURN(std::string resolved, resolveLink(given));
  const std::string &directory = resolved;
  if (fileExists(joinPath(directory, listFile)))
    return Status::invalidArgument(
        directory +
        " is a checkpoint itself; give the folder that it lies in, or another "
        "one");
  DYNA_ASSIGN_OR_RETURN(Descriptor lock, lockDirectory(directory));
  CheckpointStore store(directory, std::move(lock), keep);
  DYNA_RETURN_IF_ERROR(checkNewerSteps(directory, resumedStep));
  removeRemains(directory);
  return store;
}

/// Makes the directory again if it was removed or replaced since the last save.
Status CheckpointStore::reopen() {
  if (isAt(lock_.get(), directory_))
    return Status::ok();
  const bool isThere = isDirectory(directory_);
  if (isThere && countOwn() > 0)
    return Status::invalidArgument(
        directory_ + " was replaced during the run and holds checkpoints of "
                     "another one: move them away");
  DYNA_ASSIGN_OR_RETURN(lock_, lockDirectory(directory_));
  notes_.push_back(
      directory_ +
      (isThere ? " was replaced during the run: checkpoints go to what stands "
                 "there now"
               : " was removed during the run, with the checkpoints in it: it "
                 "was made again"));
  whole_.clear();
  return Status::ok();
}

int64_t CheckpointStore::countOwn() const {
  int64_t count = 0;
  for (int64_t step : listSteps(directory_))
    count += isOwnStep(directory_, step) ? 1 : 0;
  return count;
}

Status CheckpointStore::proveRoom(const std::vector<int64_t> &bytes,
                                  int64_t count) const {
  std::vector<OutputFile> files;
  int64_t before = 0;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t size : bytes) {
      std::string name = roomPrefix + std::to_string(files.size());
      DYNA_ASSIGN_OR_RETURN(auto file,
                            OutputFile::replace(joinPath(directory_, name)));
      DYNA_RETURN_IF_ERROR(file.reserve(size, before));
      before += size;
      files.push_back(std::move(file)); // never closed, so that no file appears
    }
  // Count the folder, mark, index of shards, config, state and list of files.
  constexpr int64_t smallFiles = 6;
  return checkInodes(directory_, static_cast<uint64_t>(count * smallFiles));
}

void CheckpointStore::removeFirst(std::vector<int64_t> bytes) {
  removedFirst_ = std::move(bytes);
}

/// Removes checkpoints until there is room for one more; the newest complete
/// one always stays.
void CheckpointStore::makeRoom(int64_t step) {
  auto lacksRoom = [&] {
    return proveRoom(removedFirst_, 1).code() == StatusCode::ResourceExhausted;
  };
  if (removedFirst_.empty() || !lacksRoom())
    return;
  std::vector<int64_t> own; // newest first
  bool isAnyWhole = false;
  for (int64_t other : listSteps(directory_)) {
    if (other >= step || !isOwnStep(directory_, other))
      continue;
    if (isAnyWhole)
      own.push_back(other);
    isAnyWhole |= isWhole(other);
  }
  for (; !own.empty() && lacksRoom(); own.pop_back())
    removeStep(own.back());
}

Status CheckpointStore::save(const CheckpointContents &contents) {
  if (contents.step < 0)
    return Status::internal("a checkpoint of step " +
                            std::to_string(contents.step));
  DYNA_RETURN_IF_ERROR(reopen());
  makeRoom(contents.step);
  std::string temporary =
      joinPath(directory_, temporaryPrefix + std::to_string(contents.step));
  if (isRemains(temporary))
    removeOwnFiles(
        temporary); // remains of a save that failed and could not clean up
  std::error_code error;
  bool isNew = std::filesystem::create_directory(temporary, error);
  if (!isNew && !error)
    return Status::invalidArgument(
        "cannot save into " + temporary +
        ": what stands there is no remains of a save; move it away");
  if (!isNew)
    return fileFailure("create", temporary, error.value());
  Status status = writeFiles(temporary, contents);
  if (status.isOk())
    status = publish(temporary, contents.step);
  if (!status.isOk()) {
    removeOwnFiles(temporary);
    return status;
  }
  whole_[contents.step] = true;
  removeOld(contents.step);
  return Status::ok();
}

Status CheckpointStore::writeFiles(const std::string &path,
                                   const CheckpointContents &contents) const {
  JsonObject files;
  using Writer = std::function<Status(OutputFile &)>;
  auto writeOne = [&](const std::string &name, const Writer &write) -> Status {
    DYNA_ASSIGN_OR_RETURN(OutputFile file,
                          OutputFile::create(joinPath(path, name)));
    DYNA_RETURN_IF_ERROR(write(file));
    DYNA_RETURN_IF_ERROR(file.close());
    files.add(name, JsonObject()
                        .add("bytes", file.bytes())
                        .add("checksum", hexText(file.checksum())));
    return Status::ok();
  };
  std::string mark = joinPath(path, markFile);
  DYNA_RETURN_IF_ERROR(OutputFile::create(mark).status());
  // HuggingFace's loader requires this metadata.
  const Metadata metadata = {{"format", "pt"}};
  std::vector<TensorView> model = contents.model;
  sortAsInFiles(model);
  const std::vector<size_t> ends = dealToShards(model, contents.shardBytes);
  for (size_t shard = 0, begin = 0; shard < ends.size();
       begin = ends[shard++]) {
    const std::vector<TensorView> own(model.begin() + begin,
                                      model.begin() + ends[shard]);
    DYNA_RETURN_IF_ERROR(
        writeOne(ends.size() == 1 ? modelFile : shardName(shard, ends.size()),
                 [&](OutputFile &file) {
                   return writeSafetensors(file, own, metadata, contents.give);
                 }));
  }
  if (ends.size() > 1)
    DYNA_RETURN_IF_ERROR(writeOne(shardIndexFile, [&](OutputFile &file) {
      return file.write(shardIndexText(model, ends));
    }));
  DYNA_RETURN_IF_ERROR(writeOne(optimizerFile, [&](OutputFile &file) {
    return writeSafetensors(file, contents.optimizer, {}, contents.give);
  }));
  if (!contents.config.empty())
    DYNA_RETURN_IF_ERROR(writeOne(configFile, [&](OutputFile &file) {
      return file.write(contents.config);
    }));
  DYNA_RETURN_IF_ERROR(writeOne(
      stateFile, [&](OutputFile &file) { return file.write(contents.state); }));
  const std::string whole = JsonObject()
                                .add("format", formatVersion)
                                .add("step", contents.step)
                                .add("files", files)
                                .text() +
                            "\n";
  DYNA_RETURN_IF_ERROR(
      writeOne(listFile, [&](OutputFile &file) { return file.write(whole); }));
  // From here on the list marks the folder as complete.
  if (::unlink(mark.c_str()) != 0)
    return fileFailure("remove", mark, errno);
  return syncDirectory(path);
}

/// Renames the complete directory to its name in one step. This replaces one of
/// our own directories, which is damaged or belongs to the same run.
Status CheckpointStore::publish(const std::string &temporary, int64_t step) {
  std::string path = stepPath(directory_, step);
  struct stat facts;
  if (::lstat(path.c_str(), &facts) == 0 && isDamagedStep(directory_, step))
    DYNA_RETURN_IF_ERROR(moveAside(path));
  if (::lstat(path.c_str(), &facts) != 0) {
    if (fileOperations().rename(temporary.c_str(), path.c_str()) != 0)
      return fileFailure("rename", temporary, errno);
    return syncDirectory(directory_);
  }
  if (!isOwnStep(directory_, step))
    return Status::invalidArgument(
        "cannot save " + path +
        ": what stands there is no checkpoint of this program; move it away");
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_EXCHANGE) == 0) {
    removeOwnFiles(temporary);
    return syncDirectory(directory_);
  }
  // If the file system cannot exchange names, older checkpoints bridge the gap.
  std::string aside = temporary + "-old";
  if (fileOperations().rename(path.c_str(), aside.c_str()) != 0)
    return fileFailure("rename", path, errno);
  if (fileOperations().rename(temporary.c_str(), path.c_str()) != 0)
    return fileFailure("rename", temporary, errno);
  removeOwnFiles(aside);
  return syncDirectory(directory_);
}

/// Gives what is left of a checkpoint another name, under which it is none.
Status CheckpointStore::moveAside(const std::string &path) {
  std::string aside = path + "-damaged";
  for (int i = 2; fileExists(aside); ++i)
    aside = path + "-damaged-" + std::to_string(i);
  if (fileOperations().rename(path.c_str(), aside.c_str()) != 0)
    return fileFailure("rename", path, errno);
  notes_.push_back(path + " was damaged and is now " + aside);
  return Status::ok();
}

/// Removes a checkpoint of ours. Renamed first: a kill in between leaves no half
/// of a checkpoint under its name.
void CheckpointStore::removeStep(int64_t step) {
  std::string aside = joinPath(
      directory_, temporaryPrefix + std::string("old-") + std::to_string(step));
  if (::rename(stepPath(directory_, step).c_str(), aside.c_str()) == 0)
    removeOwnFiles(aside);
}

/// Reads it, once.
bool CheckpointStore::isWhole(int64_t step) {
  auto [known, isNew] = whole_.try_emplace(step, false);
  if (isNew)
    known->second = loadStep(stepPath(directory_, step)).isOk();
  return known->second;
}

/// Keeps `step` and the newest checkpoints before it that are ours and
/// undamaged. Damaged ones stay too, without being counted. So do newer ones:
/// they are damaged, or `open` would have refused, and may be repaired.
void CheckpointStore::removeOld(int64_t step) {
  int64_t kept = 1;
  for (int64_t other : listSteps(directory_)) {
    if (other >= step || !isOwnStep(directory_, other))
      continue;
    if (kept < keep_) {
      kept += isWhole(other);
      continue;
    }
    removeStep(other);
  }
}
