//===- MemoryCheck.cpp - Compares accesses with plans ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/MemoryCheck.h"

#include "runtime/base/text/Text.h"
#include "runtime/executor/run/Run.h"

#include <algorithm>
#include <cstring>

namespace dyna {

using plan::Instruction;

/// Others write here between its start and its wait.
static bool isWrittenByOthers(const ExchangeOp &exchange) {
  return exchange.isOfParameters() || (exchange.isMessage() && !exchange.sends);
}

Status MemoryCheck::begin(const Run &run) {
  seat_ = &run.seat;
  switches_ = run.switches;
  if (run.begin == 0)
    report_ = MemoryReport();
  alive_.clear();
  inFlight_.clear();
  image_.resize(arenaBytes_);
  present_.resize(arenaBytes_);
  if (run.begin == 0)
    DYNA_RETURN_IF_ERROR(poisonFree(run));
  DYNA_RETURN_IF_ERROR(takeImage());
  std::swap(image_, present_);
  return Status::ok();
}

Status MemoryCheck::openBody(const Run &run) {
  DYNA_RETURN_IF_ERROR(poisonFree(run));
  DYNA_RETURN_IF_ERROR(takeImage());
  std::swap(image_, present_);
  return Status::ok();
}

std::vector<MemoryCheck::Range> MemoryCheck::heldRanges(const Run &run) const {
  std::vector<Range> held;
  for (const StepBlock &block : *run.blocksOfStep)
    if (block.kind != StepBlockKind::Dynamic && run.has(block))
      held.push_back(
          {dynamicStart_ + block.place, dynamicStart_ + block.end()});
  return held;
}

Status MemoryCheck::poisonFree(const Run &run) {
  std::vector<Range> held = heldRanges(run);
  std::sort(held.begin(), held.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  held.push_back({dynamicEnd_, dynamicEnd_});
  int64_t at = dynamicStart_;
  for (const Range &range : held) {
    if (range.begin > at)
      DYNA_RETURN_IF_ERROR(machine_.fill(at, range.begin - at, poison));
    at = range.end;
  }
  return Status::ok();
}

void MemoryCheck::measureHeld(const Run &run) {
  for (const StepBlock &block : *run.blocksOfStep) {
    if (block.kind == StepBlockKind::Dynamic ||
        block.last != run.begin + run.index)
      continue;
    int64_t end = block.end();
    while (end > block.place && image_[dynamicStart_ + end - 1] == poison)
      --end;
    report_.touchedEnd = std::max(report_.touchedEnd, end);
  }
}

/// Returns the memory that other ranks may be writing.
std::vector<MemoryCheck::Range> MemoryCheck::flyingRanges() const {
  std::vector<Range> flying;
  for (const auto &[start, ranges] : inFlight_)
    flying.insert(flying.end(), ranges.begin(), ranges.end());
  const char *arena = static_cast<const char *>(machine_.persistent(0));
  for (const Strip &strip :
       switches_ ? switches_->arriving() : std::vector<Strip>())
    if (const auto *data = static_cast<const char *>(strip.data);
        strip.totalBytes() > 0)
      flying.push_back(
          {data - arena,
           data - arena + (strip.count - 1) * strip.stride + strip.bytes});
  return flying;
}

Status MemoryCheck::after(const Run &run, const Instruction &instruction) {
  ProgramBlocks::Uses uses = run.blocks.uses(run.index);
  for (const BlockUse &use : uses)
    if (use.takes) {
      int64_t begin = dynamicStart_ + run.program.places.dynamic +
                      run.blocks.blocks()[use.block].place;
      alive_[use.block] = {use.name, {begin, begin + use.bytes}};
    }
  std::vector<Range> writable = writableRanges(run, uses, instruction);
  ExchangeOp exchange = exchangeOf(instruction.op);
  std::tuple<ExchangeKind, int, int> name = {exchange.kind, instruction.layer,
                                             instruction.microBatch};
  if (isWrittenByOthers(exchange) && exchange.starts)
    inFlight_[name] = writable;
  const std::vector<Range> flying = flyingRanges();
  writable.insert(writable.end(), flying.begin(), flying.end());
  if (isWrittenByOthers(exchange) && !exchange.starts)
    inFlight_.erase(name);
  DYNA_RETURN_IF_ERROR(takeImage());
  DYNA_RETURN_IF_ERROR(compare(std::move(writable), instruction));
  std::swap(image_, present_);
  measureHeld(run);
  for (const BlockUse &use : uses)
    if (use.gives)
      DYNA_RETURN_IF_ERROR(release(use, instruction));
  return Status::ok();
}

/// Copies the arena to `present_`, but for what other ranks may be writing.
/// What stays behind there is not read: `compare` takes it as writable, and the
/// instruction that waits for it copies it.
Status MemoryCheck::takeImage() {
  std::vector<Range> flying = flyingRanges();
  std::sort(flying.begin(), flying.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  flying.push_back({arenaBytes_, arenaBytes_});
  int64_t at = 0;
  for (const Range &range : flying) {
    if (range.begin > at)
      DYNA_RETURN_IF_ERROR(
          machine_.toHost(present_.data() + at, at, range.begin - at));
    at = std::max(at, range.end);
  }
  return machine_.synchronize();
}

std::vector<MemoryCheck::Range>
MemoryCheck::writableRanges(const Run &run, const ProgramBlocks::Uses &uses,
                            const Instruction &instruction) const {
  std::vector<Range> ranges;
  for (const BlockUse &use : uses)
    if (use.writes)
      ranges.push_back(alive_.at(use.block).range);
  if (!exchangeOf(instruction.op).isSwitch()) {
    addParameterRanges(instruction, ranges);
    return ranges;
  }
  // Memory of the graphs of all phases, including home's.
  const std::vector<Range> held = heldRanges(run);
  ranges.insert(ranges.end(), held.begin(), held.end());
  ranges.push_back({0, dynamicStart_});
  ranges.push_back({dynamicEnd_, arenaBytes_});
  return ranges;
}

void MemoryCheck::addParameterRanges(const Instruction &instruction,
                                     std::vector<Range> &ranges) const {
  // Before a norm is taken the gradients of pruned weights become scores, and zero.
  const bool masks = instruction.op == Instruction::GRAD_NORM;
  if (!writesParameters(instruction.op) && !masks)
    return;
  const RankView &view = seat_->view();
  int layer = instruction.layer;
  int64_t master = elementBytes(view.masterType());
  const auto &list = view.layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool updated = view.updates(layer, slot);
    auto written = [&](ParameterUse what) {
      return writes(instruction.op, what) &&
             (updated || what == ParameterUse::UsedGradients);
    };
    auto add = [&](ParameterPart part, int64_t elements, int64_t element) {
      if (const int64_t begin = seat_->placeOf(p, part); begin >= 0)
        ranges.push_back({begin, begin + elements * element});
    };
    int64_t all = view.elements(p), rows = view.updatedElements(p);
    if (written(ParameterUse::UsedGradients) ||
        written(ParameterUse::UpdatedGradients) ||
        (masks && updated && view.model().hasMask(p)))
      add(ParameterPart::Gradient, all, elementBytes(view.gradientType()));
    if (updated && (masks || written(ParameterUse::Moments)))
      add(ParameterPart::Score, rows, master);
    if (written(ParameterUse::Masters))
      add(ParameterPart::Master, view.hasCopy(p) ? rows : all,
          elementBytes(view.masterType(p)));
    if (written(ParameterUse::Moments)) {
      add(ParameterPart::FirstMoment, rows, master);
      add(ParameterPart::SecondMoment, rows, master);
    }
    if (written(ParameterUse::Copies))
      add(ParameterPart::Copy, all, elementBytes(view.computeType(p)));
  }
}

Status MemoryCheck::compare(std::vector<Range> writable,
                            const Instruction &instruction) {
  std::sort(writable.begin(), writable.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  writable.push_back({arenaBytes_, arenaBytes_});
  int64_t at = 0;
  for (const Range &range : writable) {
    if (range.begin > at &&
        std::memcmp(image_.data() + at, present_.data() + at,
                    range.begin - at) != 0) {
      while (image_[at] == present_[at])
        ++at;
      return Status::internal(describeInstruction(instruction) +
                              " wrote where it must not: " + describeByte(at));
    }
    at = std::max(at, range.end);
  }
  return Status::ok();
}

std::string MemoryCheck::describeByte(int64_t at) const {
  if (at < dynamicStart_ || at >= dynamicEnd_)
    return formatText("byte %d of the parameters and their state",
                      at - machine_.parts().persistent);
  std::string text =
      formatText("byte %d of the dynamic region", at - dynamicStart_);
  for (const auto &[number, block] : alive_) {
    const Range &range = block.range;
    if (at < range.begin - DYNA_BLOCK_ALIGNMENT ||
        at >= range.end + DYNA_BLOCK_ALIGNMENT)
      continue;
    text += formatText(", %s the %s (bytes %d to %d)",
                       at < range.begin ? "just before"
                       : at < range.end ? "in"
                                        : "just behind",
                       describeBlock(block.name), range.begin - dynamicStart_,
                       range.end - dynamicStart_);
  }
  return text;
}

Status MemoryCheck::release(const BlockUse &use,
                            const Instruction &instruction) {
  auto found = alive_.find(use.block);
  Range range = found->second.range;
  alive_.erase(found);
  int64_t end = range.end;
  while (end > range.begin && image_[end - 1] == poison)
    --end;
  report_.blocks.push_back(
      {use.name, instruction.op, range.end - range.begin, end - range.begin});
  if (end > range.begin)
    report_.touchedEnd = std::max(report_.touchedEnd, end - dynamicStart_);
  std::memset(image_.data() + range.begin, poison, range.end - range.begin);
  return machine_.fill(range.begin, range.end - range.begin, poison);
}

} // namespace dyna
