//===- DropStep.cpp - Ends a step early without a trace -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step may take longer than a scheduler waits between its signal and the end.
// So a rank that is asked to stop drops the step (docs/decisions/0074). It
// leaves out all further calls of layers, and makes a loss NaN. It leaves out
// no exchange, because other ranks wait for those. All ranks have the norm of
// the gradient before any of them updates. This norm is then NaN too, and
// nothing changes.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/Executor.h"
#include "runtime/executor/run/Run.h"
#include "runtime/plan/program/InstructionTable.h"

namespace dyna {

using plan::Instruction;

/// Returns true if a plan that updates first asks every rank if the gradient is
/// finite. Only then can one rank drop the step of all.
static bool asksBeforeUpdates(const plan::Plan &plan) {
  bool updates = false, asks = false;
  for (const plan::RankProgram &program : plan.ranks)
    for (const Instruction &i : program.instructions) {
      updates |= i.op == Instruction::UPDATE;
      asks |= i.op == (plan.ranks.size() > 1 ? Instruction::COMBINE_NORM
                                             : Instruction::GRAD_NORM);
    }
  return asks || !updates;
}

Status Executor::lookForStop(Run &run, const Instruction &i) {
  if (!options_.stops || isDropping_ || !isPerMicroBatch(i.op) || roleOf(i) < 0)
    return Status::ok();
  const bool isForward =
      i.op == Instruction::FORWARD || i.op == Instruction::EVALUATE;
  const bool isNext =
      run.lastMicroBatch != i.microBatch || run.wasForward != isForward;
  run.lastMicroBatch = i.microBatch;
  run.wasForward = isForward;
  if (!isNext)
    return Status::ok();
  bool stops = options_.stops();
  if (HostExchange *host = options_.host) {
    if (stops)
      host->tellStop();
    DYNA_ASSIGN_OR_RETURN(bool isTold, host->hasHeardStop());
    stops |= isTold;
    // Layer functions exchange among shards: all stop here, or they wait for
    // ever.
    if (const std::vector<int> shards = shardsOf(run.seat); shards.size() > 1) {
      DYNA_ASSIGN_OR_RETURN(stops, host->any(shards, stops));
    }
  }
  if (!stops || !asksBeforeUpdates(*updatingPlan_))
    return Status::ok();
  isDropping_ = true;
  // A loss of NaN keeps all ranks from updating (noteLosses).
  return machine_.spoilResult(run.lossIndex(i.microBatch, 0));
}

bool Executor::leavesOut(const Instruction &i) const {
  return isDropping_ && isPerMicroBatch(i.op) &&
         (roleOf(i) >= 0 || i.op == Instruction::LOAD);
}

} // namespace dyna
