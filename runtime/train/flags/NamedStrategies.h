//===- NamedStrategies.h - Finds the strategies that a run has names for --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_NAMEDSTRATEGIES_H
#define DYNA_RUNTIME_TRAIN_NAMEDSTRATEGIES_H

#include "runtime/plan/model/Model.h"
#include "runtime/plan/model/Strategy.h"

namespace dyna {

/// Returns the strategies of `given`, the text of --strategies or empty. Adds
/// compiled-in strategies of other names. Fails if `given` cannot be parsed.
StatusOr<std::vector<Strategy>> namedStrategies(const Model &model,
                                                const std::string &given);
/// Returns the strategies of `namedStrategies` as texts, for findStrategy.
StatusOr<std::vector<std::string>> namedTexts(const Model &model,
                                              const std::string &given);

/// Returns --strategies of a resumed run as text: those given now, then those
/// that were saved. If this command line `names` strategies, its user expects
/// the compiled ones. Then a compiled strategy replaces a saved one of the same
/// name. Otherwise names mean what they meant in the saved run.
StatusOr<std::string> resumedStrategies(const Model &model,
                                        const std::string &given,
                                        const std::string &saved, bool names);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_NAMEDSTRATEGIES_H
