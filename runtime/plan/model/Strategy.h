//===- Strategy.h - Degrees of parallelism and the layer cut ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A strategy as text: `name: key=value,...`, several separated by `;`. The name
// may be missing where one strategy is meant.
//
//     dp, tp, pp   degrees of data, tensor and pipeline parallelism; absent: 1
//     zero         0, or 1: optimizer state dealt to the replicas (ZeRO-1)
//     sp           0, or 1: activations split over tokens between the
//                  tensor-parallel regions
//     recompute    none, selective or full, for all layers
//     layers       layers of each stage, `5+3`; absent: cut by cost
//     order        how ranks are numbered, major to minor; absent: dp+pp+tp,
//                  rank (d * pp + p) * tp + t. What is minor lies close together
//                  where neighbouring ranks do
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STRATEGY_H
#define DYNA_RUNTIME_PLAN_STRATEGY_H

#include "runtime/base/Status.h"
#include "runtime/plan/program/Plan.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace dyna {

struct Strategy {
  std::string name; ///< empty: not named
  int dp = 1;
  int tp = 1;
  int pp = 1;
  bool zero = false;
  bool sp = false;
  std::optional<plan::Recompute> recompute;
  std::vector<int> layers; ///< empty: to be chosen
  /// The axes, major to minor.
  std::array<std::string, 3> order = {"dp", "pp", "tp"};

  int ranks() const { return dp * tp * pp; }
};

/// One strategy; fails with the text, the key and what was expected.
StatusOr<Strategy> parseStrategy(const std::string &text);
/// Several; every one of them named, no name twice.
StatusOr<std::vector<Strategy>> parseStrategies(const std::string &text);
/// One of `known` by its name, or a strategy as text where there is a `=`. A
/// name that is not there is refused with those that are.
StatusOr<Strategy> findStrategy(const std::string &nameOrText,
                                const std::vector<std::string> &known);
/// Those of `first`, and of `rest` those that have other names.
std::vector<Strategy> joinStrategies(std::vector<Strategy> first,
                                     const std::vector<Strategy> &rest);
/// Parses to the same strategy again.
std::string describeStrategy(const Strategy &strategy);
/// The same of several, all of them named; of none an empty text.
std::string describeStrategies(const std::vector<Strategy> &strategies);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STRATEGY_H
