//===- AttendingModel.h - A small model of long samples ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_ATTENDINGMODEL_H
#define DYNA_TEST_RUNTIME_PLANNER_ATTENDINGMODEL_H

#include "runtime/planner/request/PlanOptions.h"
#include "test/runtime/executor/TinyModel.h"

namespace dyna {

/// The tiny model with so many positions, whose blocks attend.
inline Model attendingModel(bool isCausal = true, int64_t flopsPerPair = 64) {
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_facts()->set_positions(1 << 14);
  plan::LayerKind *block = manifest.mutable_kinds(1);
  block->set_attention_flops_per_pair(flopsPerPair);
  block->set_causal(isCausal);
  block->set_key_bytes(64);
  block->set_key_gradient_bytes(64);
  manifest.set_hash(manifestHash(manifest));
  return *Model::create(manifest);
}

/// Returns options that leave slices of samples of that model to the planner.
inline PlanOptions automatic(Schedule schedule = Schedule::Adaptive) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 4096;
  options.longestSample = 1 << 14;
  options.schedule = schedule;
  options.inFlight = 8;
  options.slices.policy = SlicePolicy::Auto;
  return options;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_ATTENDINGMODEL_H
