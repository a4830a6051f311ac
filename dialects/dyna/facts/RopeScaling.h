//===- RopeScaling.h - Computes the frequencies of rotary positions -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FACTS_ROPESCALING_H
#define DYNA_DIALECTS_DYNA_FACTS_ROPESCALING_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// The plain numbers of a `RopeScalingAttr`.
struct RopeScaling {
  double factor = 0; ///< 0: rotations are not scaled
  double lowFreqFactor = 0, highFreqFactor = 0;
  int64_t originalPositions = 0; ///< 0: the scaling is `linear`

  static RopeScaling of(RopeScalingAttr attribute);
  /// Returns the attribute; null if rotations are not scaled.
  RopeScalingAttr attribute(MLIRContext *context) const;
  /// Returns text for people and comparisons: "default", "linear, factor 4" or
  /// "llama3, ...".
  std::string text() const;

  bool operator<(const RopeScaling &other) const;
  bool operator==(const RopeScaling &other) const {
    return !(*this < other) && !(other < *this);
  }
};

/// Returns the radians per position of each pair of features of a head.
SmallVector<double> rotaryFrequencies(RotaryOp op);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FACTS_ROPESCALING_H
