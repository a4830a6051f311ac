//===- ManifestBuilder.h - Builds the manifest of a module ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The manifest comes from the module after the memory phase. Parameters come
// from `dyna.parameter`, and layer kinds from `dyna.layer` and its
// `dyna.function`s. The chain of layers comes from the calls of the model.
// Tensor degrees come from the layers that the distribute phase made.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_MANIFESTBUILDER_H
#define DYNA_PASSES_PLAN_MANIFESTBUILDER_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/Manifest.pb.h"

namespace mlir::dyna {

/// Builds the manifest of `module`, which must have exactly one `dyna.model`
/// and have passed the memory phase. Diagnostics say what is missing.
/// `strategies` are recorded unchanged.
FailureOr<::dyna::plan::Manifest>
buildManifest(ModuleOp module, ArrayRef<std::string> strategies = {});

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_MANIFESTBUILDER_H
