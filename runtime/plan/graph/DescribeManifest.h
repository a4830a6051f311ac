//===- DescribeManifest.h - A manifest for people and tools -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_DESCRIBEMANIFEST_H
#define DYNA_RUNTIME_PLAN_DESCRIBEMANIFEST_H

#include "runtime/plan/model/Model.h"

#include <string>

namespace dyna {

/// A readable page: the model, its layers and parameters, and the memory a
/// micro-batch of `tokens` tokens takes under each recomputation mode.
std::string describeManifest(const Model &model, int64_t tokens);

/// The manifest whole, in the JSON of protocol buffers: fields have the names of
/// Manifest.proto, 64-bit numbers are strings, and any library of protocol
/// buffers reads it back.
std::string manifestToJson(const Model &model);

/// "f32", "bf16", ...
const char *elementTypeName(plan::ElementType type);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_DESCRIBEMANIFEST_H
