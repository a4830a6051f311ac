//===- MemoryChecker.cpp - Verifies live blocks (P6, P7) ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/MemoryChecker.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/PlanRules.h"

namespace dyna {

using plan::Instruction;

Status MemoryChecker::step(int index, const Instruction &i) {
  DYNA_RETURN_IF_ERROR(checkPlaces(index, i));
  // First add blocks that exist, then new ones, then free: all operands of an
  // instruction are live while it runs.
  for (const BlockUse &use : blocks_.uses(index))
    if (use.block < 0)
      return refuse(PlanRule::There, "the " +
                                         blocks_.tables().describe(use.name) +
                                         " is used but is not there");
  for (const BlockUse &use : blocks_.uses(index))
    if (use.takes)
      DYNA_RETURN_IF_ERROR(take(use));
  for (const BlockUse &use : blocks_.uses(index))
    if (use.gives)
      alive_.erase(blocks_.blocks()[use.block].place);
  return Status::ok();
}

Status MemoryChecker::finish() const {
  if (alive_.empty())
    return Status::ok();
  return refuse(PlanRule::There,
                "the " +
                    blocks_.tables().describe(
                        blocks_.blocks()[alive_.begin()->second].name) +
                    " is never given back");
}

/// Places are said of what is taken, and of nothing else.
Status MemoryChecker::checkPlaces(int index, const Instruction &i) const {
  unsigned taken = 0;
  for (const BlockUse &use : blocks_.uses(index))
    if (use.takes)
      taken |= 1u << use.placeIndex;
  for (int place = 0; place < Instruction::maxTaken; ++place)
    if (i.places[place] != plan::noPlace && !(taken >> place & 1)) {
      const TakenOperands operands = takenBy(i.op);
      return refuse(PlanRule::There,
                    formatText("'%s' is %d, but it takes no such block here",
                               place < operands.count
                                   ? operandName(operands.operands[place])
                                   : "a place",
                               i.places[place]));
    }
  return Status::ok();
}

Status MemoryChecker::take(const BlockUse &use) {
  int64_t begin = blocks_.blocks()[use.block].place;
  if (use.isThereAlready)
    return refuse(PlanRule::There, "the " +
                                       blocks_.tables().describe(use.name) +
                                       " is taken twice");
  if (begin == plan::noPlace)
    return refuse(PlanRule::There,
                  formatText("the %s has no place: it needs '%s'",
                             blocks_.tables().describe(use.name),
                             operandName(use.operand)));
  if (begin < 0 || begin % DYNA_BLOCK_ALIGNMENT != 0)
    return refuse(PlanRule::There,
                  formatText("the %s lies at offset %d, which is negative or "
                             "not a multiple of %d",
                             blocks_.tables().describe(use.name), begin,
                             DYNA_BLOCK_ALIGNMENT));
  if (use.bytes > bytes_ || begin > bytes_ - use.bytes)
    return refuse(PlanRule::Fits,
                  formatText("the %s, %d bytes at offset %d, ends past the "
                             "region of %d bytes",
                             blocks_.tables().describe(use.name), use.bytes,
                             begin, bytes_));
  auto next = alive_.lower_bound(begin);
  if (next != alive_.end() && next->first < begin + use.bytes)
    return overlap(use, begin, next->second);
  if (next != alive_.begin())
    if (const Block &before = blocks_.blocks()[std::prev(next)->second];
        before.place + before.bytes > begin)
      return overlap(use, begin, std::prev(next)->second);
  alive_.emplace(begin, use.block);
  return Status::ok();
}

Status MemoryChecker::overlap(const BlockUse &use, int64_t place,
                              int other) const {
  const Block &block = blocks_.blocks()[other];
  return refuse(PlanRule::Apart,
                formatText("the %s at offset %d overlaps the %s at offset "
                           "%d, which is in use",
                           blocks_.tables().describe(use.name), place,
                           blocks_.tables().describe(block.name), block.place));
}

} // namespace dyna
