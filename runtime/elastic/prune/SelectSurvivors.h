//===- SelectSurvivors.h - Finds a model's largest weights ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Global magnitude pruning keeps the k largest weights of the whole model, which ranks
// hold in parts (DynPipe, appendix B.2). The published algorithm gathers the k largest
// of each rank on rank 0, sorts these and sends back indices: traffic grows with k.
//
// Here ranks agree on the smallest magnitude that survives. The bits of a magnitude have
// the order of the magnitudes. So ranks count how many weights have each value of the
// highest 11 bits and sum up their counts. The bits of the k-th largest follow. Weights
// with the same bits are counted by the next ones, and so on:
//
//     f32    31 bits    11 + 10 + 10     sums of 2,048, 1,024 and 1,024 counts
//     f64    63 bits    6 times up to 11
//
// Weights of this very magnitude are ties: those with the lowest positions
// survive. The position is the place of a weight in the model's parameters, on
// any rank. Ties are counted by the bits of their positions in the same way. So
// exactly k survive, the same ones for every strategy.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_SELECTSURVIVORS_H
#define DYNA_RUNTIME_ELASTIC_SELECTSURVIVORS_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace dyna {

/// A box of a parameter whose weights a rank counts. A weight that several ranks hold is
/// counted by one of them, and a weight that several layers share is counted once.
template <typename T> struct WeightBox {
  const T *values = nullptr; ///< rows * columns, row by row; not owned
  int64_t rows = 0, columns = 0;
  int64_t position = 0;  ///< of the first weight, among all of the model
  int64_t rowStride = 0; ///< positions from a row to the next one
  /// Bytes of the weights: those with the byte `among` are compared, and others do not
  /// exist. Null: all are compared. Not owned.
  const uint8_t *mask = nullptr;
  uint8_t among = 1;
};

/// Rule that selects surviving weights: all above a magnitude, and those of
/// exactly this magnitude at low positions.
struct Survivors {
  uint64_t magnitude = 0;  ///< bits of the smallest magnitude that survives
  int64_t endPosition = 0; ///< end of ties; those before it survive
  int64_t count = 0;       ///< of the whole model
};

/// Adds up counts over all ranks, in place. Every rank calls it with as many.
using SumCounts = std::function<Status(std::vector<int64_t> &counts)>;

/// Selects the `kept` largest of all weights. All ranks call it with the same `kept` and
/// `positions`, which is above every position; T is float or double. Fails with
/// InvalidArgument on every rank if a weight is no number, or if there are fewer weights
/// than `kept`.
///
/// O(weights). Reads all of them once, and then those that can still be the smallest one,
/// at most once for each further group of bits. The counts of a model with f32 weights
/// and up to 2^33 positions are at most 96 KB for each rank.
template <typename T>
StatusOr<Survivors> selectSurvivors(const std::vector<WeightBox<T>> &weights,
                                    int64_t kept, int64_t positions,
                                    const SumCounts &sum);

/// Writes 1 for each weight of a box that survives, else 0, and returns their number.
/// `mask` has room for rows * columns, and is not the mask of the box.
template <typename T>
int64_t markSurvivors(const WeightBox<T> &box, const Survivors &survivors,
                      uint8_t *mask);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_SELECTSURVIVORS_H
