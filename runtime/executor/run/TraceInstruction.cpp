//===- TraceInstruction.cpp - Traces instructions -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/CoreTime.h"
#include "runtime/executor/run/Executor.h"
#include "runtime/executor/run/Run.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/InstructionTable.h"

namespace dyna {

using plan::Instruction;

Executor::Moment Executor::now() const {
  return {options_.trace->now(), coreSeconds(),
          machine_.traffic().messageBytes};
}

void Executor::traceBetweenSteps(const char *name, const char *category,
                                 int64_t step, const Moment &before) {
  const Moment after = now();
  TraceSlice slice;
  slice.name = name;
  slice.category = category;
  slice.step = step;
  slice.version = version_;
  slice.beginSeconds = before.time;
  slice.endSeconds = after.time;
  slice.coreSeconds = after.core - before.core;
  slice.sentBytes = after.sentBytes - before.sentBytes;
  options_.trace->add(slice);
}

/// Phases number their micro-batches anew.
static int messageNumber(const Run &run, const Instruction &i) {
  constexpr int phaseBits = 24;
  return i.microBatch + (run.phase > 0 ? run.phase << phaseBits : 0);
}

/// Adds the end of an arrow to the slice of a message.
static void addArrow(TraceSlice &slice, const Run &run, const Instruction &i,
                     int own) {
  const ExchangeOp op = exchangeOf(i.op);
  if (!op.isMessage() || op.sends != op.starts)
    return;
  const int peer =
      run.seat.graph().peerOf(own, edgeOf(i), op.isTowardsConsumer());
  slice.arrow = messageArrow(
      slice.step, op.sends ? own : peer, op.sends ? peer : own, op.isGradient(),
      messageNumber(run, i), run.seat.graph().channelIndex(edgeOf(i)));
  slice.startsArrow = op.sends;
}

Status Executor::trace(const Run &run, const Instruction &i,
                       const Moment &before, int64_t liveBytes) {
  TraceRecorder &recorder = *options_.trace;
  if (recorder.isFull())
    return Status::ok();
  DYNA_RETURN_IF_ERROR(clock_->mark(recorder.size()));
  TraceSlice slice;
  slice.name = instructionName(i.op);
  slice.category = namesLayer(i.op)
                       ? run.view().kind(run.view().layerOf(i)).name().c_str()
                       : "step";
  slice.step = run.scalars.step;
  slice.layer = namesLayer(i.op) ? i.layer : -1;
  slice.microBatch = isPerMicroBatch(i.op) ? i.microBatch : -1;
  if (run.isSliced && slice.microBatch >= 0)
    slice.tokens = tokensOf(run.plan.microBatches[i.microBatch]);
  slice.phase = run.switches ? run.phase : -1;
  slice.version = version_;
  if (exchangeOf(i.op).isSwitch()) {
    slice.category = "switch";
    slice.phase = i.phase;
    slice.bucket = i.bucket;
    slice.track = exchangeOf(i.op).kind == ExchangeKind::ValueSwitch
                      ? TRACK_VALUE_SWITCH
                      : TRACK_GRADIENT_SWITCH;
  }
  if (run.switches && slice.phase >= 0)
    slice.strategy = run.switches->strategyOf(slice.phase);
  const Moment after = now();
  slice.beginSeconds = before.time;
  slice.endSeconds = after.time;
  slice.coreSeconds = after.core - before.core;
  slice.liveBytes = liveBytes;
  slice.sentBytes = after.sentBytes - before.sentBytes;
  slice.flops = static_cast<double>(machine_.context().matrix_flops);
  addArrow(slice, run, i, machine_.rank());
  recorder.add(slice);
  slice.category = "exchange";
  slice.track = TRACK_INSTRUCTIONS;
  slice.bucket = -1;
  slice.arrow = 0;
  slice.flops = 0;
  slice.sentBytes = 0;
  slice.coreSeconds = -1;
  slice.isInner = true;
  for (const Transport::Spent &spent : spent_) {
    slice.name = spent.what;
    slice.beginSeconds = recorder.at(spent.begin);
    slice.endSeconds = recorder.at(spent.end);
    recorder.add(slice);
  }
  return Status::ok();
}

} // namespace dyna
