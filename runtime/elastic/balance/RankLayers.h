//===- RankLayers.h - Assigns layers to ranks in any order ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_RANKLAYERS_H
#define DYNA_RUNTIME_ELASTIC_RANKLAYERS_H

#include <cstdint>
#include <vector>

namespace dyna {

/// Layers of each rank, in the order in which they lie there. Dyna executes only those
/// that keep the order of the model, with a layer on every rank: a cut. Published
/// algorithms also make others, which are simulated and compared.
struct RankLayers {
  std::vector<std::vector<int>>
      ranks; ///< numbers of layers; empty: a free rank

  static RankLayers ofCut(const std::vector<int> &cut);

  /// Returns true if ranks in order have the layers in order. Otherwise a rank that runs
  /// its layers one after another computes another function than the model.
  bool keepsOrder() const;
  /// Returns the layers of each rank if all have some, and in order; otherwise nothing.
  std::vector<int> cut() const;
  /// Returns how many ranks have layers.
  int active() const;
  /// Returns how many layers lie on another rank than the layer before. If the function
  /// of the model is kept, these are the messages of a forward pass.
  int borders() const;
  /// Returns the sum of values of the layers of each rank.
  std::vector<double> sums(const std::vector<double> &values) const;
};

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_RANKLAYERS_H
