//===- Strategy.h - Parses degrees of parallelism and the layer cut -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A strategy as text is `name: key=value,...`; several are separated by `;`.
// The name may be missing if there is one strategy.
//
//     dp, tp, pp   degrees of data, tensor and pipeline parallelism; absent: 1
//     zero         0, or 1: optimizer state dealt to the replicas (ZeRO-1)
//     sp           0, or 1: activations split over tokens between the
//                  tensor-parallel regions
//     mirror       0, or 1: replicas 2i and 2i + 1 share devices, the second one
//                  with its stages in opposite order (Chimera)
//     recompute    none, selective or full, for all layers
//     layers       layers of each stage, `5+3`; absent: cut by cost
//     order        how ranks are numbered, major to minor; absent: dp+pp+tp,
//                  rank (d * pp + p) * tp + t. What is minor lies close together
//                  where neighbouring ranks do
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STRATEGY_H
#define DYNA_RUNTIME_PLAN_STRATEGY_H

#include "runtime/base/error/Status.h"
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
  bool mirror = false;
  std::optional<plan::Recompute> recompute;
  std::vector<int> layers; ///< empty: not chosen yet
  /// The axes, major to minor.
  std::array<std::string, 3> order = {"dp", "pp", "tp"};

  int ranks() const { return dp * tp * pp; }
  /// Returns the number of devices. With `mirror` two ranks share each.
  int devices() const { return mirror ? ranks() / 2 : ranks(); }
};

/// Returns the strategy with a mirrored replica beside each of its replicas, on the same
/// devices. A strategy with `mirror` is returned as it is. Fails, with the strategy, if
/// the number of stages is odd.
StatusOr<Strategy> mirrorReplicas(Strategy strategy);

/// Parses one strategy; an error has the text, the key and what was expected.
StatusOr<Strategy> parseStrategy(const std::string &text);
/// Parses several strategies; each must have a name of its own.
StatusOr<std::vector<Strategy>> parseStrategies(const std::string &text);
/// Finds one of `known` by its name, or parses a strategy if the text has a
/// `=`. An error for an unknown name lists the known ones.
StatusOr<Strategy> findStrategy(const std::string &nameOrText,
                                const std::vector<std::string> &known);
/// Returns all of `first`, and those of `rest` with other names.
std::vector<Strategy> joinStrategies(std::vector<Strategy> first,
                                     const std::vector<Strategy> &rest);
/// Returns text that parses to the same strategy.
std::string describeStrategy(const Strategy &strategy);
/// Returns text of several strategies, which all have names; empty for none.
std::string describeStrategies(const std::vector<Strategy> &strategies);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STRATEGY_H
