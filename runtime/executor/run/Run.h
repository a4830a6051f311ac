//===- Run.h - Holds the state of one phase while it runs -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Used by the files of the executor only.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RUN_RUN_H
#define DYNA_RUNTIME_EXECUTOR_RUN_RUN_H

#include "runtime/executor/rank/GraphSeat.h"
#include "runtime/executor/rank/RankMachine.h"
#include "runtime/executor/step/Staging.h"
#include "runtime/executor/step/Step.h"
#include "runtime/executor/step/SwitchCarrier.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/verify/StepVerifier.h"

#include <algorithm>

namespace dyna {

/// State of one run of a phase.
struct Run {
  Run(RankMachine &machine, GraphSeat &seat, const dyna_variant &variant,
      const VerifiedStep::Phase &verified, const MiniBatch &miniBatch,
      const StepScalars &scalars, StepResult &result)
      : machine(machine), seat(seat), variant(variant), plan(verified.plan),
        program(plan.ranks[machine.rank()]), samples(verified.samples),
        items(verified.turns.of(machine.rank())),
        turns(verified.turns.count(machine.rank())), miniBatch(miniBatch),
        scalars(scalars), result(result), blocks(seat.view(), plan, program),
        staging(plan.microBatchCount()), segments(plan.microBatchCount()),
        isMasked(seat.view().layers()), hasValues(seat.view().parameters()),
        isSliced(countSlices(plan).samples > 0),
        losses(static_cast<int>(seat.view().model().lossLayers().size())) {}

  const RankView &view() const { return seat.view(); }

  /// Return indices into the machine's results. First come squared norms of
  /// layers, which one phase of a step has, and then losses of micro-batches,
  /// phase after phase. Each micro-batch has one for each layer that gives one.
  int64_t normIndex(int layer) const { return layer; }
  int64_t lossIndex(int microBatch, int loss) const {
    return view().layers() + firstLoss +
           static_cast<int64_t>(microBatch) * losses + loss;
  }
  /// Returns the number of results that are losses of this phase.
  int64_t lossCount() const {
    return static_cast<int64_t>(plan.microBatchCount()) * losses;
  }

  /// Returns 1 / target tokens of the mini-batch.
  double inverseTargets() const {
    return plan.targetTokens > 0 ? 1.0 / plan.targetTokens : 0;
  }

  /// Returns the place of the running instruction's operand in the rank's
  /// region. An absent operand has no bytes, so any place will do.
  int64_t place(Operand operand) const {
    return program.places.dynamic +
           std::max<int64_t>(blocks.place(index, operand), 0);
  }
  void *block(Operand operand) const { return machine.dynamic(place(operand)); }

  RankMachine &machine;
  GraphSeat &seat;
  const dyna_variant &variant;
  const plan::Plan &plan;
  const plan::RankProgram &program;
  const std::vector<int64_t> &samples; ///< of the phase, in the mini-batch
  /// Items for which the rank waits for its turn; `nextItem` is the next of them.
  const std::vector<Turns::Item> &items;
  size_t nextItem = 0;
  const int turns;            ///< of the rank's device in this phase
  const MiniBatch &miniBatch; ///< of the step
  const StepScalars &scalars;
  StepResult &result;
  ProgramBlocks blocks;
  int index = 0;                       ///< of the instruction that runs
  std::vector<Staging> staging;        ///< of each micro-batch
  std::vector<dyna_segments> segments; ///< of each micro-batch
  bool hasNorm = false;
  /// Layers whose gradients are zero at pruned weights.
  std::vector<bool> isMasked;
  /// Parameters whose sparse values are up to date for this phase.
  std::vector<bool> hasValues;
  const bool isSliced;   ///< the plan slices samples
  const int losses;      ///< of each micro-batch: layers that give one
  bool isScaled = false; ///< the device works out the factor of clipping
  /// The last call of a micro-batch: its number and direction.
  int lastMicroBatch = -1;
  bool wasForward = false;
  SwitchCarrier *switches = nullptr; ///< null: the run has one graph
  int phase = 0;                     ///< of the step
  const std::vector<StepBlock> *blocksOfStep = nullptr; ///< of this rank
  int begin = 0; ///< instructions of the phases before
  int body = 0;  ///< first instruction of the phase's own memory

  /// Returns true if a block of the step exists while the instruction runs.
  bool has(const StepBlock &block) const {
    return block.first <= begin + index && begin + index <= block.last;
  }
  int64_t firstLoss = 0; ///< losses of the phases before
};

/// Execute the local part of an instruction (LayerCalls.cpp), and its exchange
/// with other ranks (Exchanges.cpp).
Status execute(Run &run, const plan::Instruction &i);
Status exchange(Run &run, const plan::Instruction &i);

/// Computes the norm of the whole gradient, and from it the factor of clipping.
/// Runs before the first update. A program with a norm but without updates, as
/// on a rank without parameters, runs it at its end. After it all ranks know if
/// the step is finite.
Status clipGradient(Run &run);

/// Makes the norm NaN if a loss of this phase or an earlier one is not finite.
/// So every rank knows of it before anything is updated.
Status noteLosses(Run &run);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_RUN_H
