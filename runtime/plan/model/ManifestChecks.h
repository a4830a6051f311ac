//===- ManifestChecks.h - Declares the parts of checkManifest ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// These functions are private to CheckManifest.cpp and CheckDegrees.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MANIFESTCHECKS_H
#define DYNA_RUNTIME_PLAN_MANIFESTCHECKS_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/Manifest.pb.h"

#include <string>

namespace dyna::manifest_checks {

Status bad(const std::string &what);
bool sameSpec(const plan::TensorSpec &a, const plan::TensorSpec &b);

/// Checks one kind by itself; `master` is the type of masters.
Status checkKind(const plan::LayerKind &kind, plan::ElementType master);

/// Checks tensor degrees, their groups and the strategies, if all else is
/// right.
Status checkDegrees(const plan::Manifest &manifest);

} // namespace dyna::manifest_checks

#endif // DYNA_RUNTIME_PLAN_MANIFESTCHECKS_H
