//===- CheckpointFolder.cpp - Recognizes folders of checkpoints -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointFolder.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/checkpoint/ModelShards.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <unistd.h>

using namespace dyna;
using namespace dyna::checkpoint;

/// The last two mark a folder as ours, and are removed last.
static constexpr const char *ownFiles[] = {
    modelFile, shardIndexFile, optimizerFile, configFile,
    stateFile, listFile,       markFile};

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

std::string checkpoint::stepPath(const std::string &directory, int64_t step) {
  return joinPath(directory, "step-" + std::to_string(step));
}

std::string checkpoint::fileName(const std::string &path) {
  size_t end = path.find_last_not_of('/');
  size_t begin = path.rfind('/', end);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return end == std::string::npos ? "" : path.substr(begin, end + 1 - begin);
}

void checkpoint::forEachName(
    const std::string &directory,
    const std::function<void(const std::string &)> &visit) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error), end;
  for (; !error && entry != end; entry.increment(error))
    visit(entry->path().filename().string());
}

std::vector<int64_t> checkpoint::listSteps(const std::string &directory) {
  std::vector<int64_t> steps;
  forEachName(directory, [&](const std::string &name) {
    if (int64_t step = stepOfName(name); step >= 0)
      steps.push_back(step);
  });
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

/// Returns true if `path` is a folder, not a link to one, with files of our names in it
/// and nothing else.
static bool holdsOwnFilesOnly(const std::string &path) {
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

void checkpoint::removeOwnFiles(const std::string &path) {
  forEachName(path, [&](const std::string &name) {
    if (isShardName(name))
      ::unlink(joinPath(path, name).c_str());
  });
  for (const char *name : ownFiles)
    ::unlink(joinPath(path, name).c_str());
  ::rmdir(path.c_str());
}

std::string checkpoint::hexText(uint64_t value) {
  return formatText("%016x", value);
}

static Status checkFileName(const std::string &name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    return Status::invalidArgument(
        "checkpoint.json: expected names of files beside it, but got " +
        quoteJson(name));
  return Status::ok();
}

Status checkpoint::checkNoLink(const std::string &path) {
  std::error_code error;
  auto type = std::filesystem::symlink_status(path, error).type();
  if (type == std::filesystem::file_type::symlink)
    return Status::invalidArgument(path +
                                   " is a symbolic link, expected a file");
  return Status::ok();
}

StatusOr<FileList> checkpoint::readList(const std::string &path) {
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

bool checkpoint::isOwnStep(const std::string &directory, int64_t step) {
  std::string path = stepPath(directory, step);
  if (!holdsOwnFilesOnly(path))
    return false;
  StatusOr<FileList> list = readList(path);
  return list.isOk() && list->step == step;
}

bool checkpoint::isDamagedStep(const std::string &directory, int64_t step) {
  std::string path = stepPath(directory, step);
  if (isOwnStep(directory, step) || !holdsOwnFilesOnly(path))
    return false;
  auto has = [&](const char *name) { return fileExists(joinPath(path, name)); };
  // A complete checkpoint of another version of this program is not damaged.
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

bool checkpoint::isRemains(const std::string &path) {
  if (!holdsOwnFilesOnly(path))
    return false;
  std::error_code error;
  return fileExists(joinPath(path, markFile)) || readList(path).isOk() ||
         std::filesystem::is_empty(path, error);
}
