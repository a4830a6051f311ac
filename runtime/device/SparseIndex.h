//===- SparseIndex.h - Builds the index of a sparse weight ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the index that runtime/abi/Sparse.h describes, when a weight is
// pruned. Copies values from a dense weight and back. All devices use the same
// index.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_SPARSEINDEX_H
#define DYNA_RUNTIME_DEVICE_SPARSEINDEX_H

#include "runtime/abi/Sparse.h"
#include "runtime/base/error/Status.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// Owns the arrays of an index, in memory of the host.
class SparseIndex {
public:
  /// Builds the index of a weight with `rows` rows. `mask` has a byte for each weight,
  /// row by row: not 0 if it survives. Fails with InvalidArgument if there are no rows or
  /// columns, or no mask. O(rows * columns) for the mask, O(survivors) for the index.
  static StatusOr<SparseIndex> build(int64_t rows, int64_t columns,
                                     const uint8_t *mask);

  SparseIndex(SparseIndex &&) = default;
  SparseIndex &operator=(SparseIndex &&) = default;

  /// Returns the view for kernels. It is valid as long as this index lives.
  dyna_sparse_weight view() const;

  int64_t survivors() const { return byRow_.starts.back(); }
  /// Returns the bytes of the index, without values.
  int64_t bytes() const;

  /// Returns the positions of survivors in the dense weight, row * columns +
  /// column, in the order of values. They map data of survivors from one index
  /// to the next.
  std::vector<int64_t> positions() const;

private:
  struct Side {
    std::vector<int64_t> starts;
    std::vector<uint8_t> lines, counts, depths;
    std::vector<uint16_t> places;
    int64_t bytes() const;
    dyna_sparse_side view() const;
  };
  SparseIndex(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}
  void buildByRow(const uint8_t *mask);
  void buildByColumn();

  int64_t rows_, columns_;
  Side byRow_, byColumn_;
};

/// Fails with InvalidArgument if the arrays of a weight are not an index.
/// Examples are lines or depths outside of the weight, counts that rise or have
/// a wrong sum, and sides that differ. Used for data from outside; kernels
/// trust their index. O(survivors).
Status checkSparseIndex(const dyna_sparse_weight &weight);

/// Copies survivors of a dense row-major weight, whose rows are `stride` elements apart,
/// to `values`.
template <typename T>
void gatherValues(const SparseIndex &index, int64_t columns, const T *dense,
                  int64_t stride, T *values) {
  int64_t at = 0;
  for (int64_t position : index.positions())
    values[at++] = dense[position / columns * stride + position % columns];
}

/// Copies values to their places in a dense weight. All other elements stay as they are.
template <typename T>
void scatterValues(const SparseIndex &index, int64_t columns, const T *values,
                   T *dense, int64_t stride) {
  int64_t at = 0;
  for (int64_t position : index.positions())
    dense[position / columns * stride + position % columns] = values[at++];
}

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_SPARSEINDEX_H
