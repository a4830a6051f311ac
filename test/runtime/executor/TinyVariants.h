//===- TinyVariants.h - Kinds of the tiny model that freeze -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What `dynac --freezable` adds to a manifest, for the tiny model (TinyModel.h). Its
// naive functions are those of the layers, but for two: a block that runs forward alone
// works in its workspace, and a block that passes gradients runs no product for weights.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_TINYVARIANTS_H
#define DYNA_TEST_RUNTIME_EXECUTOR_TINYVARIANTS_H

#include "test/runtime/executor/TinyModel.h"

namespace dyna {

/// Kinds with variants: three, embedding.alone, block.first, block.passing, block.alone,
/// head.first and head.passing.
constexpr int tinyKindsAndVariants = 9;
inline int tinyKindsOf(const TinyOptions &options) {
  return options.freezable ? tinyKindsAndVariants : tinyKinds;
}

/// Adds them to the kinds of each degree. The manifest's hash is not renewed.
void addTinyVariants(plan::Manifest &manifest);

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_TINYVARIANTS_H
