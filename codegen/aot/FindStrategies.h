//===- FindStrategies.h - Implements dynac --strategies search --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_FINDSTRATEGIES_H
#define DYNA_CODEGEN_AOT_FINDSTRATEGIES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::dyna {

struct DriverOptions;

/// Text for --strategies and --ranges.
struct FoundTexts {
  std::vector<std::string> strategies;
  std::string ranges;
};

/// Searches strategies for the lengths and devices of the options. `module`
/// does not change: a copy is distributed for all degrees that strategies may
/// have. Prints the candidates. Failures were reported.
FailureOr<FoundTexts> findStrategies(ModuleOp module,
                                     const DriverOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_FINDSTRATEGIES_H
