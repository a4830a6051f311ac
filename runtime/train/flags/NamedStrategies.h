//===- NamedStrategies.h - Strategies that a run knows by name --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_NAMEDSTRATEGIES_H
#define DYNA_RUNTIME_TRAIN_NAMEDSTRATEGIES_H

#include "runtime/plan/model/Model.h"
#include "runtime/plan/model/Strategy.h"

namespace dyna {

/// Those of `given`, --strategies as text or empty, and those compiled in that
/// have other names. Fails where `given` is no such text.
StatusOr<std::vector<Strategy>> namedStrategies(const Model &model,
                                                const std::string &given);
/// The same, each as text: findStrategy's.
StatusOr<std::vector<std::string>> namedTexts(const Model &model,
                                              const std::string &given);

/// --strategies of a run that is resumed, as text: those given now, then those
/// that were saved. Where this command line `names` strategies, saved ones give
/// way to compiled ones of the same names, which its user sees; otherwise names
/// are the saved run's.
StatusOr<std::string> resumedStrategies(const Model &model,
                                        const std::string &given,
                                        const std::string &saved, bool names);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_NAMEDSTRATEGIES_H
