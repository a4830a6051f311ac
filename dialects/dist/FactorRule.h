//===- FactorRule.h - States how an op can be split over ranks --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A factor rule sees an op as a loop nest. Each loop is a *factor*; each
// dimension of an operand or result runs over some factors, major to minor:
//
//     linear        x[t, k]  w[n, k]             -> y[t, n]
//     attention     q[t, g r d]  k[t, g d] ...   -> o[t, g r d]  lse[t, g r]
//                   (g key/value heads, r query heads for each, d features)
//
// Splitting a factor cuts every dimension that runs over it. Two rules follow:
//
// - Every rank needs the whole of an operand that does not have the factor.
// - A result that does not have it is *partial*: each rank has summed over its
//   part. Examples are k of linear, r for the gradients of key and value, and t
//   for the gradients of weights.
//
// The op states exceptions. Some factors must not be split (`d`, the features
// of a norm). Some results are reduced over the ranks by the op itself (the
// loss of the head).
//
// A partial operand is a sum over ranks. It may pass through an op that is
// linear in it: `linearIn` lists sets of operands in which the op is linear
// together (add: both; the gradient of a weight: the incoming gradient). If all
// operands of a set are partial alike and no other operand is, the results are
// partial alike.
//
// A *tied* operand is an accumulator: it has the layout of its result.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DIST_FACTORRULE_H
#define DYNA_DIALECTS_DIST_FACTORRULE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace mlir::dist {

struct Factor {
  enum Kind {
    Even,   ///< parts of equal size only: kernels take one size
    Uneven, ///< any parts: tokens, rows of tables
    Whole,  ///< never split
  };
  std::string name;
  Kind kind = Even;
  int64_t size = 0; ///< kDynamicSize for tokens
};

/// The factors of each dimension, by index, major to minor.
using TensorFactors = llvm::SmallVector<llvm::SmallVector<int, 3>, 2>;

struct FactorRule {
  llvm::SmallVector<Factor, 4> factors;
  /// By number of operand and result; a value that is no tensor has no
  /// dimensions.
  llvm::SmallVector<TensorFactors, 6> operands, results;
  llvm::SmallVector<llvm::SmallVector<int, 2>, 2> linearIn;
  /// Accumulator operand, result.
  llvm::SmallVector<std::pair<int, int>, 4> tied;
  /// Results that are whole, whichever factors are split.
  llvm::SmallVector<int, 1> reducedByOp;

  int addFactor(llvm::StringRef name, Factor::Kind kind, int64_t size) {
    factors.push_back({name.str(), kind, size});
    return static_cast<int>(factors.size()) - 1;
  }
};

} // namespace mlir::dist

#endif // DYNA_DIALECTS_DIST_FACTORRULE_H
