//===- Staging.h - A micro-batch on its way to the device -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STAGING_H
#define DYNA_RUNTIME_EXECUTOR_STAGING_H

#include "runtime/abi/Abi.h"
#include "runtime/data/BatchReader.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/RankView.h"

#include <vector>

namespace dyna {

/// The host's side of LOAD: what is copied to the device, with the tables that the
/// model's code asks for.
struct Staging {
  std::vector<int32_t> tokens;
  std::vector<unsigned char> batch; ///< as BatchLayout says
  BatchLayout layout;
  Extent extent;
  int64_t longest = 0;      ///< tokens of the longest segment
  int64_t targets = 0;      ///< that are in the loss
  int64_t pairs = 0;        ///< of a query and a key of its segment
  int64_t causalPairs = 0;  ///< those whose key is not after the query
  int64_t tokenRuns = 0;    ///< where there is a table of them
  int64_t positionRuns = 0; ///< the same
};

/// Lays the samples of a micro-batch end to end. A sample with a longer segment is
/// padded by tokens without targets. Segments number the `samples` of their phase,
/// which number those of the mini-batch. Fails if a token or target id is not in the
/// vocabulary, or a sample is longer than the model's positions. Linear in tokens;
/// tables take that time for each digit, of 11 bits, of the largest token id or
/// position.
StatusOr<Staging> stage(const Model &model, const plan::MicroBatch &microBatch,
                        const std::vector<int64_t> &samples,
                        const MiniBatch &miniBatch);

/// What layer functions are told of it when `batch` has been copied to the
/// device's memory at `address`.
dyna_segments segmentsAt(const Staging &staging, const void *address);

/// Targets of a mini-batch that are in the loss, counted.
int64_t countTargets(const MiniBatch &miniBatch);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STAGING_H
