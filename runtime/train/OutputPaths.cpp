//===- OutputPaths.cpp - Outputs are no inputs ----------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OutputPaths.h"

#include "runtime/data/Dataset.h"
#include "runtime/files/FileId.h"

#include <map>

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
                           {"--print-grad-norms", options.gradNorms},
                           {"--counts", options.counts}})
    if (!output.path.empty())
      outputs.push_back(std::move(output));
  return outputs;
}

/// Checkpoints that are folders are not looked into: logs may lie in them.
std::vector<NamedPath> inputsOf(const TrainOptions &options) {
  std::vector<NamedPath> inputs = {{"--load", options.load},
                                   {"--costs", options.costs}};
  for (const std::string &path : dataFiles(options.data))
    inputs.push_back({"--data", path});
  for (const std::string &path : dataFiles(options.heldOut))
    inputs.push_back({"--held-out", path});
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
    if (auto id = fileIdOf(outputs[i].path))
      existing[*id] = &outputs[i];
  }
  if (existing.empty())
    return Status::ok();
  for (const NamedPath &input : inputsOf(options)) {
    auto id = fileIdOf(input.path);
    auto output = id ? existing.find(*id) : existing.end();
    if (output != existing.end())
      return Status::invalidArgument(
          std::string(output->second->flag) + " would write over " +
          output->second->path + ", which is read by " + input.flag +
          ": name another file");
  }
  return Status::ok();
}

} // namespace dyna
