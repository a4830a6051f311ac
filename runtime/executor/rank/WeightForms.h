//===- WeightForms.h - Chooses the forms of a rank's weights ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Forms are in host memory, beside the arena.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANK_WEIGHTFORMS_H
#define DYNA_RUNTIME_EXECUTOR_RANK_WEIGHTFORMS_H

#include "runtime/device/SparseIndex.h"
#include "runtime/plan/model/Model.h"

#include <memory>
#include <vector>

namespace dyna {

/// Returns the share of zeros from which the three products with a weight are
/// faster in sparse form, on the host with AVX-512. For f32 and bf16 it follows
/// the measured products of docs/elastic.md, with a margin. The type f64 was
/// not measured and has the share of f32.
double sparseCrossing(plan::ElementType computeType);

/// A weight's box on a rank, and the mask of its elements.
struct MaskedBox {
  int64_t rows = 0, columns = 0;
  const uint8_t *mask = nullptr; ///< [rows, columns]; 0: pruned
  int64_t elementBytes = 0;      ///< of the weight that layer functions read
};

class WeightForms {
public:
  explicit WeightForms(int parameters) : forms_(parameters) {}

  /// Chooses the sparse form if at least the share `sparseFrom` of the box is zero, and
  /// the masked form otherwise. O(rows * columns).
  Status choose(int parameter, const MaskedBox &box, double sparseFrom);

  /// Makes all weights dense.
  void clear();

  /// Returns the sparse form for products; null if the weight is dense or
  /// masked. Values are those of the last dyna_take_sparse_values. Valid until
  /// the next `choose` of this weight.
  const dyna_sparse_form *find(int parameter) const {
    const auto &form = forms_[parameter];
    return form ? &form->view : nullptr;
  }

  /// Return the number of weights in sparse form, and the bytes of these forms.
  int count() const;
  int64_t bytes() const;

private:
  struct SparseForm {
    SparseIndex index;
    std::vector<uint64_t> values; ///< room for elements of up to 8 bytes
    dyna_sparse_form view;
  };
  std::vector<std::unique_ptr<SparseForm>> forms_; ///< by parameter
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_WEIGHTFORMS_H
