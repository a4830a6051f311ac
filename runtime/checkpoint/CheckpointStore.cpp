//===- CheckpointStore.cpp - Checkpoints on disk --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointStore.h"

#include "runtime/base/FileId.h"
#include "runtime/base/FileLock.h"
#include "runtime/base/JsonReader.h"
#include "runtime/base/JsonWriter.h"
#include "runtime/base/Text.h"
#include "runtime/checkpoint/ModelShards.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;

namespace {

constexpr const char *optimizerFile = "optimizer.safetensors";
constexpr const char *configFile = "config.json";
constexpr const char *stateFile = "state.json";
constexpr const char *listFile = "checkpoint.json";
constexpr const char *markFile = "dyna-unfinished";
/// The last two mark a folder as ours, and are removed last.
constexpr const char *ownFiles[] = {modelFile,  shardIndexFile, optimizerFile,
                                    configFile, stateFile,      listFile,
                                    markFile};
constexpr const char *temporaryPrefix = ".dyna-tmp-";
/// Prefix of files that reserve room for a while (`proveRoom`).
constexpr const char *roomPrefix = ".dyna-tmp-room-";
constexpr int64_t formatVersion = 1;

std::string stepPath(const std::string &directory, int64_t step) {
  return joinPath(directory, "step-" + std::to_string(step));
}

std::string fileName(const std::string &path) {
  size_t end = path.find_last_not_of('/');
  size_t begin = path.rfind('/', end);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return end == std::string::npos ? "" : path.substr(begin, end + 1 - begin);
}

void forEachName(const std::string &directory,
                 const std::function<void(const std::string &)> &visit) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error), end;
  for (; !error && entry != end; entry.increment(error))
    visit(entry->path().filename().string());
}

/// Newest first.
std::vector<int64_t> listSteps(const std::string &directory) {
  std::vector<int64_t> steps;
  forEachName(directory, [&](const std::string &name) {
    if (int64_t step = stepOfName(name); step >= 0)
      steps.push_back(step);
  });
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

/// Whether `path` is a folder, not a link to one, with files of our names in it
/// and nothing else.
bool holdsOwnFilesOnly(const std::string &path) {
  using namespace std::filesystem;
  std::error_code error;
  if (symlink_status(path, error).type() != file_type::directory)
    return false;
  bool isOwn = true;
  forEachName(path, [&](const std::string &name) {
    std::error_code ignored;
    isOwn &= (isShardName(name) ||
              std::find(std::begin(ownFiles), std::end(ownFiles), name) !=
                  std::end(ownFiles)) &&
             symlink_status(joinPath(path, name), ignored).type() ==
                 file_type::regular;
  });
  return isOwn;
}

/// Removes our files from a folder, and the folder if that was all.
void removeOwnFiles(const std::string &path) {
  forEachName(path, [&](const std::string &name) {
    if (isShardName(name))
      ::unlink(joinPath(path, name).c_str());
  });
  for (const char *name : ownFiles)
    ::unlink(joinPath(path, name).c_str());
  ::rmdir(path.c_str());
}

std::string hexText(uint64_t value) { return formatText("%016x", value); }

/// Checks one file's size and checksum against the list.
Status checkListed(const JsonValue &files, const std::string &name,
                   size_t bytes, uint64_t sum) {
  const JsonValue *entry = files.find(name);
  const JsonValue *checksum = entry ? entry->find("checksum") : nullptr;
  if (!checksum)
    return Status::invalidArgument(name + " is not listed in checkpoint.json");
  std::optional<int64_t> size = entry->findInteger("bytes");
  if (size != static_cast<int64_t>(bytes))
    return Status::invalidArgument(
        name + " has " + std::to_string(bytes) + " bytes instead of " +
        (size ? std::to_string(*size) : "an unknown number"));
  if (checksum->text != hexText(sum))
    return Status::invalidArgument(name + " does not have its checksum");
  return Status::ok();
}

Status loadTensors(const std::string &path, const JsonValue &files,
                   const char *name, SafetensorsFile &result) {
  DYNA_ASSIGN_OR_RETURN(SafetensorsFile file,
                        SafetensorsFile::open(joinPath(path, name)));
  const uint64_t sum = file.checksum();
  DYNA_RETURN_IF_ERROR(file.checkReadable());
  DYNA_RETURN_IF_ERROR(checkListed(files, name, file.bytes().size(), sum));
  result = std::move(file);
  return Status::ok();
}

/// All files of a model that lies in shards.
Status loadShards(const std::string &path, const JsonValue &files,
                  SafetensorsFile &result) {
  DYNA_ASSIGN_OR_RETURN(SafetensorsFile joined,
                        openShards(joinPath(path, shardIndexFile)));
  for (const SafetensorsFile &part : joined.parts()) {
    const uint64_t sum = part.checksum();
    DYNA_RETURN_IF_ERROR(part.checkReadable());
    DYNA_RETURN_IF_ERROR(
        checkListed(files, fileName(part.name()), part.bytes().size(), sum));
  }
  result = std::move(joined);
  return Status::ok();
}

/// What checkpoint.json says.
struct FileList {
  int64_t step = 0;
  JsonValue files; ///< name to size and checksum
};

Status checkFileName(const std::string &name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    return Status::invalidArgument(
        "checkpoint.json: expected names of files beside it, but got " +
        quoteJson(name));
  return Status::ok();
}

/// Whoever wrote a checkpoint must not choose what else is read.
Status checkNoLink(const std::string &path) {
  std::error_code error;
  auto type = std::filesystem::symlink_status(path, error).type();
  if (type == std::filesystem::file_type::symlink)
    return Status::invalidArgument(path +
                                   " is a symbolic link, expected a file");
  return Status::ok();
}

StatusOr<FileList> readList(const std::string &path) {
  std::string file = joinPath(path, listFile);
  DYNA_RETURN_IF_ERROR(checkNoLink(file));
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(file));
  StatusOr<JsonValue> list = parseJson(text);
  if (!list.isOk())
    return Status::invalidArgument("checkpoint.json: " +
                                   list.status().message());
  std::optional<int64_t> format = list->findInteger("format");
  if (format != formatVersion)
    return Status::invalidArgument(
        "checkpoint.json: expected format " + std::to_string(formatVersion) +
        (format ? ", but got " + std::to_string(*format) : ""));
  const JsonValue *files = list->find("files");
  std::optional<int64_t> step = list->findInteger("step");
  if (!files || !files->isObject() || !step || *step < 0)
    return Status::invalidArgument(
        "checkpoint.json: expected \"step\" and \"files\"");
  for (const std::string &name : files->keys)
    DYNA_RETURN_IF_ERROR(checkFileName(name));
  return FileList{*step, *files};
}

/// Whether DIR/step-N is a checkpoint of this program, whole or damaged, and
/// nothing else lies in it: only then is it ours to remove.
bool isOwnStep(const std::string &directory, int64_t step) {
  std::string path = stepPath(directory, step);
  if (!holdsOwnFilesOnly(path))
    return false;
  StatusOr<FileList> list = readList(path);
  return list.isOk() && list->step == step;
}

/// Returns true if DIR/step-N is empty, or holds the files of a checkpoint alone but no
/// readable list. It may be passed over and moved aside, but not removed.
bool isDamagedStep(const std::string &directory, int64_t step) {
  std::string path = stepPath(directory, step);
  if (isOwnStep(directory, step) || !holdsOwnFilesOnly(path))
    return false;
  auto has = [&](const char *name) { return fileExists(joinPath(path, name)); };
  // A whole one of another version of this program is not damaged.
  if (StatusOr<std::string> text = readFile(joinPath(path, listFile));
      text.isOk()) {
    StatusOr<JsonValue> list = parseJson(*text);
    std::optional<int64_t> format =
        list.isOk() ? list->findInteger("format") : std::nullopt;
    if (format && format != formatVersion)
      return false;
  }
  std::error_code error;
  return has(listFile) || has(stateFile) || has(optimizerFile) ||
         std::filesystem::is_empty(path, error);
}

/// Whether `path` is what a save has left: ours, or empty.
bool isRemains(const std::string &path) {
  if (!holdsOwnFilesOnly(path))
    return false;
  std::error_code error;
  return fileExists(joinPath(path, markFile)) || readList(path).isOk() ||
         std::filesystem::is_empty(path, error);
}

/// Where a user's link leads, once: it may lead elsewhere tomorrow.
StatusOr<std::string> resolveLink(const std::string &directory) {
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

/// Loads a step's directory, every file checked.
StatusOr<Checkpoint> loadStep(const std::string &path) {
  DYNA_ASSIGN_OR_RETURN(FileList list, readList(path));
  const JsonValue &files = list.files;
  int64_t named = stepOfName(fileName(path));
  if (named >= 0 && named != list.step)
    return Status::invalidArgument("checkpoint.json: it is of step " +
                                   std::to_string(list.step));
  Checkpoint result;
  result.path = path;
  result.step = list.step;
  for (const std::string &name : files.keys)
    DYNA_RETURN_IF_ERROR(checkNoLink(joinPath(path, name)));
  SafetensorsFile optimizer;
  DYNA_RETURN_IF_ERROR(files.find(shardIndexFile)
                           ? loadShards(path, files, result.model)
                           : loadTensors(path, files, modelFile, result.model));
  DYNA_RETURN_IF_ERROR(loadTensors(path, files, optimizerFile, optimizer));
  result.optimizer = std::move(optimizer);
  for (const std::string &name : files.keys) {
    if (name == modelFile || name == optimizerFile || isShardName(name))
      continue;
    DYNA_ASSIGN_OR_RETURN(std::string bytes, readFile(joinPath(path, name)));
    DYNA_RETURN_IF_ERROR(
        checkListed(files, name, bytes.size(), Checksum::of(bytes)));
    if (name == stateFile)
      result.state = bytes;
    if (name == configFile)
      result.config = bytes;
  }
  if (!files.find(stateFile))
    return Status::invalidArgument("state.json is not listed in "
                                   "checkpoint.json");
  return result;
}

/// One file of a checkpoint, or of somebody who knows no checkpoints.
StatusOr<Checkpoint> loadModelOnly(const std::string &path,
                                   const std::string &file) {
  DYNA_ASSIGN_OR_RETURN(SafetensorsFile model,
                        fileName(file) == shardIndexFile
                            ? openShards(file)
                            : SafetensorsFile::open(file));
  size_t slash = file.rfind('/');
  std::string folder =
      slash == std::string::npos ? "." : file.substr(0, slash + 1);
  if (fileExists(joinPath(folder, listFile))) {
    StatusOr<FileList> list = readList(folder);
    Status status = list.status();
    if (list.isOk() && fileName(file) == shardIndexFile)
      status = loadShards(folder, list->files, model);
    else if (list.isOk())
      status = checkListed(list->files, fileName(file), model.bytes().size(),
                           model.checksum());
    DYNA_RETURN_IF_ERROR(model.checkReadable());
    if (!status.isOk())
      return Status(status.code(),
                    file +
                        " is damaged, or not of the checkpoint that it lies "
                        "in (" +
                        status.message() +
                        "); use another one, or a copy in a folder without "
                        "checkpoint.json");
  }
  Checkpoint result;
  result.path = path;
  result.model = std::move(model);
  // Told beside the model, where it can be read; nothing depends on it.
  if (StatusOr<std::string> config = readFile(joinPath(folder, configFile));
      config.isOk())
    result.config = std::move(*config);
  return result;
}

StatusOr<Checkpoint> loadNewest(const std::string &directory,
                                const std::vector<int64_t> &steps) {
  std::vector<std::string> damages;
  for (int64_t step : steps) {
    std::string path = stepPath(directory, step);
    Status link = checkNoLink(path);
    StatusOr<Checkpoint> result =
        link.isOk() ? loadStep(path) : StatusOr<Checkpoint>(link);
    if (result.isOk()) {
      for (const std::string &damage : damages)
        result->notes.push_back(damage + "; using " + path + " instead");
      return result;
    }
    damages.push_back(path + " is damaged (" + result.status().message() + ")");
  }
  std::string text = directory + " holds no complete checkpoint: ";
  for (size_t i = 0; i < damages.size(); ++i)
    text += (i ? "; " : "") + damages[i];
  return Status::invalidArgument(text);
}

} // namespace

int64_t dyna::stepOfName(std::string_view name) {
  constexpr std::string_view prefix = "step-";
  if (name.substr(0, prefix.size()) != prefix)
    return -1;
  name.remove_prefix(prefix.size());
  int64_t step = 0;
  auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), step);
  bool isNumber = error == std::errc() && end == name.data() + name.size();
  return isNumber && std::to_string(step) == name ? step : -1;
}

uint64_t Checkpoint::checksum() const {
  const uint64_t parts[] = {model.checksum(),
                            optimizer ? optimizer->checksum() : 0,
                            Checksum::of(state)};
  Checksum all;
  all.update(parts, sizeof parts);
  return all.value();
}

Status Checkpoint::checkReadable() const {
  DYNA_RETURN_IF_ERROR(model.checkReadable());
  return optimizer ? optimizer->checkReadable() : Status::ok();
}

StatusOr<Checkpoint> dyna::loadCheckpoint(const std::string &path) {
  if (!isDirectory(path))
    return loadModelOnly(path, path);
  if (std::vector<int64_t> steps = listSteps(path); !steps.empty())
    return loadNewest(path, steps);
  if (fileExists(joinPath(path, listFile))) {
    StatusOr<Checkpoint> result = loadStep(path);
    if (!result.isOk())
      return Status(result.status().code(), path + " is damaged (" +
                                                result.status().message() +
                                                "); use another checkpoint");
    return result;
  }
  if (std::string file = joinPath(path, modelFile); fileExists(file))
    return loadModelOnly(path, file);
  if (std::string index = joinPath(path, shardIndexFile); fileExists(index))
    return loadModelOnly(path, index);
  return Status::invalidArgument(
      path + " holds no checkpoint; expected step-N directories, as --save "
             "writes them, a model.safetensors, or shards with their "
             "model.safetensors.index.json");
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Newer steps than the run's own are not its own.
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
    // Damaged ones may be newer: the run was resumed from before them.
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
      files.push_back(std::move(file)); // never closed, so that none appears
    }
  return Status::ok();
}

void CheckpointStore::removeFirst(std::vector<int64_t> bytes) {
  removedFirst_ = std::move(bytes);
}

/// Until there is room for one more; the newest whole one always stays.
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
    removeOwnFiles(temporary); // of a save that failed and could not clean up
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
  // The mark that HuggingFace's loader asks for.
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
  // From here on the list marks the folder.
  if (::unlink(mark.c_str()) != 0)
    return fileFailure("remove", mark, errno);
  return syncDirectory(path);
}

/// Renames the complete directory to its name, in one step even if one of ours
/// stands there: a damaged one, or that of the same run.
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
  // A file system that cannot exchange: the older checkpoints bridge the gap.
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

/// Keeps `step` and the newest before it that are ours and whole. Damaged ones
/// among them stay too, and count for nothing. So do newer ones: they are
/// damaged, or `open` would have refused, and somebody may mend them.
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
