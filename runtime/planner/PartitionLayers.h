//===- PartitionLayers.h - The cut of the layers into stages -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H
#define DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H

#include "runtime/plan/ManifestView.h"
#include "runtime/plan/Strategy.h"

#include <vector>

namespace dyna {

/// How many of the layers, in order, each of `stages` stages gets, so that the
/// largest sum of costs is as small as possible and no stage is empty; earlier
/// stages take as many as that allows. Costs are not negative, and there are at
/// least as many layers as stages. Exact: bisection over the sums of all runs
/// of layers, O(n^2 log n).
std::vector<int> partitionLayers(const std::vector<double> &costs, int stages);

/// Estimated work of each layer in a training step of `tokens` tokens in
/// samples of `sampleTokens`: matrix-product flops, the head's three times.
std::vector<double> layerCosts(const ManifestView &view, int64_t sampleTokens);

/// The strategy with `layers` filled in: as given, or cut by cost. Fails where
/// there are more stages than layers.
StatusOr<Strategy> chooseLayers(const ManifestView &view, Strategy strategy,
                                int64_t sampleTokens = 1024);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H
