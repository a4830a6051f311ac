//===- ModelShards.cpp - Splits models into several files -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/ModelShards.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <map>

namespace dyna {
namespace {

constexpr size_t mostIndexBytes = size_t(64) << 20, mostShards = 4096;

/// Names of tensors, by the shard that holds them.
using ShardMap = std::map<std::string, std::vector<std::string>>;

Status bad(const std::string &index, const std::string &what) {
  return Status::invalidArgument(index + ": " + what);
}

/// Returns true for a plain name: the author of an index must not choose which
/// other files are read.
bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

StatusOr<ShardMap> readIndex(const std::string &index) {
  ShardMap shards;
  {
    DYNA_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(index));
    if (file.bytes().size() > mostIndexBytes)
      return bad(index, formatText("it has %d bytes, expected at most %d",
                                   file.bytes().size(), mostIndexBytes));
  }
  // Read the file a second time, now that its size is known to be limited.
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(index));
  StatusOr<JsonValue> json = parseJson(text);
  if (!json.isOk())
    return bad(index, json.status().message());
  const JsonValue *map = json->find("weight_map");
  if (!map || !map->isObject() || map->keys.empty())
    return bad(index, "expected \"weight_map\", an object from names of "
                      "tensors to names of files");
  for (size_t i = 0; i < map->keys.size(); ++i) {
    const JsonValue &shard = map->items[i];
    if (shard.kind != JsonValue::Kind::String || !isPlainName(shard.text))
      return bad(index, "expected the name of a file beside it for tensor " +
                            quoteJson(excerpt(map->keys[i])) + ", but got " +
                            (shard.isString() ? quoteJson(excerpt(shard.text))
                                              : jsonKindName(shard.kind)));
    shards[shard.text].push_back(map->keys[i]);
    if (shards.size() > mostShards)
      return bad(index, formatText("it names more than %d files", mostShards));
  }
  return shards;
}

/// Fails unless a shard holds exactly the tensors that the index expects there.
Status checkShard(const std::string &index, const SafetensorsFile &shard,
                  std::vector<std::string> expected) {
  for (const std::string &name : expected)
    if (!shard.find(name))
      return bad(index, "expected tensor " + quoteJson(excerpt(name)) + " in " +
                            shard.name() + ", which does not hold it");
  std::sort(expected.begin(), expected.end());
  for (const TensorView &tensor : shard.tensors())
    if (!std::binary_search(expected.begin(), expected.end(), tensor.name))
      return bad(index, "it does not name " + shard.name() + " for tensor " +
                            quoteJson(excerpt(tensor.name)) +
                            ", which lies there");
  return Status::ok();
}

} // namespace

std::string shardName(size_t shard, size_t count) {
  return formatText("model-%05d-of-%05d.safetensors", shard + 1, count);
}

bool isShardName(std::string_view name) {
  constexpr std::string_view begin = "model-", middle = "-of-",
                             end = ".safetensors";
  auto take = [&](std::string_view word) {
    const bool isThere = name.substr(0, word.size()) == word;
    name.remove_prefix(isThere ? word.size() : 0);
    return isThere;
  };
  auto takeNumber = [&] {
    constexpr size_t fewest = 5;
    const size_t digits =
        std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits >= fewest;
  };
  return take(begin) && takeNumber() && take(middle) && takeNumber() &&
         name == end;
}

std::vector<size_t> dealToShards(const std::vector<TensorView> &tensors,
                                 int64_t limit) {
  std::vector<size_t> ends;
  int64_t filled = 0, all = 0;
  for (const TensorView &tensor : tensors)
    all += tensorBytes(tensor.type, tensor.shape).value_or(0);
  // Two neighbouring shards hold more than the limit together, so there are at
  // most `mostShards`.
  if (limit > 0)
    limit = std::max(limit, all / (static_cast<int64_t>(mostShards) / 2) + 1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t bytes =
        tensorBytes(tensors[i].type, tensors[i].shape).value_or(0);
    const bool isFull = limit > 0 && filled > 0 && bytes > limit - filled;
    if (isFull)
      ends.push_back(i);
    filled = (isFull ? 0 : filled) + bytes;
  }
  ends.push_back(tensors.size());
  return ends;
}

std::string shardIndexText(const std::vector<TensorView> &tensors,
                           const std::vector<size_t> &ends) {
  int64_t bytes = 0;
  JsonObject map;
  size_t shard = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    while (i >= ends[shard])
      ++shard;
    bytes += tensorBytes(tensors[i].type, tensors[i].shape).value_or(0);
    map.add(tensors[i].name, shardName(shard, ends.size()));
  }
  return JsonObject()
             .add("metadata", JsonObject().add("total_size", bytes))
             .add("weight_map", JsonText::raw(map.text("\n  ")))
             .text("\n ") +
         "\n";
}

StatusOr<std::vector<std::string>> readShardNames(const std::string &index) {
  DYNA_ASSIGN_OR_RETURN(ShardMap shards, readIndex(index));
  std::vector<std::string> names;
  for (const auto &shard : shards)
    names.push_back(shard.first);
  return names;
}

StatusOr<SafetensorsFile> openShards(const std::string &index) {
  DYNA_ASSIGN_OR_RETURN(ShardMap shards, readIndex(index));
  const size_t slash = index.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : index.substr(0, slash);
  std::vector<SafetensorsFile> parts;
  for (auto &[name, expected] : shards) {
    const std::string path = joinPath(folder, name);
    if (!fileExists(path))
      return bad(index, "it names " + quoteJson(excerpt(name)) +
                            ", which is not beside it: all " +
                            std::to_string(shards.size()) +
                            " files of the model are needed");
    DYNA_ASSIGN_OR_RETURN(SafetensorsFile part, SafetensorsFile::open(path));
    DYNA_RETURN_IF_ERROR(checkShard(index, part, std::move(expected)));
    parts.push_back(std::move(part));
  }
  return SafetensorsFile::join(std::move(parts), index);
}

} // namespace dyna
