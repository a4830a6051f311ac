//===- ExecPlan.cpp - Verifies plans --------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "runtime/plan/program/InstructionTable.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;

static LogicalResult verifyNotNegative(Operation *op, StringRef name,
                                       int64_t value) {
  if (value >= 0)
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' not to be negative, but got " << value;
}

bool PlanOp::hasPrograms() { return !getOps<RankOp>().empty(); }

LogicalResult DraftAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef, int64_t inFlight, int64_t tokens,
                                StringRef, bool, bool, int64_t rankMemory,
                                int64_t longestSample, StringRef) {
  // DRAFT1
  if (inFlight < 1 || inFlight > std::numeric_limits<int32_t>::max())
    return emitError() << "expects 'in_flight' to be 1 to 2147483647, but got "
                       << inFlight;
  if (tokens < 1)
    return emitError() << "expects 'tokens_per_micro_batch' to be at least 1, "
                          "but got "
                       << tokens;
  if (rankMemory < 0)
    return emitError() << "expects 'rank_memory' not to be negative, but got "
                       << rankMemory;
  if (longestSample < 0)
    return emitError()
           << "expects 'longest_sample' not to be negative, but got "
           << longestSample;
  return success();
}

/// Verifies PLAN8.
static LogicalResult verifyDraft(RankOp rank) {
  if (rank.getDynamicBytes() != 0)
    return rank.emitOpError()
           << "of a draft expects 'dynamic_bytes' 0, but got "
           << rank.getDynamicBytes();
  for (auto item : rank.getOps<DoOp>()) {
    auto op = static_cast<::dyna::plan::Instruction::Op>(item.getInstruction());
    if (!::dyna::isCompute(op))
      return item.emitOpError()
             << "of a draft computes for a micro-batch: what "
                "ranks exchange and update comes later";
    for (int64_t place : item.getPlaces())
      if (place != ::dyna::plan::noPlace)
        return item.emitOpError()
               << "of a draft expects no places, but got " << place;
  }
  return success();
}

LogicalResult PlanOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // PLAN1
  if (getGraphAttr() &&
      !symbols.lookupNearestSymbolFrom<GraphOp>(*this, getGraphAttr()))
    return emitOpError() << "expects " << getGraphAttr()
                         << " to be an exec.graph";
  return success();
}

LogicalResult PlanOp::verifyRegions() {
  // PLAN2
  bool sawRank = false;
  for (Operation &item : *getBody().begin()) {
    if (!isa<MicroBatchOp, RankOp>(item))
      return item.emitOpError(
          "is no part of an exec.plan, which lists micro-batches and ranks");
    if (isa<MicroBatchOp>(item) && sawRank)
      return item.emitOpError("expects micro-batches to stand before ranks");
    sawRank |= isa<RankOp>(item);
  }
  // PLAN3
  if (failed(verifyNotNegative(*this, "target_tokens",
                               static_cast<int64_t>(getTargetTokens()))))
    return failure();
  for (int64_t length : getLengths().value_or(ArrayRef<int64_t>()))
    if (failed(verifyNotNegative(*this, "lengths", length)))
      return failure();
  // PLAN4
  if (getLengths() && getLengths()->empty())
    return emitOpError("expects 'lengths' to list at least one sample");
  // PLAN6
  if (getGraph() && getStrategy())
    return emitOpError() << "states the strategy " << getStrategyAttr()
                         << ", which " << getGraphAttr() << " says";
  // PLAN7
  if (isDraft() && !getGraph())
    return emitOpError("is a draft, which says with 'of' what its graph is");
  // PLAN5
  for (auto [index, rank] : llvm::enumerate(getOps<RankOp>()))
    if (rank.getRank() != index)
      return rank.emitOpError()
             << "expects rank " << index << " next, but got rank "
             << static_cast<int32_t>(rank.getRank());
  // PLAN8
  for (auto rank : getOps<RankOp>())
    if (isDraft() && failed(verifyDraft(rank)))
      return failure();
  return success();
}

static LogicalResult verifyKeys(MicroBatchOp op) {
  // MICROBATCH2
  auto isStream = [](int64_t number) {
    return number >= 0 && number <= std::numeric_limits<int32_t>::max();
  };
  const ArrayRef<int64_t> streams =
      op.getStreams().value_or(ArrayRef<int64_t>());
  const ArrayRef<int64_t> keys = op.getKeys().value_or(ArrayRef<int64_t>());
  bool isInRange = llvm::all_of(streams, isStream), isUsual = true;
  for (size_t at = 0; at < keys.size(); at += 3) {
    isInRange &= isStream(keys[at]) && keys[at + 1] >= 0 &&
                 keys[at + 2] >= plan::Segment::ownEnd &&
                 keys[at + 2] < std::numeric_limits<int64_t>::max();
    isUsual &= keys[at] == 0 && keys[at + 1] == 0 &&
               keys[at + 2] == plan::Segment::ownEnd;
  }
  if (!isInRange)
    return op.emitOpError()
           << "expects streams of 31 bits and keys that are not negative";
  // MICROBATCH3
  if ((op.getKeys() && isUsual) ||
      (op.getStreams() &&
       llvm::all_of(streams, [](int64_t stream) { return stream == 0; })))
    return op.emitOpError()
           << "expects streams and keys to be left out if all are the default";
  return success();
}

LogicalResult MicroBatchOp::verify() {
  // MICROBATCH1
  if (getBegins().size() != getSamples().size() ||
      getLengths().size() != getSamples().size())
    return emitOpError() << "expects a begin and a length for each of "
                         << getSamples().size() << " samples, but got "
                         << getBegins().size() << " and "
                         << getLengths().size();
  const size_t segments = getSamples().size();
  if ((getStreams() && getStreams()->size() != segments) ||
      (getKeys() && getKeys()->size() != 3 * segments))
    return emitOpError()
           << "expects a stream and three numbers of keys for each "
              "of "
           << segments << " samples";
  // MICROBATCH2
  if (failed(verifyNotNegative(*this, "replica",
                               static_cast<int32_t>(getReplica()))))
    return failure();
  for (ArrayRef<int64_t> list : {getSamples(), getBegins(), getLengths()})
    for (int64_t value : list)
      if (value < 0)
        return emitOpError()
               << "expects samples, begins and lengths not to be negative, "
                  "but got "
               << value;
  return verifyKeys(*this);
}

LogicalResult RankOp::verifyRegions() {
  // RANK1
  if (failed(verifyNotNegative(*this, "dynamic_bytes",
                               static_cast<int64_t>(getDynamicBytes()))))
    return failure();
  for (StringRef place :
       {"at", "values", "gradients", "values_transit", "gradients_transit"})
    if (auto number = (*this)->getAttrOfType<IntegerAttr>(place))
      if (failed(verifyNotNegative(*this, place, number.getInt())))
        return failure();
  // RANK2
  for (Operation &item : *getBody().begin())
    if (!isa<DoOp>(item))
      return item.emitOpError(
          "is no instruction: an exec.rank lists exec.do alone");
  return success();
}
