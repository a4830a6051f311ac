//===- RecomputeModes.h - Holds recomputation modes by layer ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_RECOMPUTEMODES_H
#define DYNA_RUNTIME_PLANNER_RECOMPUTEMODES_H

#include "runtime/plan/graph/RankView.h"

#include <string>
#include <vector>

namespace dyna {

/// Recomputation modes: one entry for all layers, or one for each layer.
using RecomputeModes = std::vector<plan::Recompute>;

inline plan::Recompute modeOf(const RecomputeModes &modes, int layer) {
  return modes[modes.size() > 1 ? layer : 0];
}

/// The word that leaves the modes to the planner.
constexpr const char *chooseRecomputeWord = "auto";

/// Parses modes: "full" means all layers; "none,full*6,none" lists them, one
/// entry per layer.
StatusOr<RecomputeModes> parseRecompute(const std::string &text, int layers);

/// Checks what can be checked of such a text, or "auto", before the model is known.
Status checkRecompute(const std::string &text);

/// Returns the shortest text that `parseRecompute` reads as these modes.
std::string describeRecompute(const RecomputeModes &modes);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_RECOMPUTEMODES_H
