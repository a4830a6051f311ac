//===- TensorDegree.h - Finds the tensor degrees of strategies --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_TENSORDEGREE_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_TENSORDEGREE_H

#include "runtime/layout/Mesh.h"
#include "runtime/plan/model/Strategy.h"

namespace mlir::dyna {

/// The part of a strategy that layer functions are compiled for. The rest is
/// data at run time.
struct TensorDegree {
  int64_t tp = 1;
  /// Activations between layers are split over tokens.
  bool sequence = false;

  /// Returns the suffix of layer names: "", ".tp2" or ".tp2.sp".
  std::string suffix() const;
  /// Returns a mesh with the axis tp alone.
  ::dyna::Mesh mesh() const;
  bool operator==(const TensorDegree &other) const {
    return tp == other.tp && sequence == other.sequence;
  }
};

/// Parses one strategy, or several separated by `;`.
::dyna::StatusOr<std::vector<::dyna::Strategy>>
strategiesOf(const std::string &text);

/// Returns the degrees of strategies without tp=1, each once.
std::vector<TensorDegree>
tensorDegreesOf(const std::vector<::dyna::Strategy> &strategies);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_TENSORDEGREE_H
