//===- TensorDegree.h - What a strategy asks of the compiler ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_TENSORDEGREE_H
#define DYNA_PASSES_DISTRIBUTE_TENSORDEGREE_H

#include "runtime/layout/Mesh.h"
#include "runtime/plan/model/Strategy.h"

namespace mlir::dyna {

/// Layer functions are compiled for a tensor degree; the rest of a strategy is
/// data at run time.
struct TensorDegree {
  int64_t tp = 1;
  /// Activations between layers are split over tokens.
  bool sequence = false;

  /// "", ".tp2" or ".tp2.sp": what names of layers end in.
  std::string suffix() const;
  /// The axis tp alone.
  ::dyna::Mesh mesh() const;
  bool operator==(const TensorDegree &other) const {
    return tp == other.tp && sequence == other.sequence;
  }
};

/// One strategy, or several separated by `;`.
::dyna::StatusOr<std::vector<::dyna::Strategy>>
strategiesOf(const std::string &text);

/// The degrees of strategies without tp=1, each once.
std::vector<TensorDegree>
tensorDegreesOf(const std::vector<::dyna::Strategy> &strategies);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_TENSORDEGREE_H
