//===- Step.h - Declares arguments and results of a step --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_STEP_H
#define DYNA_RUNTIME_EXECUTOR_STEP_STEP_H

#include "runtime/abi/Abi.h"
#include "runtime/transport/Transport.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// Scalars of one optimizer step. The `gradient_scale` of the optimizer is set
/// by the executor, to the address where the device computes it.
struct StepScalars {
  int64_t step = 0; ///< from 0; messages and metrics count from 1
  dyna_optimizer optimizer = {};
  double clip = 0; ///< global-norm limit, 0: none
  /// Number of steps, from this one on, that may be not finite. After one more,
  /// no step changes anything. If another step is in flight at launch, the
  /// device uses the count that it leaves.
  int64_t skipsLeft = INT64_MAX;
  /// The update adds |weight * gradient| to scores, if there are any.
  bool addsScores = false;
  /// Gradients of pruned weights become their scores.
  bool scoresPruned = false;
};

/// Bytes that switches sent to one rank.
struct SwitchedBytes {
  int64_t values = 0, gradients = 0;
};

/// Resources that a step used on one rank.
struct RankUse {
  double busySeconds = 0; ///< by the wall clock, in layer functions and updates
  int64_t peakBytes = 0;  ///< of its arena: persistent tensors, and the plan's
  double flops = 0;       ///< as in StepResult, and so the fields below
  double switchSeconds = 0;
  int64_t switchBytes = 0;
  double coreWaitSeconds = 0;
};

struct StepResult {
  /// True if the step was dropped, because a rank was asked to stop
  /// (ExecutorOptions::stops). Equal on all ranks. No other field then counts,
  /// and parameters and optimizer state are unchanged.
  bool isDropped = false;
  /// Sum of the token losses, added up in f64 in the order of the
  /// micro-batches. In a model with exits, losses count with their weights.
  double lossSum = 0;
  std::vector<double> microBatchLosses;
  /// Use of all ranks of the job; empty if there are no losses.
  std::vector<RankUse> uses;
  /// Norm of the whole gradient before clipping; 0 without GRAD_NORM. NaN if it
  /// or a loss is not finite. Then parameters and optimizer state are unchanged
  /// on all ranks, and gradients are cleared.
  double gradientNorm = 0;
  /// Squared norms of the gradients that layers update, by layer, before
  /// clipping. Empty without GRAD_NORM, and on ranks without a place.
  std::vector<double> layerNorms;
  /// Busy seconds of this rank, as in RankUse.
  double busySeconds = 0;
  /// Seconds by layer, in functions of micro-batches, summed over all ranks.
  /// Empty unless ExecutorOptions::sharesLayerTimes.
  std::vector<double> layerSeconds;
  /// Flops of matrix products, including recomputed ones: as counted by
  /// kernels, and by the manifest's formulas for the called functions.
  double flops = 0, formulaFlops = 0;
  int64_t keptBytes = 0; ///< largest number in kept blocks at one time
  /// Largest number of bytes in stores of slices and sums of their gradients at
  /// one time.
  int64_t storeBytes = 0;
  int64_t liveBytes = 0;    ///< largest number in all blocks at one time
  int64_t dynamicBytes = 0; ///< of the plan's region
  /// Seconds in which the rank could run but had no core, because of other work
  /// on the machine. 0 unless ExecutorOptions::timesCoreWaits. Of several
  /// ranks, the largest.
  double coreWaitSeconds = 0;
  Traffic traffic; ///< bytes that this rank sent
  /// Part of it that switches sent, by rank; empty in a step of one graph.
  std::vector<SwitchedBytes> switches;
  // For a step of several graphs: seconds in instructions of switches, and the
  // bytes that they sent to other ranks. Over several ranks, the largest and
  // the sum. In results of RankTeam these fields, `flops` and `coreWaitSeconds`
  // cover the ranks of all processes, if there are losses.
  double switchSeconds = 0;
  int64_t switchBytes = 0;
  /// Sum of the token losses of each layer that gives one, without its weight
  /// (Model::lossLayers).
  std::vector<double> layerLosses;
  /// Losses before weights, by micro-batch and then by layer that gives one. On
  /// a rank, and until all ranks share them, zero for layers of other ranks.
  std::vector<double> lossParts;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_STEP_H
