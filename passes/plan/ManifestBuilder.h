//===- ManifestBuilder.h - What a binary knows about itself --- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The manifest is read off the module after the memory phase: parameters from
// `dyna.parameter`, layer kinds from `dyna.layer` and its `dyna.function`s, the
// chain of layers from the calls of the model, tensor degrees from the layers
// that the distribute phase made.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_MANIFESTBUILDER_H
#define DYNA_PASSES_PLAN_MANIFESTBUILDER_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/Manifest.pb.h"

namespace mlir::dyna {

/// Builds the manifest of `module`, which must hold exactly one `dyna.model`
/// and have passed the memory phase. Diagnostics say what is missing.
/// `strategies` are recorded as they are.
FailureOr<::dyna::plan::Manifest>
buildManifest(ModuleOp module, ArrayRef<std::string> strategies = {});

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_MANIFESTBUILDER_H
