//===- OpenDataset.cpp - Opens data sets by name --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/OpenDataset.h"

#include "runtime/data/FileContent.h"
#include "runtime/data/Lengths.h"
#include "runtime/data/Sources.h"

#include <cerrno>
#include <cstring>

using namespace dyna;

namespace {

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool startsWith(const std::string &text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

/// Splits "A,B" unless a file of that very name exists.
std::vector<std::string> splitPaths(const std::vector<std::string> &paths) {
  std::vector<std::string> result;
  for (const std::string &path : paths) {
    if (fileExists(path) || startsWith(path, "synthetic:")) {
      result.push_back(path);
      continue;
    }
    size_t begin = 0;
    while (true) {
      size_t end = path.find(',', begin);
      result.push_back(path.substr(begin, end - begin));
      if (end == std::string::npos)
        break;
      begin = end + 1;
    }
  }
  return result;
}

/// Returns true if `inputs` becomes `targets` when its last "inputs" is
/// replaced.
bool isPair(const std::string &inputs, const std::string &targets) {
  size_t at = inputs.rfind("inputs");
  if (at == std::string::npos)
    return false;
  std::string expected = inputs;
  return expected.replace(at, 6, "targets") == targets;
}

StatusOr<DatasetPointer> openOne(const std::string &path,
                                 const DataOptions &options) {
  if (path.empty())
    return Status::invalidArgument(
        "an empty name was given for the data; expected a directory, a text "
        "file, a .jsonl file or an indexed data set (.idx and .bin)");
  if (startsWith(path, "synthetic:"))
    return openSynthetic(path, options);
  if (isDirectory(path))
    return TextDataset::open(path, options);
  if (!megatronPrefix(path).empty())
    return MegatronDataset::open(path, options);
  if (!fileExists(path))
    return Status::invalidArgument(
        "cannot open " + path + ": " + std::strerror(errno) +
        "; give an existing directory of text files, text file, .jsonl file "
        "or the prefix of an indexed data set (PREFIX.idx and PREFIX.bin)");
  DYNA_ASSIGN_OR_RETURN(FileContent content,
                        lookAtContent(path, options.fields));
  if (content.kind == FileContent::Kind::Foreign)
    return Status::invalidArgument(path + " is " + content.name +
                                   ", which is not read; " + content.advice);
  bool isLines = content.kind == FileContent::Kind::JsonLines;
  for (std::string_view ending : {".jsonl", ".ndjson", ".json"})
    isLines = isLines || endsWith(path, ending);
  return isLines ? JsonLinesDataset::open(path, options)
                 : TextDataset::open(path, options);
}

} // namespace

std::vector<std::string>
dyna::dataFiles(const std::vector<std::string> &paths) {
  std::vector<std::string> files;
  for (const std::string &path : splitPaths(paths)) {
    constexpr std::string_view lengths = "synthetic:lengths=";
    if (startsWith(path, lengths)) {
      std::string file = path.substr(lengths.size());
      files.push_back(file.substr(0, file.rfind(":documents=")));
    } else if (isDirectory(path)) {
      // If a folder cannot be listed, opening it reports the reason.
      if (StatusOr<TextFolder> folder = listTextFolder(path); folder.isOk())
        for (const TextFile &file : folder->files)
          files.push_back(joinPath(path, file.name));
    } else if (std::string prefix = megatronPrefix(path); !prefix.empty()) {
      files.insert(files.end(), {prefix + ".idx", prefix + ".bin"});
    } else {
      files.push_back(path);
    }
  }
  return files;
}

StatusOr<DatasetPointer>
dyna::openDataset(const std::vector<std::string> &paths,
                  const DataOptions &options) {
  if (options.vocabulary <= 0)
    return Status::invalidArgument("expected a positive vocabulary, but got " +
                                   std::to_string(options.vocabulary));
  if (paths.empty())
    return Status::invalidArgument(
        "no data was given; expected a directory, a text file, a .jsonl file "
        "or an indexed data set (.idx and .bin)");
  std::vector<std::string> names = splitPaths(paths);
  std::vector<DatasetPointer> parts;
  DataOptions left = options;
  bool hasLines = false;
  for (size_t i = 0; i < names.size(); ++i) {
    DYNA_ASSIGN_OR_RETURN(DatasetPointer part, openOne(names[i], left));
    if (const auto *lines =
            dynamic_cast<const JsonLinesDataset *>(part.get())) {
      left.skipBadLines -= lines->skipped();
      hasLines = true;
    }
    std::string here = megatronPrefix(names[i]);
    std::string before = i ? megatronPrefix(names[i - 1]) : "";
    bool isReversed = !here.empty() && isPair(here, before);
    if (!here.empty() && (isReversed || isPair(before, here))) {
      DatasetPointer inputs = parts.back(), targets = part;
      if (isReversed)
        std::swap(inputs, targets);
      DYNA_ASSIGN_OR_RETURN(
          part, pairDatasets(std::move(inputs), std::move(targets)));
      parts.pop_back();
    }
    parts.push_back(part);
  }
  if (options.fields.isGiven && !hasLines)
    return Status::invalidArgument(
        "--fields names members of lines of JSON, but " + paths.front() +
        (paths.size() > 1 ? " and the others have" : " has") +
        " none; leave it out");
  return concatenate(std::move(parts));
}
