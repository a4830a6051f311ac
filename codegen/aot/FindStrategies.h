//===- FindStrategies.h - dynac --strategies search -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_FINDSTRATEGIES_H
#define DYNA_CODEGEN_AOT_FINDSTRATEGIES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::dyna {

struct DriverOptions;

/// As --strategies and --ranges take them.
struct FoundTexts {
  std::vector<std::string> strategies;
  std::string ranges;
};

/// For the lengths and devices of the options. `module` stays as it is: a copy is
/// distributed for all degrees that strategies may have. Prints what was considered;
/// a failure was told.
FailureOr<FoundTexts> findStrategies(ModuleOp module,
                                     const DriverOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_FINDSTRATEGIES_H
