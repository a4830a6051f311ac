//===- StrategyChoice.h - Chooses the strategies and ranges to compile ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A driver finds the strategies of a step for given lengths and a cluster, in
// two calls. The first returns the tensor degrees to try, before there are
// local programs. The second chooses, from the module that was compiled for all
// of them.
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
  std::string slices; ///< value of --slices for runs; empty: the default
  /// Progress callback, as in StrategySpace::tell.
  std::function<void(const std::string &next)> tell;
};

/// Text for --strategies and --ranges, and the candidates as lines of text.
struct ChosenTexts {
  std::string strategies, ranges, considered;
  /// Notes about a file of costs with missing entries or of another compute
  /// type.
  std::vector<std::string> notes;
};

/// Returns the tensor degrees to distribute for, as strategies; empty if there
/// is only degree 1. `module` has one `dyna.model`. Fails if costs, cluster,
/// ranks and tokens do not fit together.
llvm::Expected<std::string> degreesToSearch(ModuleOp module,
                                            const StrategyChoice &choice);

/// Chooses strategies. `module` has passed the memory phase, with these
/// degrees. Fails if none of their strategies holds the longest sample. Lengths
/// beyond the model's positions are cut, and `considered` has a line that says
/// so.
llvm::Expected<ChosenTexts> chooseStrategies(ModuleOp module,
                                             const StrategyChoice &choice);

/// Checks that `ranges` name these strategies, and that all of them have the
/// same number of ranks. A run would refuse anything else.
llvm::Error checkRanges(const std::string &ranges,
                        ArrayRef<std::string> strategies);

/// Fails if there is no such kind of micro-batches, or if it excludes ranges of
/// lengths.
llvm::Error checkRangedBatching(const std::string &name);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_STRATEGYCHOICE_H
