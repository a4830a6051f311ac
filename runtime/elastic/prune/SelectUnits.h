//===- SelectUnits.h - Finds a model's largest heads or channels -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The score of a unit (PrunedUnits.h) is the sum of the magnitudes of its weights. The
// units with the largest scores survive. Of equal scores, the first units survive.
//
// Ranks hold parts of units, and sums of floating-point numbers depend on their order. So
// that every strategy selects the same units, magnitudes are added as integers. They are
// rounded down to 2^-2b of the power of two above the largest one. The upper
// and lower b bits are added separately, b being 30 for units of up to 2^22 weights. No
// weight in f32 that is above 2^-36 of the largest one is rounded at all.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_SELECTUNITS_H
#define DYNA_RUNTIME_ELASTIC_SELECTUNITS_H

#include "runtime/elastic/prune/SelectSurvivors.h"

namespace dyna {

/// A box of a parameter whose weights a rank counts, and the units that they belong to.
/// Positions of the box are not used.
template <typename T> struct UnitBox {
  WeightBox<T> box;
  int dimension = 0; ///< 0: units are rows, 1: columns
  int64_t first = 0; ///< row or column of the parameter at which the box begins
  int64_t width = 1; ///< rows or columns of a unit
  int64_t unit = 0;  ///< number of the parameter's first unit

  int64_t unitOf(int64_t row, int64_t column) const {
    return unit + (first + (dimension == 0 ? row : column)) / width;
  }
};

/// Returns 1 for each of `units` units that survives, else 0. All ranks call it with the
/// same numbers. `mostWeights` is the number of weights of the largest unit. Fails with
/// InvalidArgument on every rank if a weight is not finite, or if there are fewer units than
/// `kept`. O(weights + units log units); sends 16 bytes for each unit.
template <typename T>
StatusOr<std::vector<uint8_t>>
selectUnits(const std::vector<UnitBox<T>> &boxes, int64_t units, int64_t kept,
            int64_t mostWeights, const SumCounts &sum);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_SELECTUNITS_H
