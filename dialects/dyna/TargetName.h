//===- TargetName.h - Names the target that a module is planned for -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a header of its own because few files need it and all include Dyna.h.
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

/// On a module: the name of the target that it is planned for; without it, the
/// CPU. Target (passes/memory/value/Target.h) has the properties of each target.
inline constexpr PhaseAttribute<StringAttr> kTarget{"dyna.target"};

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TARGETNAME_H
