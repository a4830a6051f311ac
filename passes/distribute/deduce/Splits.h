//===- Splits.h - Finds the cheapest split of an op -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is the decision of deduce-layouts for one op, on plain data. An op's
// factor rule (dialects/dist/FactorRule.h) turns a split of its factors into
// the layouts that operands must have and results get. Candidates are the
// splits that the operands already have, factor by factor; no other split is
// tried. The split with the lowest cost of resharding the operands wins. Costs
// compare bytes sent, then steps, then the number of partial results, then the
// work of a rank.
//
// Example, linear under tensor parallelism with activations split over tokens:
//     x [[tp], []]   w [[tp], []] (a parameter: fixed)
// Candidates for t: [tp] or []; for n: [tp], since w has it. Both over tp is
// impossible, so t is [] and x is gathered.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_SPLITS_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_SPLITS_H

#include "dialects/dist/FactorRule.h"
#include "runtime/layout/Reshard.h"

namespace mlir::dyna {

struct OperandState {
  /// Layouts in which the value exists; empty for a value that is no tensor.
  std::vector<::dyna::Layout> versions;
  ::dyna::Shape shape;
  int64_t elementBytes = 0;
  /// A parameter or accumulator: never resharded.
  bool isFixed = false;
  /// An accumulator whose partial axes are not known yet.
  bool takesAnyPartial = false;
};

struct SplitChoice {
  /// Layout that each operand needs, and the version to make it from.
  std::vector<::dyna::Layout> operands;
  std::vector<int> sources;
  std::vector<::dyna::Layout> results;
  int64_t bytes = 0; ///< sent by a rank for kNominalTokens
  int64_t steps = 0;
};

/// A number of tokens that every usual degree divides, used to compare bytes.
constexpr int64_t kNominalTokens = 720720;

/// Chooses a split. `tokens` are parts over which a factor `t` may be split
/// although no operand is.
::dyna::StatusOr<SplitChoice>
chooseSplit(const ::dyna::Mesh &mesh, const dist::FactorRule &rule,
            const std::vector<OperandState> &operands,
            const ::dyna::AxisParts &tokens);

/// Returns the layouts of the results of an op whose operands stay as they are.
/// Fails, with the operand's number, if they do not fit together. Sizes of
/// factors are not checked: the op may be that of one rank.
::dyna::StatusOr<std::vector<::dyna::Layout>>
inferResults(const ::dyna::Mesh &mesh, const dist::FactorRule &rule,
             const std::vector<::dyna::Layout> &operands,
             const ::dyna::AxisParts &tokens);

/// Cost of resharding a tensor: the bytes that one rank sends, and the steps.
struct ReshardCost {
  int64_t bytes = 0, steps = 0;
  bool operator<(const ReshardCost &other) const {
    return std::pair(bytes, steps) < std::pair(other.bytes, other.steps);
  }
};
::dyna::StatusOr<ReshardCost> costOfReshard(const ::dyna::Mesh &mesh,
                                            const ::dyna::Layout &from,
                                            const ::dyna::Layout &to,
                                            const ::dyna::Shape &shape,
                                            int64_t elementBytes);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_SPLITS_H
