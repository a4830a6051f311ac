//===- Step.h - What a step takes and gives ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_STEP_H
#define DYNA_RUNTIME_EXECUTOR_STEP_STEP_H

#include "runtime/abi/Abi.h"
#include "runtime/transport/Transport.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// The numbers of one optimizer step. `gradient_scale` of the optimizer is set
/// here, to where the device has worked it out.
struct StepScalars {
  int64_t step = 0; ///< from 0 on; messages say one more, as metrics do
  dyna_optimizer optimizer = {};
  double clip = 0; ///< global-norm limit, 0: none
  /// So many steps, from this one on, may be not finite: behind one more, no step
  /// changes anything. Of a step that is launched while another is in flight it is
  /// what that one leaves.
  int64_t skipsLeft = INT64_MAX;
};

/// Bytes that switches sent to one rank.
struct SwitchedBytes {
  int64_t values = 0, gradients = 0;
};

/// What a step took of one rank.
struct RankUse {
  double busySeconds = 0; ///< on the wall, in layer functions and updates
  int64_t peakBytes = 0;  ///< of its arena: what stays, and the plan's own
  double flops = 0;       ///< StepResult's, as the next
  double switchSeconds = 0;
  int64_t switchBytes = 0;
  double coreWaitSeconds = 0;
};

struct StepResult {
  /// A rank was asked to stop (ExecutorOptions::stops) and dropped the step: no
  /// number of it counts, and parameters and optimizer state stay as they were.
  /// True if the step was dropped for a signal; equal on all ranks.
  bool isDropped = false;
  /// Sum of the token losses, added up in f64 in the order of the
  /// micro-batches.
  double lossSum = 0;
  std::vector<double> microBatchLosses;
  /// Of all ranks, wherever they run; none where there are no losses.
  std::vector<RankUse> uses;
  /// Of the whole gradient before clipping; 0 without GRAD_NORM, and no number
  /// where it or a loss is not finite: then parameters and optimizer state stay
  /// as they were, on all ranks, and the gradients are cleared.
  double gradientNorm = 0;
  /// Of this rank, as RankUse has it.
  double busySeconds = 0;
  /// Seconds by layer, in functions of micro-batches, of all ranks together. Empty
  /// unless ExecutorOptions::sharesLayerTimes.
  std::vector<double> layerSeconds;
  /// Of matrix products, recomputed ones included: what the kernels counted,
  /// and what the manifest says of the functions that were called.
  double flops = 0, formulaFlops = 0;
  int64_t keptBytes = 0; ///< most that lay in kept blocks at one time
  /// Most that lay in stores of slices and sums of their gradients at one time.
  int64_t storeBytes = 0;
  int64_t liveBytes = 0;    ///< most that lay in all blocks at one time
  int64_t dynamicBytes = 0; ///< the plan's own
  /// In which the rank could run, but had no core: others of the machine had
  /// them. 0 unless ExecutorOptions::timesCoreWaits; of several ranks the longest.
  double coreWaitSeconds = 0;
  Traffic traffic; ///< what this rank sent
  /// Of it, what switches sent, by rank; none in a step of one graph.
  std::vector<SwitchedBytes> switches;
  // Of a step of several graphs: in instructions of switches; what they sent to
  // other ranks. Of several ranks the longest, and the sum; RankTeam's, as its
  // `flops` and `coreWaitSeconds`, are of the ranks of all processes where there
  // are losses.
  double switchSeconds = 0;
  int64_t switchBytes = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_STEP_H
