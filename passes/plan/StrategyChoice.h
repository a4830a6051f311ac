//===- StrategyChoice.h - Strategies and ranges to compile ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a driver needs to find the strategies of a step for lengths and a cluster,
// before there are local programs: the degrees to try, and, of the module with
// all of these, the choice.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_STRATEGYCHOICE_H
#define DYNA_PASSES_PLAN_STRATEGYCHOICE_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/planner/request/PlanRequest.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>
#include <vector>

namespace mlir::dyna {

struct StrategyChoice {
  std::string cluster; ///< described devices, such as a100-40g:4x8
  std::string costs;   ///< or a file of costs
  int64_t ranks = 0;   ///< 0: all devices
  int64_t tokensPerBatch = ::dyna::defaultTokensPerBatch;
  std::vector<int64_t> lengths; ///< of samples, in tokens
  std::string slices; ///< that runs will be asked for; empty: the default
  /// StrategySpace::tell.
  std::function<void(const std::string &next)> tell;
};

/// As --strategies and --ranges take them, and what was considered, as lines.
struct ChosenTexts {
  std::string strategies, ranges, considered;
  /// Where a file of costs lacks something or is of another compute type.
  std::vector<std::string> notes;
};

/// The tensor degrees to distribute for, as strategies; empty: none but 1.
/// `module` has one `dyna.model`. Fails where costs, cluster, ranks and tokens cannot
/// be.
llvm::Expected<std::string> degreesToSearch(ModuleOp module,
                                            const StrategyChoice &choice);

/// `module` is behind the memory phase, with these degrees. Fails where none of
/// their strategies holds the longest sample. Lengths beyond the model's positions
/// are cut, and a line of what was considered says so.
llvm::Expected<ChosenTexts> chooseStrategies(ModuleOp module,
                                             const StrategyChoice &choice);

/// Whether `ranges` are such of these strategies, and all of theirs have as many
/// ranks; what a run would refuse.
llvm::Error checkRanges(const std::string &ranges,
                        ArrayRef<std::string> strategies);

/// Fails if there is no such kind of micro-batches, or if ranges of lengths exclude it.
llvm::Error checkRangedBatching(const std::string &name);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_STRATEGYCHOICE_H
