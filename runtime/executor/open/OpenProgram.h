//===- OpenProgram.h - What a compiled object says of itself -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_OPEN_OPENPROGRAM_H
#define DYNA_RUNTIME_EXECUTOR_OPEN_OPENPROGRAM_H

#include "runtime/abi/Abi.h"
#include "runtime/plan/model/Model.h"

#include <string>

namespace dyna {

/// Reads and checks what a compiled object says about itself: ABI version,
/// manifest, and that every variant has every function the manifest lists.
StatusOr<Model> openProgram(const dyna_program &program);

/// The variant named `isa`, or for an empty name the first that a processor
/// with these DYNA_FEATURE_* bits can run.
StatusOr<const dyna_variant *> chooseVariant(const dyna_program &program,
                                             const std::string &isa,
                                             uint64_t features);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_OPEN_OPENPROGRAM_H
