//===- CheckpointStore.cpp - Checkpoints on disk --------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointStore.h"

#include "runtime/data/Json.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/file.h>
#include <unistd.h>

using namespace dyna;

namespace {

constexpr const char *modelFile = "model.safetensors";
constexpr const char *optimizerFile = "optimizer.safetensors";
constexpr const char *configFile = "config.json";
constexpr const char *stateFile = "state.json";
constexpr const char *listFile = "checkpoint.json";
constexpr int64_t formatVersion = 1;

std::string stepPath(const std::string &directory, int64_t step) {
  return joinPath(directory, "step-" + std::to_string(step));
}

/// The number of "step-N"; -1 for other names.
int64_t stepOfName(std::string_view name) {
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

void removeAll(const std::string &path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string hexText(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(value));
  return text;
}

/// Checks one file's size and checksum against the list.
Status checkListed(const JsonValue &files, const std::string &name,
                   std::string_view bytes) {
  const JsonValue *entry = files.find(name);
  const JsonValue *checksum = entry ? entry->find("checksum") : nullptr;
  if (!checksum)
    return Status::invalidArgument(name + " is not listed in checkpoint.json");
  std::optional<int64_t> size = entry->findInteger("bytes");
  if (size != static_cast<int64_t>(bytes.size()))
    return Status::invalidArgument(
        name + " has " + std::to_string(bytes.size()) + " bytes instead of " +
        (size ? std::to_string(*size) : "an unknown number"));
  if (checksum->text != hexText(Checksum::of(bytes)))
    return Status::invalidArgument(name + " does not have its checksum");
  return Status::ok();
}

Status loadTensors(const std::string &path, const JsonValue &files,
                   const char *name, SafetensorsFile &result) {
  StatusOr<SafetensorsFile> file = SafetensorsFile::open(joinPath(path, name));
  if (!file.isOk())
    return file.status();
  DYNA_RETURN_IF_ERROR(checkListed(files, name, file->bytes()));
  result = std::move(*file);
  return Status::ok();
}

/// Loads a step's directory, every file checked.
StatusOr<Checkpoint> loadStep(const std::string &path) {
  StatusOr<std::string> text = readFile(joinPath(path, listFile));
  if (!text.isOk())
    return text.status();
  StatusOr<JsonValue> list = parseJson(*text);
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
  int64_t named = stepOfName(fileName(path));
  if (named >= 0 && named != *step)
    return Status::invalidArgument("checkpoint.json: it is of step " +
                                   std::to_string(*step));
  Checkpoint result;
  result.path = path;
  result.step = *step;
  SafetensorsFile optimizer;
  DYNA_RETURN_IF_ERROR(loadTensors(path, *files, modelFile, result.model));
  DYNA_RETURN_IF_ERROR(loadTensors(path, *files, optimizerFile, optimizer));
  result.optimizer = std::move(optimizer);
  for (const std::string &name : files->keys) {
    if (name == modelFile || name == optimizerFile)
      continue;
    StatusOr<std::string> bytes = readFile(joinPath(path, name));
    if (!bytes.isOk())
      return bytes.status();
    DYNA_RETURN_IF_ERROR(checkListed(*files, name, *bytes));
    if (name == stateFile)
      result.state = *bytes;
  }
  if (!files->find(stateFile))
    return Status::invalidArgument("state.json is not listed in "
                                   "checkpoint.json");
  return result;
}

StatusOr<Checkpoint> loadModelOnly(const std::string &path,
                                   const std::string &file) {
  StatusOr<SafetensorsFile> model = SafetensorsFile::open(file);
  if (!model.isOk())
    return model.status();
  Checkpoint result;
  result.path = path;
  result.model = std::move(*model);
  return result;
}

StatusOr<Checkpoint> loadNewest(const std::string &directory,
                                const std::vector<int64_t> &steps) {
  std::vector<std::string> damages;
  for (int64_t step : steps) {
    std::string path = stepPath(directory, step);
    StatusOr<Checkpoint> result = loadStep(path);
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
  if (fileExists(joinPath(path, "model.safetensors.index.json")))
    return Status::invalidArgument(
        path + " holds a model in several shards, which is not supported; "
               "save it again as one model.safetensors");
  return Status::invalidArgument(
      path + " holds no checkpoint; expected step-N directories, as --save "
             "writes them, or a model.safetensors");
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

StatusOr<CheckpointStore> CheckpointStore::open(const std::string &directory,
                                                int64_t resumedStep) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return fileFailure("create", directory, error.value());
  int lock = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0)
    return fileFailure("open", directory, errno);
  CheckpointStore store(directory, lock);
  // File systems without locks fail in other ways; they get no protection.
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Status::invalidArgument(
        "another run saves into " + directory +
        " at this moment; stop it or choose another directory");
  for (int64_t step : listSteps(directory)) {
    if (step <= resumedStep)
      break;
    std::string path = stepPath(directory, step);
    // Damaged ones may be newer: the run was resumed from before them.
    if (loadStep(path).isOk())
      return Status::invalidArgument(
          directory + " already holds step-" + std::to_string(step) +
          " of another run; continue it with --resume " + directory +
          " or choose another directory");
  }
  std::vector<std::string> remains;
  forEachName(directory, [&](const std::string &name) {
    if (name.compare(0, 5, ".tmp-") == 0)
      remains.push_back(joinPath(directory, name));
  });
  for (const std::string &path : remains)
    removeAll(path);
  return store;
}

CheckpointStore::CheckpointStore(CheckpointStore &&other) noexcept
    : directory_(std::move(other.directory_)),
      lock_(std::exchange(other.lock_, -1)) {}

CheckpointStore &CheckpointStore::operator=(CheckpointStore &&other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(lock_, other.lock_);
  return *this;
}

CheckpointStore::~CheckpointStore() {
  if (lock_ >= 0)
    ::close(lock_);
}

Status CheckpointStore::save(const CheckpointContents &contents) {
  if (contents.step < 0)
    return Status::internal("a checkpoint of step " +
                            std::to_string(contents.step));
  std::string temporary =
      joinPath(directory_, ".tmp-" + std::to_string(contents.step));
  removeAll(temporary);
  Status status = writeFiles(temporary, contents);
  if (status.isOk())
    status = publish(temporary, contents.step);
  if (!status.isOk()) {
    removeAll(temporary);
    return status;
  }
  removeOld(contents.step);
  return Status::ok();
}

Status CheckpointStore::writeFiles(const std::string &path,
                                   const CheckpointContents &contents) const {
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (error)
    return fileFailure("create", path, error.value());
  std::string list = "{\"format\": " + std::to_string(formatVersion) +
                     ", \"step\": " + std::to_string(contents.step) +
                     ", \"files\": {";
  using Writer = std::function<Status(OutputFile &)>;
  auto writeOne = [&](const std::string &name, const Writer &write) -> Status {
    StatusOr<OutputFile> file = OutputFile::create(joinPath(path, name));
    if (!file.isOk())
      return file.status();
    DYNA_RETURN_IF_ERROR(write(*file));
    DYNA_RETURN_IF_ERROR(file->close());
    list += (list.back() == '{' ? "" : ", ") + quoteJson(name) +
            ": {\"bytes\": " + std::to_string(file->bytes()) +
            ", \"checksum\": \"" + hexText(file->checksum()) + "\"}";
    return Status::ok();
  };
  // The mark that HuggingFace's loader asks for.
  const Metadata metadata = {{"format", "pt"}};
  DYNA_RETURN_IF_ERROR(writeOne(modelFile, [&](OutputFile &file) {
    return writeSafetensors(file, contents.model, metadata);
  }));
  DYNA_RETURN_IF_ERROR(writeOne(optimizerFile, [&](OutputFile &file) {
    return writeSafetensors(file, contents.optimizer);
  }));
  if (!contents.config.empty())
    DYNA_RETURN_IF_ERROR(writeOne(configFile, [&](OutputFile &file) {
      return file.write(contents.config);
    }));
  DYNA_RETURN_IF_ERROR(writeOne(
      stateFile, [&](OutputFile &file) { return file.write(contents.state); }));
  list += "}}\n";
  std::string whole = list;
  DYNA_RETURN_IF_ERROR(
      writeOne(listFile, [&](OutputFile &file) { return file.write(whole); }));
  return syncDirectory(path);
}

/// Renames the complete directory to its name, in one step even if a damaged
/// one of that name stands there.
Status CheckpointStore::publish(const std::string &temporary,
                                int64_t step) const {
  std::string path = stepPath(directory_, step);
  if (fileExists(path)) {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(),
                    RENAME_EXCHANGE) == 0) {
      removeAll(temporary);
      return syncDirectory(directory_);
    }
    // A file system that cannot exchange: the older checkpoints bridge the gap.
    std::string aside = temporary + "-old";
    removeAll(aside);
    if (fileOperations().rename(path.c_str(), aside.c_str()) != 0)
      return fileFailure("rename", path, errno);
    if (fileOperations().rename(temporary.c_str(), path.c_str()) != 0)
      return fileFailure("rename", temporary, errno);
    removeAll(aside);
    return syncDirectory(directory_);
  }
  if (fileOperations().rename(temporary.c_str(), path.c_str()) != 0)
    return fileFailure("rename", temporary, errno);
  return syncDirectory(directory_);
}

/// Keeps `step` and the newest before it. Newer ones can only be damaged, or
/// `open` would have refused.
void CheckpointStore::removeOld(int64_t step) const {
  bool hasPrevious = false;
  for (int64_t other : listSteps(directory_)) {
    if (other == step)
      continue;
    if (other < step && !hasPrevious) {
      hasPrevious = true;
      continue;
    }
    // Renamed first: a kill in between leaves no half of a checkpoint under its
    // name.
    std::string aside =
        joinPath(directory_, ".tmp-old-" + std::to_string(other));
    if (::rename(stepPath(directory_, other).c_str(), aside.c_str()) == 0)
      removeAll(aside);
  }
}
