//===- SliceOrder.cpp - Verifies the order of slices (P3) -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/SliceOrder.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/PlanRules.h"

namespace dyna {

using plan::Instruction;

Status SliceOrder::step(const Instruction &i) {
  switch (i.op) {
  case Instruction::FORWARD:
  case Instruction::EVALUATE:
  case Instruction::BACKWARD:
  case Instruction::BACKWARD_INPUT:
    break;
  case Instruction::TAKE_KEYS:
  case Instruction::CLEAR_KEY_GRADS:
  case Instruction::FREE_KEYS:
    return use(i, bundles_.of(i.microBatch));
  default:
    return Status::ok();
  }
  if (bundles_.empty())
    return Status::ok();
  const BundlePart &part = bundles_.of(i.microBatch);
  if (part.bundle < 0)
    return Status::ok();
  const bool isForward =
      i.op == Instruction::FORWARD || i.op == Instruction::EVALUATE;
  return isForward ? forward(i, part) : backward(i, part);
}

Status SliceOrder::forward(const Instruction &i, const BundlePart &part) {
  auto &layer = passed_[i.layer];
  for (int m : part.before)
    if (!layer[m].forward)
      return refuse(PlanRule::Ordered,
                    formatText("micro-batch %d has the slice before it, and "
                               "has not passed the layer",
                               m));
  layer[i.microBatch].forward = true;
  evaluates_ = i.op == Instruction::EVALUATE;
  return Status::ok();
}

Status SliceOrder::backward(const Instruction &i, const BundlePart &part) {
  auto &layer = passed_[i.layer];
  for (int m : part.behind)
    if (!layer[m].backward)
      return refuse(
          PlanRule::Ordered,
          formatText("micro-batch %d has the slice behind it, and its "
                     "backward has not passed the layer",
                     m));
  layer[i.microBatch].backward = true;
  return Status::ok();
}

Status SliceOrder::use(const Instruction &i, const BundlePart &part) {
  if (part.bundle < 0)
    return refuse(PlanRule::Ordered,
                  formatText("micro-batch %d has no slice of a sample, and "
                             "needs no store of keys",
                             i.microBatch));
  // A plan has one form only: each instruction names its neighbouring
  // micro-batch.
  const bool runsForward = evaluates_ || !view_.hasBackward(i.layer);
  const bool isAtEnd = i.op == Instruction::CLEAR_KEY_GRADS ||
                       (i.op == Instruction::FREE_KEYS && runsForward);
  if (const int m = isAtEnd ? part.last : part.bundle; i.microBatch != m)
    return refuse(
        PlanRule::Ordered,
        formatText("names micro-batch %d, but the %s one of the bundle "
                   "is %d",
                   i.microBatch, isAtEnd ? "last" : "first", m));
  Stores &stores = stores_[i.layer][part.bundle];
  bool &done = i.op == Instruction::TAKE_KEYS         ? stores.taken
               : i.op == Instruction::CLEAR_KEY_GRADS ? stores.cleared
                                                      : stores.freed;
  if (done)
    return refuse(PlanRule::Ordered,
                  formatText("the layer did this before for the slices of "
                             "bundle %d: what they have there would be lost",
                             part.bundle));
  done = true;
  return Status::ok();
}

} // namespace dyna
