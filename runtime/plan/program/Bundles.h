//===- Bundles.h - Finds samples whose slices share a key store -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A sample is *sliced* if several micro-batches have a part of it. Its keys and values
// then outlive a micro-batch: they lie in a *store*, which each layer has for the
// samples of a *bundle* (runtime/abi/Abi.h).
//
// Two sliced samples belong to one bundle if a micro-batch has slices of both.
// So a micro-batch belongs to at most one bundle, and an instruction needs one
// store. A bundle is named by its first micro-batch. Its store has a row for
// each token of its sliced samples, in the order of their first slices.
//
// All of this follows from the segments of a plan, so plans do not state it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_BUNDLES_H
#define DYNA_RUNTIME_PLAN_BUNDLES_H

#include "runtime/base/text/TraceWriter.h"
#include "runtime/plan/program/Plan.h"

#include <unordered_map>
#include <vector>

namespace dyna {

/// Slices of one micro-batch.
struct BundlePart {
  int bundle = -1;  ///< first micro-batch of the bundle; -1: no slice
  int last = -1;    ///< last micro-batch of the bundle
  int64_t rows = 0; ///< rows of the bundle's store
  /// By segment: row of the sample's first token in the store; -1: a whole sample.
  std::vector<int64_t> storeRows;
  /// Micro-batches with the slices before, and after, those of this one.
  std::vector<int> before, behind;
};

class Bundles {
public:
  /// Makes an object without bundles.
  Bundles() = default;
  /// Finds the bundles of these micro-batches, which must be all of some replicas, in
  /// order. Linear in their segments, beside sorting the slices.
  Bundles(const plan::Plan &plan, const std::vector<int> &microBatches);

  /// Returns true if no micro-batch has a slice.
  bool empty() const { return parts_.empty(); }
  /// Returns the part of a micro-batch; one without a bundle if it has no slice.
  const BundlePart &of(int microBatch) const {
    static const BundlePart none;
    auto found = parts_.find(microBatch);
    return found == parts_.end() ? none : found->second;
  }

  /// Returns the predecessor of each micro-batch, as indices in `microBatches`:
  /// its slices come before on every stage. -1: none. All micro-batches of a
  /// bundle follow each other. Empty if there are no bundles.
  std::vector<int> previous(const std::vector<int> &microBatches) const;

private:
  std::unordered_map<int, BundlePart> parts_;
};

/// Returns true if the micro-batch begins inside a sample. Every sliced sample has such a
/// micro-batch.
bool continuesSample(const plan::MicroBatch &microBatch);

/// Samples of a plan that are sliced, and their slices.
struct SliceCount {
  int64_t samples = 0, slices = 0;
};
/// Counts the slices of a plan. Linear in the segments, and O(micro-batches) if
/// no sample is sliced.
SliceCount countSlices(const plan::Plan &plan);

/// Returns the tokens of a micro-batch, as a trace has them.
TraceTokens tokensOf(const plan::MicroBatch &microBatch);

/// Returns the bundles of these micro-batches; looks for them only if a micro-batch begins
/// inside a sample.
Bundles findBundles(const plan::Plan &plan,
                    const std::vector<int> &microBatches);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_BUNDLES_H
