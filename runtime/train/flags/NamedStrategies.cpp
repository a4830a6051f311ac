//===- NamedStrategies.cpp - Finds the strategies that a run has names for ===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/NamedStrategies.h"

#include <algorithm>

namespace dyna {

static StatusOr<std::vector<Strategy>> parseAll(const std::string &text) {
  return text.empty() ? StatusOr<std::vector<Strategy>>(std::vector<Strategy>())
                      : parseStrategies(text);
}

static StatusOr<std::vector<Strategy>> compiledStrategies(const Model &model) {
  std::vector<Strategy> strategies;
  for (const std::string &text : model.manifest().strategies()) {
    DYNA_ASSIGN_OR_RETURN(Strategy strategy, parseStrategy(text));
    strategies.push_back(std::move(strategy));
  }
  return strategies;
}

StatusOr<std::vector<Strategy>> namedStrategies(const Model &model,
                                                const std::string &given) {
  DYNA_ASSIGN_OR_RETURN(auto own, parseAll(given));
  DYNA_ASSIGN_OR_RETURN(auto compiled, compiledStrategies(model));
  return joinStrategies(std::move(own), compiled);
}

StatusOr<std::vector<std::string>> namedTexts(const Model &model,
                                              const std::string &given) {
  DYNA_ASSIGN_OR_RETURN(auto strategies, namedStrategies(model, given));
  std::vector<std::string> texts;
  for (const Strategy &strategy : strategies)
    texts.push_back(describeStrategy(strategy));
  return texts;
}

StatusOr<std::string> resumedStrategies(const Model &model,
                                        const std::string &given,
                                        const std::string &saved, bool names) {
  DYNA_ASSIGN_OR_RETURN(auto own, parseAll(given));
  DYNA_ASSIGN_OR_RETURN(auto old, parseAll(saved));
  if (names) {
    DYNA_ASSIGN_OR_RETURN(auto compiled, compiledStrategies(model));
    for (const Strategy &strategy : compiled)
      old.erase(std::remove_if(old.begin(), old.end(),
                               [&](const Strategy &other) {
                                 return other.name == strategy.name;
                               }),
                old.end());
  }
  return describeStrategies(joinStrategies(std::move(own), old));
}

} // namespace dyna
