//===- Checkpoints.h - Checkpoints that follow from their step --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_CHECKPOINT_CHECKPOINTS_H
#define DYNA_TEST_RUNTIME_CHECKPOINT_CHECKPOINTS_H

#include "runtime/abi/Random.h"
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <algorithm>
#include <cstring>

namespace dyna::test {

/// Contents that follow from the step alone, so that what was loaded can be
/// checked against its step.
struct Example {
  std::vector<float> weights;
  std::vector<double> moments;
  CheckpointContents contents;

  explicit Example(int64_t step, size_t size = 1000)
      : weights(size), moments(size / 2) {
    for (size_t i = 0; i < size; ++i)
      weights[i] = float(dyna_mix64(uint64_t(step) << 32 | i) >> 40);
    for (size_t i = 0; i < moments.size(); ++i)
      moments[i] = double(step) + double(i);
    contents.step = step;
    contents.model = {{"w", DType::F32, {int64_t(size)}, weights.data()}};
    contents.optimizer = {
        {"m.w", DType::F64, {int64_t(moments.size())}, moments.data()}};
    contents.state = "{\"step\": " + std::to_string(step) + "}";
    contents.config = "{}";
  }
};

inline bool isIntact(const Checkpoint &checkpoint) {
  Example example(checkpoint.step,
                  checkpoint.model.tensors().empty()
                      ? 0
                      : size_t(checkpoint.model.tensors()[0].shape[0]));
  const TensorView *w = checkpoint.model.find("w");
  const TensorView *m =
      checkpoint.optimizer ? checkpoint.optimizer->find("m.w") : nullptr;
  return w && m && checkpoint.state == example.contents.state &&
         std::memcmp(w->data, example.weights.data(),
                     example.weights.size() * sizeof(float)) == 0 &&
         std::memcmp(m->data, example.moments.data(),
                     example.moments.size() * sizeof(double)) == 0;
}

inline CheckpointStore mustOpen(const std::string &directory,
                                int64_t resumed = -1) {
  StatusOr<CheckpointStore> store = CheckpointStore::open(directory, resumed);
  if (!store.isOk()) {
    ADD_FAILURE() << store.status().message();
    std::abort();
  }
  return std::move(*store);
}

inline std::vector<std::string> namesIn(const std::string &directory) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

inline void flipBit(const std::string &path, size_t bit) {
  std::string bytes = readAll(path);
  ASSERT_LT(bit / 8, bytes.size());
  bytes[bit / 8] ^= char(1 << (bit % 8));
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_CHECKPOINT_CHECKPOINTS_H
