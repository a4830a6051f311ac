//===- TargetName.h - Which target a module is planned for ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Apart from Dyna.h, which everything includes: few ask.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_TARGETNAME_H
#define DYNA_DIALECTS_DYNA_TARGETNAME_H

#include "dialects/dyna/KnownAttributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::dyna {

enum class TargetName { Cpu, Cuda };

inline StringRef stringifyTargetName(TargetName name) {
  return name == TargetName::Cpu ? "cpu" : "cuda";
}
inline std::optional<TargetName> symbolizeTargetName(StringRef name) {
  for (TargetName known : {TargetName::Cpu, TargetName::Cuda})
    if (stringifyTargetName(known) == name)
      return known;
  return std::nullopt;
}

/// On a module: the name of the target that it is planned for; the CPU without
/// it. What follows from it is Target (passes/memory/Target.h).
inline constexpr PhaseAttribute<StringAttr> kTarget{"dyna.target"};

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TARGETNAME_H
