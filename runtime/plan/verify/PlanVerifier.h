//===- PlanVerifier.h - The proof of a plan ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What must hold before a plan may run. Every plan passes here, wherever it
// comes from: made on line, read from a file, or changed by hand.
//
// - (P1) it was made for this model (manifest hash) and strategy, and has one
//   program for each of its ranks;
// - (P2) segments name samples of the mini-batch, none longer than the model's
//   positions, and cover every token once. A segment that is longer than its sample is
//   padded behind it, where no token looks. Segments and their keys are of stream 0:
//   cross-attention is not supported yet. Keys of a segment are its own tokens and all
//   earlier ones of its sample. Slices of a sample are in micro-batches of one replica,
//   in the order of their tokens, and all attention is then causal. `target_tokens`
//   counts the targets of the mini-batch. There are at most `maxMicroBatches`;
// - (P3) either every micro-batch passes every layer of every stage forward and
//   backward, or every micro-batch is evaluated by every layer: exactly once
//   and in order; what an edge carries between stages is sent after its producer
//   has made it, and its consumer uses it after it was received. In every layer, slices
//   of a sample run forward in order, and backward in reverse (SliceOrder.h);
// - (P4) recomputation happens before backward where forward did not keep all,
//   and only there;
// - (P5) all parameters are updated once, after all micro-batches have given
//   their gradients, and these are reduced over the ranks that share them. The
//   gradient norms of all layers, of several ranks combined, are known before
//   the first update: a step that is not finite changes nothing. Whoever wants
//   no norms says so (UpdateRules), and then no rank has one. With ZeRO, layers
//   run after the rows of other ranks were gathered. A parameter is in one
//   exchange at a time, and nothing writes it meanwhile;
// - (P6) nothing is read that is not there: blocks are used after they were
//   taken and before they were given back, and all are given back; fields that
//   an instruction has not (`Instructions.def`) are 0, and it states a place for
//   each block that it takes, and for no other; a plan that is no phase of a
//   step has no places of one (StepMemory.h);
// - (P7) blocks alive at one time do not overlap;
// - (P8) each rank's region fits the limit;
// - (P9) every send has one receive of the same message: direction, edge and
//   micro-batch (its bytes and its ends follow from them);
// - (P10) both ends of a channel, an unordered pair of ranks, start their
//   messages in one order, and all ranks of a group their exchanges, those that
//   layer functions make included; tensor-parallel ranks run the same functions
//   of the same layers and micro-batches, in the same modes and order;
// - (P11) no rank waits for ever, on any transport: even if a rank carries out
//   what it starts one after another (messages, exchanges of every group, those
//   inside layer functions) and each ends only when all that take part have
//   come to it.
//
// P11 is stricter than what threads and MPI need, which let two groups, or a
// message and a group, overtake each other. Communicators of NCCL that share
// ranks do not, and what is legal must not depend on the transport:
// docs/decisions/0016-one-order-of-exchanges.md.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLANVERIFIER_H
#define DYNA_RUNTIME_PLAN_PLANVERIFIER_H

#include "runtime/plan/verify/ExchangeChecker.h"
#include "runtime/plan/verify/UpdateRules.h"

#include <vector>

namespace dyna {

struct VerifyOptions {
  /// Bytes of the dynamic region of each rank; empty: no limit.
  std::vector<int64_t> limits;
  /// Targets of the mini-batch that are in the loss, which the plan must count.
  /// -1 where only the lengths of samples are known: a plan may then count from
  /// one to all of their tokens. Who runs plans knows the targets.
  int64_t targets = -1;
  /// It is a phase of a step (StepVerifier.h): it counts the targets of the whole
  /// mini-batch, and switches may stand in it.
  bool isPhase = false;
  /// Of a graph other than home: its values come by a switch, whole, and its
  /// gradients leave by one, once they are reduced. Nothing is gathered or
  /// updated.
  bool isSwitched = false;
  /// Gets what ranks start together, if given: P11 is then proven of the whole
  /// step, not here.
  ExchangeStarts *starts = nullptr;
  /// Set by a failure, if given.
  PlanPosition *failedAt = nullptr;
  UpdateRules updates = {};
};

/// `lengths[i]`: tokens of sample i of the mini-batch. Linear in the number of
/// instructions, but for a logarithm of the blocks alive.
Status verifyPlan(const ExecutableGraph &graph, const plan::Plan &plan,
                  const std::vector<int64_t> &lengths,
                  const VerifyOptions &options);

/// What can be asked of the programs of some ranks alone, P1 to P8; programs of
/// others are not looked at.
Status verifyRanks(const ExecutableGraph &graph, const plan::Plan &plan,
                   const std::vector<int> &ranks,
                   const std::vector<int64_t> &lengths,
                   const VerifyOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PLANVERIFIER_H
