//===- PlanVerifier.h - The proof of a plan ---------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What must hold before a plan may run. Every plan passes here, wherever it
// comes from: made on line, read from a file, or changed by hand.
//
// - (P1) it was made for this model (manifest hash), for one rank here;
// - (P2) segments name samples of the mini-batch and cover every token once;
// - (P3) every micro-batch passes every layer forward and backward exactly once
//   and in order, or is evaluated;
// - (P4) recomputation happens before backward where forward did not keep all,
// and
//   only there;
// - (P5) all parameters are updated once, after all gradients are there and
//   gradient norms are known, or none is;
// - (P6) nothing is read that is not there: blocks are used where they were
// placed,
//   after they were taken and before they were given back, and all are given
//   back;
// - (P7) blocks alive at one time do not overlap;
// - (P8) the region fits the limit.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLANVERIFIER_H
#define DYNA_RUNTIME_PLAN_PLANVERIFIER_H

#include "runtime/plan/ManifestView.h"

#include <vector>

namespace dyna {

struct VerifyOptions {
  /// Bytes that the dynamic region has.
  int64_t dynamicLimit = 0;
};

/// `lengths[i]`: tokens of sample i of the mini-batch. Linear in the number of
/// instructions, but for a logarithm of the blocks alive.
Status verifyPlan(const ManifestView &view, const plan::Plan &plan,
                  const std::vector<int64_t> &lengths,
                  const VerifyOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PLANVERIFIER_H
