//===- PlanVerifier.h - Verifies a plan before it runs ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every plan must pass these rules before it runs, wherever it comes from: made
// on line, read from a file, or changed by hand.
//
// - (P1) Identity. The plan was made for this model (manifest hash) and
//   strategy, and has one program for each of its ranks.
// - (P2) Segments. Segments name samples of the mini-batch, none longer than
//   the model's positions, and cover every token once. A segment that is longer
//   than its sample is padded at its end, which no token sees. Segments and
//   their keys have stream 0: cross-attention is not supported yet. Keys of a
//   segment are its own tokens and all earlier ones of its sample. Slices of a
//   sample are in micro-batches of one replica, in the order of their tokens,
//   and all attention is then causal. `target_tokens` counts the targets of the
//   mini-batch. There are at most `maxMicroBatches`.
// - (P3) Order. Every micro-batch passes every layer of every stage forward and
//   backward, or every layer evaluates every micro-batch: exactly once and in
//   order. An edge's value is sent after its producer has made it, and used by
//   its consumer after it was received. In every layer, slices of a sample run
//   forward in order, and backward in reverse (SliceOrder.h).
// - (P4) Recomputation happens before backward if forward did not keep all
//   tiers, and only then.
// - (P5) Updates. All parameters are updated once, after all micro-batches have
//   added their gradients, and after these are reduced over the ranks that
//   share them. The gradient norms of all layers, combined over ranks, are
//   known before the first update, so that a step that is not finite changes
//   nothing. If norms are not wanted (UpdateRules), no rank computes one. With
//   ZeRO, layers run after the rows of other ranks were gathered. A parameter
//   is in one exchange at a time, and nothing writes it meanwhile.
// - (P6) Blocks. Instructions use blocks after they were taken and before they
//   were given back, and all are given back. Fields that an instruction does
//   not have (`Instructions.def`) are 0. It states a place for each block that
//   it takes, and for no other. A plan that is no phase of a step has no places
//   of a phase (StepMemory.h).
// - (P7) Blocks that are alive at one time do not overlap.
// - (P8) Each rank's region fits the limit.
// - (P9) Every send has one receive of the same message: direction, edge and
//   micro-batch. Its bytes and its ends follow from them.
// - (P10) Both ends of a channel, an unordered pair of ranks, start their
//   messages in one order. All ranks of a group start their exchanges in one
//   order, with those inside layer functions. Tensor-parallel ranks run the
//   same functions of the same layers and micro-batches, in the same modes and
//   order.
// - (P11) No rank waits for ever, on any transport. This must hold even if a
//   rank runs its starts one after another: messages, exchanges of every group,
//   those inside layer functions. Each start ends only when all its ranks have
//   reached it. Two ranks that share a device take turns besides (Turns.h).
//
// P11 is stricter than threads and MPI need, where two groups, or a message and
// a group, may overtake each other. Communicators of NCCL that share ranks may
// not, and the rules must not depend on the transport:
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
  /// Targets of the mini-batch that are in the loss; the plan must count as
  /// many. The value is -1 if only the lengths of samples are known: a plan may
  /// then count from one to all of their tokens. Whoever runs plans knows the
  /// targets.
  int64_t targets = -1;
  /// True for a phase of a step (StepVerifier.h). It counts the targets of the
  /// whole mini-batch, and may have switches.
  bool isPhase = false;
  /// True for a phase of a graph other than home. A switch brings its values,
  /// whole, and another takes its gradients once they are reduced. Nothing is
  /// gathered or updated.
  bool isSwitched = false;
  /// Receives the starts of ranks, if given. P11 is then verified for the whole
  /// step, not here.
  ExchangeStarts *starts = nullptr;
  /// Set by a failure, if given.
  PlanPosition *failedAt = nullptr;
  UpdateRules updates = {};
};

/// Verifies a plan. `lengths[i]` are the tokens of sample i of the mini-batch.
/// Linear in the number of instructions, times a logarithm of the live blocks.
Status verifyPlan(const ExecutableGraph &graph, const plan::Plan &plan,
                  const std::vector<int64_t> &lengths,
                  const VerifyOptions &options);

/// Verifies what programs of some ranks alone allow, P1 to P8; ignores programs
/// of others.
Status verifyRanks(const ExecutableGraph &graph, const plan::Plan &plan,
                   const std::vector<int> &ranks,
                   const std::vector<int64_t> &lengths,
                   const VerifyOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PLANVERIFIER_H
