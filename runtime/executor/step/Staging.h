//===- Staging.h - Prepares a micro-batch for the device --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_STAGING_H
#define DYNA_RUNTIME_EXECUTOR_STEP_STAGING_H

#include "runtime/abi/Abi.h"
#include "runtime/data/BatchReader.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/program/Bundles.h"

#include <vector>

namespace dyna {

/// A micro-batch on the host, before LOAD copies it to the device. It has the tables
/// that the model's code asks for.
struct Staging {
  std::vector<int32_t> tokens;
  std::vector<unsigned char> batch; ///< in the form of BatchLayout
  BatchLayout layout;
  Load load;
  /// Queries and keys of the segment that has the most of them.
  int64_t longestQuery = 0, longestKey = 0;
  int64_t stored = 0; ///< rows of the bundle's store; 0: no segment is a slice
  /// Lengths of these tables, if the model's code asks for them.
  int64_t tokenRuns = 0, positionRuns = 0;
};

/// Lays the samples of a micro-batch end to end. If a segment is longer than
/// its sample, tokens without targets pad it. Segments number the `samples` of
/// their phase, which number those of the mini-batch. `bundle` gives the places
/// of the keys of slices. Fails if a token or target id is not in the
/// vocabulary, or a sample is longer than the model's positions. Linear in
/// tokens. Tables add that time for each digit, of 11 bits, of the largest
/// token id or position.
StatusOr<Staging> stage(const Model &model, const plan::MicroBatch &microBatch,
                        const BundlePart &bundle,
                        const std::vector<int64_t> &samples,
                        const MiniBatch &miniBatch);

/// Returns the segments for layer functions, if `batch` was copied to the device's
/// memory at `address`.
dyna_segments segmentsAt(const Staging &staging, const void *address);

/// Counts the targets of a mini-batch that are in the loss.
int64_t countTargets(const MiniBatch &miniBatch);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_STAGING_H
