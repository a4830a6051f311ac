//===- OpenProgram.h - Opens a compiled program -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_OPEN_OPENPROGRAM_H
#define DYNA_RUNTIME_EXECUTOR_OPEN_OPENPROGRAM_H

#include "runtime/abi/Abi.h"
#include "runtime/plan/model/Model.h"

#include <string>

namespace dyna {

/// Reads and checks the description in a compiled object: the ABI version, the
/// manifest, and that every variant has every function in the manifest.
StatusOr<Model> openProgram(const dyna_program &program);

/// Returns the variant named `isa`. For an empty name, returns the first that a
/// processor with these DYNA_FEATURE_* bits can run.
StatusOr<const dyna_variant *> chooseVariant(const dyna_program &program,
                                             const std::string &isa,
                                             uint64_t features);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_OPEN_OPENPROGRAM_H
