//===- Splits.h - Which split of an op costs least --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decision of deduce-layouts for one op, on plain data. An op's factor rule
// (dialects/dist/FactorRule.h) turns a split of its factors into the layouts
// that operands must have and results get. Candidates are the splits that the
// operands have already, factor by factor: none is invented. The one whose
// operands are cheapest to bring in place wins: by bytes sent, then by steps,
// then by fewer partial results, then by less work for each rank.
//
// Example, linear under tensor parallelism with activations split over tokens:
//     x [[tp], []]   w [[tp], []] (a parameter: fixed)
// Candidates for t: [tp] or []; for n: [tp], since w has it. Both over tp is
// impossible, so t is [] and x is gathered.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_SPLITS_H
#define DYNA_PASSES_DISTRIBUTE_SPLITS_H

#include "dialects/dist/FactorRule.h"
#include "runtime/layout/Reshard.h"

namespace mlir::dyna {

struct OperandState {
  /// The layouts in which the value exists; empty for what is no tensor.
  std::vector<::dyna::Layout> versions;
  ::dyna::Shape shape;
  int64_t elementBytes = 0;
  /// A parameter or accumulator: never resharded.
  bool isFixed = false;
  /// An accumulator over whose partial parts nothing is known yet.
  bool takesAnyPartial = false;
};

struct SplitChoice {
  /// By operand: the layout wanted and the version to make it from.
  std::vector<::dyna::Layout> operands;
  std::vector<int> sources;
  std::vector<::dyna::Layout> results;
  int64_t bytes = 0; ///< sent by a rank for kNominalTokens
  int64_t steps = 0;
};

/// A number of tokens that every usual degree divides, for comparing bytes.
constexpr int64_t kNominalTokens = 720720;

/// `tokens`: parts over which a factor `t` may be split although no operand is.
::dyna::StatusOr<SplitChoice>
chooseSplit(const ::dyna::Mesh &mesh, const dist::FactorRule &rule,
            const std::vector<OperandState> &operands,
            const ::dyna::AxisParts &tokens);

/// The layouts of the results of an op whose operands are as they are. Fails,
/// with the operand's number, if they do not fit each other. Sizes of factors
/// are not looked at: the op may be that of one rank.
::dyna::StatusOr<std::vector<::dyna::Layout>>
inferResults(const ::dyna::Mesh &mesh, const dist::FactorRule &rule,
             const std::vector<::dyna::Layout> &operands,
             const ::dyna::AxisParts &tokens);

/// Bytes that one rank sends to get a tensor from one layout to another.
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

#endif // DYNA_PASSES_DISTRIBUTE_SPLITS_H
