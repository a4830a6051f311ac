//===- TinyDegrees.h - Tensor degrees of the tiny model ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_TINYDEGREES_H
#define DYNA_TEST_RUNTIME_PLAN_TINYDEGREES_H

#include "test/runtime/executor/TinyModel.h"

namespace dyna {

inline plan::Manifest manifestWithDegrees() {
  plan::Manifest manifest = tinyManifest();
  addDegree(manifest, 2, false);
  addDegree(manifest, 4, true);
  plan::TensorGroup *group = manifest.add_groups();
  group->set_tp(4);
  addPart(group->mutable_parts(), 1, 2);
  manifest.add_strategies("a: dp=2,tp=2");
  manifest.add_strategies("b: tp=4,sp=1");
  return manifest;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_TINYDEGREES_H
