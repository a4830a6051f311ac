//===- ContextFactors.h - Corrects costs of token slices --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A token slice reads keys of earlier tokens, its context, from a store. A whole sample
// with as many queries and visible pairs is the first guess of its seconds. Points with
// context correct the guess: the factor of a point is its measured seconds by the guess.
//
//      factor          rows: slices of equal tokens, by context
//        |  x--.           32 tokens
//        |      `x----x
//        |  o----o----o    512 tokens
//        +--------------- log context
//
// Within a row, the factor is a line in the logarithm of the context. Between two rows,
// it is a line in the logarithm of the tokens. Outside, the nearest factor holds. So each
// point is met exactly, and longer slices than measured ones grow as whole samples do.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_CONTEXTFACTORS_H
#define DYNA_RUNTIME_COST_CONTEXTFACTORS_H

#include <cstdint>
#include <utility>
#include <vector>

namespace dyna {

class ContextFactors {
public:
  struct Point {
    int64_t tokens = 0;  ///< of the slice, at least 1
    int64_t context = 0; ///< earlier tokens, at least 1
    double factor = 1;
  };

  ContextFactors() = default;
  /// Averages points with the same tokens and context. O(n log n).
  explicit ContextFactors(std::vector<Point> points);

  bool empty() const { return rows_.empty(); }
  /// Returns the factor of a slice; 1 without points. Both numbers are positive.
  /// O(log n).
  double at(double tokens, double context) const;

private:
  /// Logarithm of the context, and the factor.
  using Line = std::vector<std::pair<double, double>>;
  /// By the logarithm of the tokens, ascending.
  std::vector<std::pair<double, Line>> rows_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_CONTEXTFACTORS_H
