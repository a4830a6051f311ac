//===- AttentiveModel.h - A model whose pairs weigh much --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_ATTENTIVEMODEL_H
#define DYNA_TEST_RUNTIME_PLANNER_ATTENTIVEMODEL_H

#include "runtime/abi/Random.h"
#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanOptions.h"
#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dyna {

using Lengths = std::vector<int64_t>;

/// With attention, whose pairs weigh as much as tokens at a length of 32.
inline plan::Manifest attentive() {
  plan::Manifest manifest = tinyManifest();
  for (plan::LayerKind &kind : *manifest.mutable_kinds()) {
    kind.set_attention_flops_per_pair(kind.flops_per_token() / 16);
    kind.set_causal(true);
  }
  manifest.set_hash(manifestHash(manifest));
  return manifest;
}

inline const Model &model() {
  static const Model model = *Model::create(attentive());
  return model;
}

/// On a device whose calls cost little to start, so that work counts.
inline CostModel costs(double launch = 1e-9) {
  auto table = CostTable::parse(
      "device { name: \"slow\" f64_flops: 1e9 f32_flops: 1e9 bf16_flops: 1e9 "
      "bytes_per_second: 1e15 launch_seconds: " +
          std::to_string(launch) + " }",
      "test");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return *CostModel::create(model(), *table);
}

inline ExecutableGraph graphOf(const std::string &strategy) {
  return *ExecutableGraph::create(model(), *parseStrategy(strategy));
}

inline Lengths randomLengths(uint64_t seed, int count, int64_t longest) {
  Lengths lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back(
        1 + static_cast<int64_t>(dyna_mix64(seed * 1000 + i) % longest));
  return lengths;
}

inline PlanOptions optionsOf(Batching batching, int64_t maxTokens) {
  PlanOptions options;
  options.batching = batching;
  options.maxTokensPerMicroBatch = maxTokens;
  options.schedule = Schedule::OneForwardOneBackward;
  return options;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_ATTENTIVEMODEL_H
