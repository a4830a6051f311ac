//===- KindAt.h - Names a layer kind at a tensor degree ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_KINDAT_H
#define DYNA_RUNTIME_COST_KINDAT_H

#include "runtime/plan/Manifest.pb.h"

namespace dyna {

/// A layer kind at a tensor degree.
struct KindAt {
  int kind = 0; ///< index into Manifest.kinds
  int tp = 1;
  bool sp = false;
  /// Largest number of its tp ranks on one node; 0: all of them are on one.
  int perNode = 0;
  int state = 0; ///< index into CostModel::states()
};

/// Returns the kind as it is compiled for the tensor degree, or else for tp=1.
inline const plan::LayerKind &compiledKind(const plan::Manifest &manifest,
                                           const KindAt &at) {
  for (const plan::TensorDegree &degree : manifest.degrees())
    if (degree.tp() == at.tp && degree.sp() == at.sp)
      return degree.kinds(at.kind);
  return manifest.kinds(at.kind);
}

/// Returns the rate that a device reaches. `reach` 0 means all of it.
inline double reached(double rate, double reach) {
  return reach > 0 ? rate * reach : rate;
}

} // namespace dyna

#endif // DYNA_RUNTIME_COST_KINDAT_H
