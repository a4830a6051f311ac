//===- DescribeManifest.h - Describes a manifest for people and tools -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_DESCRIBEMANIFEST_H
#define DYNA_RUNTIME_PLAN_DESCRIBEMANIFEST_H

#include "runtime/plan/model/Model.h"

#include <string>

namespace dyna {

/// Returns a readable page: the model, its layers and parameters, and the
/// memory of a micro-batch of `tokens` tokens under each recomputation mode.
std::string describeManifest(const Model &model, int64_t tokens);

/// Returns the whole manifest in the JSON of protocol buffers. Fields have the
/// names of Manifest.proto, and 64-bit numbers are strings. Any library of
/// protocol buffers reads it.
std::string manifestToJson(const Model &model);

/// Returns "f32", "bf16", ...
const char *elementTypeName(plan::ElementType type);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_DESCRIBEMANIFEST_H
