//===- ModelShards.h - Reads a model that lies in several files -*- C++ -*-===//
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

/// Returns the names of the shards in an index, sorted. Fails unless the index has a
/// `weight_map` with names of files beside it. An index has at most 64 MiB and names at
/// most 4,096 shards.
StatusOr<std::vector<std::string>> readShardNames(const std::string &index);

/// Opens all shards of an index as one file. Fails if a shard is missing or damaged.
/// Fails, too, unless every shard holds exactly the tensors that the index names for it.
StatusOr<SafetensorsFile> openShards(const std::string &index);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_MODELSHARDS_H
