//===- LoadCheckpoint.cpp - Reads checkpoints from disk -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/LoadCheckpoint.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/ModelShards.h"

#include <utility>

using namespace dyna;
using namespace dyna::checkpoint;

namespace {

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

/// Loads all files of a model in shards.
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

/// Loads one file, of a checkpoint or of another program.
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
  // Also load the config if it can be read; nothing depends on it.
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

StatusOr<Checkpoint> dyna::loadStep(const std::string &path) {
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
