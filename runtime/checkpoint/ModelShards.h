//===- ModelShards.h - Splits models into several files ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// HuggingFace saves a large model as several safetensors files, the shards, and
// one index that names the shard of each tensor:
//
//   DIR/model.safetensors.index.json
//       {"metadata": {...}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
//   DIR/model-00001-of-00002.safetensors
//   DIR/model-00002-of-00002.safetensors
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_MODELSHARDS_H
#define DYNA_RUNTIME_CHECKPOINT_MODELSHARDS_H

#include "runtime/checkpoint/Safetensors.h"

namespace dyna {

/// File name of the index.
inline constexpr const char *shardIndexFile = "model.safetensors.index.json";

/// File name of a model that lies in one file.
inline constexpr const char *modelFile = "model.safetensors";

/// Returns "model-00002-of-00003.safetensors" for shard 1 of 3.
std::string shardName(size_t shard, size_t count);
/// Returns true for names that `shardName` makes.
bool isShardName(std::string_view name);

/// Deals tensors to shards in their order, as HuggingFace does. A shard has
/// tensors of up to `limit` bytes; a larger tensor has a shard of its own. Each
/// element is the end of a shard's tensors. There is one shard if `limit` is 0.
/// The time is linear in the tensors.
std::vector<size_t> dealToShards(const std::vector<TensorView> &tensors,
                                 int64_t limit);

/// Returns the text of an index for dealt tensors.
std::string shardIndexText(const std::vector<TensorView> &tensors,
                           const std::vector<size_t> &ends);

/// Returns the names of the shards in an index, sorted. Fails unless the index
/// has a `weight_map` with names of files in its folder. An index has at most
/// 64 MiB and names at most 4,096 shards.
StatusOr<std::vector<std::string>> readShardNames(const std::string &index);

/// Opens all shards of an index as one file. Fails if a shard is missing or
/// damaged. Fails, too, unless every shard has exactly the tensors that the
/// index names for it.
StatusOr<SafetensorsFile> openShards(const std::string &index);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_MODELSHARDS_H
