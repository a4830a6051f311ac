//===- SliceOrder.h - Verifies the order of slices (P3) ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a part of the plan verifier; see PlanVerifier.h. In every layer,
// slices of a sample run forward in the order of their tokens, and backward in
// reverse. The stores of their bundle are taken, cleared and freed once.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_SLICEORDER_H
#define DYNA_RUNTIME_PLAN_SLICEORDER_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/program/Bundles.h"

#include <unordered_map>
#include <vector>

namespace dyna {

class SliceOrder {
public:
  /// `bundles` are those of the program of a rank. Both must outlive this object.
  SliceOrder(const RankView &view, const Bundles &bundles)
      : view_(view), bundles_(bundles) {}

  /// Checks an instruction that is about to run. Linear in the slices that come
  /// directly before or behind those of its micro-batch.
  Status step(const plan::Instruction &i);

private:
  /// Progress of a micro-batch in one layer.
  struct Passed {
    bool forward = false, backward = false;
  };
  /// Uses of a bundle's stores in one layer.
  struct Stores {
    bool taken = false, cleared = false, freed = false;
  };
  template <typename State>
  using ByLayer = std::unordered_map<int, std::unordered_map<int, State>>;

  Status forward(const plan::Instruction &i, const BundlePart &part);
  Status backward(const plan::Instruction &i, const BundlePart &part);
  Status use(const plan::Instruction &i, const BundlePart &part);

  const RankView &view_;
  const Bundles &bundles_;
  ByLayer<Passed> passed_; ///< by layer and micro-batch
  ByLayer<Stores> stores_; ///< by layer and bundle
  bool evaluates_ = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_SLICEORDER_H
