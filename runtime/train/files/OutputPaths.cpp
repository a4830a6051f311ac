//===- OutputPaths.cpp - Checks that no output is an input ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/OutputPaths.h"

#include "runtime/base/file/FileId.h"
#include "runtime/base/file/FileLock.h"
#include "runtime/base/file/Files.h"
#include "runtime/checkpoint/ModelShards.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/train/files/PlanFiles.h"

#include <fcntl.h>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace dyna {
namespace {

struct NamedPath {
  const char *flag;
  std::string path;
};

std::vector<NamedPath> outputsOf(const TrainOptions &options) {
  std::vector<NamedPath> outputs;
  for (NamedPath output : {NamedPath{"--metrics", options.metrics},
                           {"--trace", options.trace},
                           {"--profile", options.profile},
                           {"--print-grad-norms", options.gradNorms},
                           {"--counts", options.counts},
                           {"--write-lengths", options.writeLengths},
                           {"--algorithms", options.algorithms}})
    if (!output.path.empty())
      outputs.push_back(std::move(output));
  return outputs;
}

/// Returns the folder of an output, for any spelling of its path.
std::filesystem::path folderOf(const std::string &path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::filesystem::path folder =
      std::filesystem::weakly_canonical(absolute, error).parent_path();
  return error ? absolute.parent_path() : folder;
}

bool isBelow(std::filesystem::path folder, const std::string &top) {
  std::error_code error;
  if (!std::filesystem::is_directory(top, error))
    return false;
  for (;; folder = folder.parent_path()) {
    if (std::filesystem::equivalent(folder, top, error))
      return true;
    if (folder == folder.parent_path())
      return false;
  }
}

/// Fails if the file would lie in a checkpoint, or in a folder of data. The
/// next run would read it there as data.
Status checkFolder(const char *flag, const std::string &path,
                   const std::filesystem::path &folder,
                   const TrainOptions &options) {
  std::error_code error;
  if (std::filesystem::exists(folder / "checkpoint.json", error))
    return Status::invalidArgument(std::string(flag) + " would write " + path +
                                   " into a checkpoint: name a file outside "
                                   "of it");
  for (const auto *list : {&options.data, &options.heldOut})
    for (const std::string &data : *list)
      if (isBelow(folder, data))
        return Status::invalidArgument(
            std::string(flag) + " would write " + path +
            " into the folder of data " + data +
            ", which is read as a whole: name another place");
  return Status::ok();
}

/// Fails if another run writes this file of metrics now, and so has locked it.
/// (Files of this run are opened and locked later.)
Status checkUnlocked(const NamedPath &output) {
  int descriptor = ::open(output.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Status::ok(); // opening it for writing reports the error
  Status status = Status::ok();
  if (!lockDescriptor(descriptor))
    status = Status::invalidArgument(
        std::string(output.flag) + " would write over " + output.path +
        ", to which another run (" + describeLockHolder(descriptor) +
        ") writes at this moment; stop it or choose another file");
  ::close(descriptor);
  return status;
}

/// A file that is not to be written, and what it is.
struct Input {
  std::string what, path;
};

/// Returns the input files. Folders with checkpoints are not searched, because
/// nothing is written there. A model that another program saved is no
/// checkpoint.
std::vector<Input> inputsOf(const TrainOptions &options) {
  std::vector<Input> inputs = {{"this program", "/proc/self/exe"},
                               {"read by --load", options.load},
                               {"read by --costs", options.costs}};
  if (!options.load.empty()) {
    std::vector<std::string> files = {"model.safetensors", "config.json",
                                      shardIndexFile};
    const std::string index = joinPath(options.load, shardIndexFile);
    // Loading reports an index that cannot be read.
    if (auto shards = readShardNames(index); shards.isOk())
      files.insert(files.end(), shards->begin(), shards->end());
    for (const std::string &file : files)
      inputs.push_back(
          {"part of the model of --load", joinPath(options.load, file)});
  }
  for (const std::string &path : dataFiles(options.data))
    inputs.push_back({"read by --data", path});
  for (const std::string &path : dataFiles(options.heldOut))
    inputs.push_back({"read by --held-out", path});
  return inputs;
}

} // namespace

Status checkOutputPaths(const TrainOptions &options) {
  std::vector<NamedPath> outputs = outputsOf(options);
  std::map<FileId, const NamedPath *> existing;
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (areOneOutput(outputs[i].path, outputs[j].path))
        return Status::invalidArgument(
            std::string(outputs[j].flag) + " and " + outputs[i].flag +
            " both write " + outputs[i].path + ": give each a file of its own");
    DYNA_RETURN_IF_ERROR(checkFolder(outputs[i].flag, outputs[i].path,
                                     folderOf(outputs[i].path), options));
    if (auto id = fileIdOf(outputs[i].path)) {
      existing[*id] = &outputs[i];
      if (outputs[i].path != options.metrics)
        DYNA_RETURN_IF_ERROR(checkUnlocked(outputs[i]));
    }
  }
  if (!options.save.empty())
    DYNA_RETURN_IF_ERROR(checkFolder("--save", options.save,
                                     folderOf(options.save + "/x"), options));
  if (!options.dumpPlans.empty()) {
    DYNA_RETURN_IF_ERROR(checkFolder("--dump-plans", options.dumpPlans,
                                     folderOf(options.dumpPlans + "/x"),
                                     options));
    if (Status status = checkPlansBehind(options.dumpPlans, options.steps);
        !status.isOk())
      return Status(status.code(), "--dump-plans: " + status.message());
  }
  if (existing.empty())
    return Status::ok();
  for (const Input &input : inputsOf(options)) {
    auto id = fileIdOf(input.path);
    auto output = id ? existing.find(*id) : existing.end();
    if (output != existing.end())
      return Status::invalidArgument(std::string(output->second->flag) +
                                     " would write over " +
                                     output->second->path + ", which is " +
                                     input.what + ": name another file");
  }
  return Status::ok();
}

} // namespace dyna
