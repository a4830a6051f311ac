//===- ModelSwitches.h - Switches of large models ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the weights of two large transformers, and the switches between
// strategies of them. Tests and benchmarks of the switch planner share them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_SWITCH_MODELSWITCHES_H
#define DYNA_TEST_RUNTIME_PLANNER_SWITCH_MODELSWITCHES_H

#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/sim/SwitchNetwork.h"
#include "test/runtime/planner/Draw.h"

#include <string>
#include <vector>

namespace dyna {

/// A matrix or vector of a layer. Tensor parallelism splits the dimension
/// `split`; -1: no dimension.
struct ModelWeight {
  int64_t rows, columns;
  int split;
};

struct SwitchModel {
  const char *name;
  int blocks;
  std::vector<ModelWeight> block, first, last;
};

/// LLaMA with 32.5 G parameters (HotSPa, section 6.3).
SwitchModel llama32b();
/// GPT with 175 G parameters.
SwitchModel gpt175b();

struct Degrees {
  int dp, tp, pp;
};

/// Degrees, and the order of the axes from major to minor: "dpt", "pdt".
struct Numbering {
  Degrees degrees;
  std::string order = "dpt";

  int ranks() const { return degrees.dp * degrees.tp * degrees.pp; }
  int rankAt(int d, int p, int t) const;
  /// "dp=4,tp=2,pp=4,order=dpt".
  std::string text() const;
};

/// Tensors in the order of need: what all stages need first comes first. With
/// `zero` the values come from the rows that each replica updates.
std::vector<SwitchTensor> tensorsOf(const SwitchModel &model,
                                    const Numbering &from, const Numbering &to,
                                    bool zero = false);

/// Nodes of 8 ranks, 200 GB/s inside and 25 GB/s for each rank between.
SwitchNetwork nodesOfEight(int nodes);

struct ModelPair {
  Numbering from, to;
  bool zero = false;

  /// "dp=4,tp=2,pp=4,order=dpt,zero=1 -> dp=8,tp=4,pp=1,order=dpt".
  std::string text() const;
};

/// Two different random strategies for as many ranks, with tp up to 16 and at
/// most as many stages as the model has blocks. Half of the pairs have the
/// default order of axes, the others any order.
ModelPair drawPair(Draw &draw, const SwitchModel &model, int ranks);

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_SWITCH_MODELSWITCHES_H
