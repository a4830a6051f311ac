//===- WeightForms.cpp - Chooses the forms of a rank's weights ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/WeightForms.h"

#include <algorithm>

namespace dyna {

double sparseCrossing(plan::ElementType computeType) {
  return computeType == plan::BF16 ? 0.88 : 0.6;
}

Status WeightForms::choose(int parameter, const MaskedBox &box,
                           double sparseFrom) {
  forms_[parameter].reset();
  const int64_t weights = box.rows * box.columns;
  const int64_t zeros = std::count(box.mask, box.mask + weights, 0);
  if (zeros == 0 ||
      static_cast<double>(zeros) < sparseFrom * static_cast<double>(weights))
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(SparseIndex index,
                        SparseIndex::build(box.rows, box.columns, box.mask));
  auto form = std::make_unique<SparseForm>(
      SparseForm{std::move(index), {}, dyna_sparse_form{}});
  const int64_t bytes = (weights - zeros) * box.elementBytes;
  form->values.resize(static_cast<size_t>((bytes + 7) / 8));
  form->view = {form->index.view(), form->values.data()};
  forms_[parameter] = std::move(form);
  return Status::ok();
}

void WeightForms::clear() {
  for (auto &form : forms_)
    form.reset();
}

int WeightForms::count() const {
  return static_cast<int>(
      std::count_if(forms_.begin(), forms_.end(),
                    [](const auto &form) { return form != nullptr; }));
}

int64_t WeightForms::bytes() const {
  int64_t bytes = 0;
  for (const auto &form : forms_)
    if (form)
      bytes += form->index.bytes() +
               static_cast<int64_t>(form->values.size() * sizeof(uint64_t));
  return bytes;
}

} // namespace dyna
