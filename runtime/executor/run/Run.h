//===- Run.h - The state of one phase while it runs -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the files of the executor; not for others.
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

/// One run of a phase.
struct Run {
  Run(RankMachine &machine, GraphSeat &seat, const dyna_variant &variant,
      const VerifiedStep::Phase &verified, const MiniBatch &miniBatch,
      const StepScalars &scalars, StepResult &result)
      : machine(machine), seat(seat), variant(variant), plan(verified.plan),
        program(plan.ranks[machine.rank()]), samples(verified.samples),
        miniBatch(miniBatch), scalars(scalars), result(result),
        blocks(seat.view(), plan, program), staging(plan.microBatchCount()),
        segments(plan.microBatchCount()), isMasked(seat.view().layers()),
        hasValues(seat.view().parameters()),
        isSliced(countSlices(plan).samples > 0) {}

  const RankView &view() const { return seat.view(); }

  /// The machine's results: squared norms of layers, which one phase of a step
  /// has, then losses of micro-batches, phase after phase.
  int64_t normIndex(int layer) const { return layer; }
  int64_t lossIndex(int microBatch) const {
    return view().layers() + firstLoss + microBatch;
  }

  /// Where the running instruction's operand lies in the rank's region. One that is
  /// not there has no bytes: anywhere will do.
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
  const MiniBatch &miniBatch;          ///< of the step
  const StepScalars &scalars;
  StepResult &result;
  ProgramBlocks blocks;
  int index = 0;                       ///< of the instruction that runs
  std::vector<Staging> staging;        ///< of each micro-batch
  std::vector<dyna_segments> segments; ///< of each micro-batch
  bool hasNorm = false;
  /// Layers whose gradients have zeros where weights are pruned.
  std::vector<bool> isMasked;
  /// Parameters whose sparse values are those of this phase.
  std::vector<bool> hasValues;
  const bool isSliced;   ///< the plan slices samples
  bool isScaled = false; ///< the device works out the factor of clipping
  /// The last call of a micro-batch: its number and direction.
  int lastMicroBatch = -1;
  bool wasForward = false;
  SwitchCarrier *switches = nullptr; ///< null: the run has one graph
  int phase = 0;                     ///< of the step
  const std::vector<StepBlock> *blocksOfStep = nullptr; ///< of this rank
  int begin = 0; ///< instructions of the phases before
  int body = 0;  ///< the instruction at which its own memory begins

  /// Whether a block of the step is there while the instruction runs.
  bool has(const StepBlock &block) const {
    return block.first <= begin + index && begin + index <= block.last;
  }
  int64_t firstLoss = 0; ///< losses of the phases before
};

/// Does what an instruction says (LayerCalls.cpp); what it does with other ranks
/// (Exchanges.cpp).
Status execute(Run &run, const plan::Instruction &i);
Status exchange(Run &run, const plan::Instruction &i);

/// The norm of the whole gradient, and from it the factor of clipping: before the
/// first update, or at the end of a program that has a norm and updates nothing, as
/// that of a rank without parameters. All ranks know then if a step is finite.
Status clipGradient(Run &run);

/// A loss that is not finite, of this phase or one before, makes the norm no
/// number, so that every rank knows of it before anything is updated.
Status noteLosses(Run &run);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_RUN_H
