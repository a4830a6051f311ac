//===- CheckOptions.h - Checks the options of dynac -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_CHECKOPTIONS_H
#define DYNA_CODEGEN_AOT_CHECKOPTIONS_H

#include "codegen/aot/DriverOptions.h"
#include "codegen/aot/ObjectEmitter.h"

#include "llvm/ADT/Twine.h"

#include <string>
#include <vector>

namespace mlir::dyna {

constexpr int kUsageError = 2;
/// Prints an error in the options, on one line; returns kUsageError.
int usageError(const llvm::Twine &message);

/// Returns true if strategies are searched, not given.
bool searchesStrategies(const DriverOptions &options);

/// Parsed values of options.
struct CheckedOptions {
  std::vector<InstructionSet> isas; ///< the preferred one first
  /// Strategies in the form of describeStrategy; empty if none are given, or if
  /// they are searched.
  std::vector<std::string> strategies;
};

/// Checks that the options fit together, before any work is done. Returns 0, or
/// the exit code after printing an error.
int checkOptions(const DriverOptions &options, CheckedOptions &checked);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_CHECKOPTIONS_H
