//===- CheckOptions.h - Whether dynac can do what it is asked ---*- C++ -*-===//
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
/// Says what is wrong with what was asked, on one line; returns kUsageError.
int usageError(const llvm::Twine &message);

/// Whether strategies are to be found, not given.
bool searchesStrategies(const DriverOptions &options);

/// What options name.
struct CheckedOptions {
  std::vector<InstructionSet> isas; ///< the preferred one first
  /// As describeStrategy has them; empty where none are given, or sought.
  std::vector<std::string> strategies;
};

/// Whether the options fit together, before any work is done: 0, or the exit code
/// of what has been said.
int checkOptions(const DriverOptions &options, CheckedOptions &checked);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_CHECKOPTIONS_H
