//===- StepMemory.cpp - Lists the memory of phases in a rank's region -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/StepMemory.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/GradientUse.h"
#include "runtime/plan/program/PlanRules.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

namespace {

constexpr StepBlockKind allKinds[] = {
    StepBlockKind::Values, StepBlockKind::Gradients, StepBlockKind::Dynamic,
    StepBlockKind::ValueTransit, StepBlockKind::GradientTransit};

/// Range of instructions, from the first to the last.
struct Span {
  int first = -1, last = -1;

  bool isEmpty() const { return first < 0; }
  void add(int time) {
    if (isEmpty())
      first = time;
    last = time;
  }
};

/// When things happen to a phase on one rank.
struct PhaseTimes {
  int body = 0;      ///< first instruction after the head
  Span own;          ///< all instructions except switches
  Span come, go;     ///< switches of its values, of its gradients
  int lastValue = 0; ///< wait of the next phase's values; 0: none
};

std::vector<PhaseTimes> timesOf(const plan::StepPlan &step, int rank) {
  std::vector<PhaseTimes> times(step.phases.size());
  int begin = 0;
  for (int k = 0; k < step.phaseCount(); ++k) {
    const plan::RankProgram &program = step.phases[k].plan.ranks[rank];
    times[k].body = begin + headOf(program, k);
    for (int index = 0; index < program.count(); ++index) {
      const Instruction &i = program.instructions[index];
      const ExchangeOp op = exchangeOf(i.op);
      const int time = begin + index;
      if (!op.isSwitch()) {
        times[k].own.add(time);
      } else if (op.kind == ExchangeKind::ValueSwitch) {
        times[i.phase].come.add(time);
        if (i.phase > 0)
          times[i.phase - 1].lastValue = time;
      } else {
        times[i.phase].go.add(time);
      }
    }
    begin += program.count();
  }
  return times;
}

std::string describe(const StepBlock &block) {
  return formatText("%s of phase %d", stepBlockName(block.kind), block.phase);
}

} // namespace

const char *stepBlockName(StepBlockKind kind) {
  switch (kind) {
  case StepBlockKind::Values:
    return "values";
  case StepBlockKind::Gradients:
    return "gradients";
  case StepBlockKind::Dynamic:
    return "dynamic region";
  case StepBlockKind::ValueTransit:
    return "transit of values";
  case StepBlockKind::GradientTransit:
    return "transit of gradients";
  }
  return "";
}

int64_t &placeIn(plan::PhasePlaces &places, StepBlockKind kind) {
  switch (kind) {
  case StepBlockKind::Values:
    return places.values;
  case StepBlockKind::Gradients:
    return places.gradients;
  case StepBlockKind::ValueTransit:
    return places.valueTransit;
  case StepBlockKind::GradientTransit:
    return places.gradientTransit;
  case StepBlockKind::Dynamic:
    break;
  }
  return places.dynamic;
}

int64_t placeIn(const plan::PhasePlaces &places, StepBlockKind kind) {
  plan::PhasePlaces copy = places;
  return placeIn(copy, kind);
}

bool trains(const plan::StepPlan &step) {
  return std::all_of(
      step.phases.begin(), step.phases.end(),
      [](const plan::Phase &phase) { return trains(phase.plan); });
}

int headOf(const plan::RankProgram &program, int phase) {
  int head = 0;
  for (; head < program.count(); ++head) {
    const Instruction &i = program.instructions[head];
    const ExchangeOp op = exchangeOf(i.op);
    if (!op.isSwitch() ||
        i.phase != (op.kind == ExchangeKind::ValueSwitch ? phase : phase - 1))
      break;
  }
  return head;
}

bool addsLate(const plan::Plan &behind, int phase, int rank) {
  const plan::RankProgram &program = behind.ranks[rank];
  if (behind.microBatchCount() == 0)
    return false;
  for (int at = headOf(program, phase + 1); at < program.count(); ++at)
    if (const Instruction &i = program.instructions[at];
        exchangeOf(i.op).kind == ExchangeKind::GradientSwitch &&
        i.phase == phase)
      return true;
  return false;
}

std::vector<StepBlock>
stepBlocks(const SwitchTable &switches,
           const std::vector<SwitchTable::PhaseSwitches> &phases,
           const plan::StepPlan &step, bool trains, int rank) {
  std::vector<StepBlock> blocks;
  const std::vector<PhaseTimes> times = timesOf(step, rank);
  for (int k = 0; k < step.phaseCount(); ++k) {
    const plan::RankProgram &program = step.phases[k].plan.ranks[rank];
    const PhaseTimes &at = times[k];
    auto add = [&](StepBlockKind kind, int64_t bytes, int first, int last) {
      if (bytes > 0)
        blocks.push_back({kind, k, bytes, placeIn(program.places, kind), first,
                          std::max(first, last)});
    };
    add(StepBlockKind::Dynamic, program.dynamicBytes, at.body, at.own.last);
    if (!phases[k].values)
      continue;
    const HeldParameters &held = switches.held(phases[k].graph, rank);
    add(StepBlockKind::Values, held.values,
        at.come.isEmpty() ? at.body : std::min(at.come.first, at.body),
        std::max({at.own.last, at.come.last, at.lastValue}));
    const GraphSwitch::Side &come = phases[k].values->sides[rank];
    add(StepBlockKind::ValueTransit, come.passedBytes, at.come.first,
        at.come.last);
    if (!trains)
      continue;
    add(StepBlockKind::Gradients, held.gradients, at.body,
        std::max(at.own.last, at.go.last));
    const GraphSwitch::Side &go = phases[k].gradients->sides[rank];
    // Only home comes after the last of the other phases.
    const bool isLate = k + 2 == step.phaseCount() &&
                        addsLate(step.phases.back().plan, k, rank);
    add(StepBlockKind::GradientTransit,
        go.passedBytes + (isLate ? go.gotBytes : 0), at.go.first, at.go.last);
  }
  return blocks;
}

int64_t stepBytes(const std::vector<StepBlock> &blocks) {
  int64_t bytes = 0;
  for (const StepBlock &block : blocks)
    bytes = std::max(bytes, block.end());
  return bytes;
}

int64_t stepBytes(const std::vector<StepBlock> &blocks, int phase) {
  int64_t bytes = 0;
  for (const StepBlock &own : blocks)
    if (own.phase == phase && own.kind == StepBlockKind::Dynamic)
      for (const StepBlock &block : blocks)
        if (block.first <= own.last && own.first <= block.last)
          bytes = std::max(bytes, block.end());
  return bytes;
}

/// Verifies P6: places are given for existing blocks, and for nothing else.
static Status checkPlaces(const plan::StepPlan &step,
                          const std::vector<StepBlock> &blocks, int rank,
                          int &phase) {
  for (phase = 0; phase < step.phaseCount(); ++phase)
    for (StepBlockKind kind : allKinds) {
      const int64_t place =
          placeIn(step.phases[phase].plan.ranks[rank].places, kind);
      const bool isThere = std::any_of(
          blocks.begin(), blocks.end(), [&](const StepBlock &block) {
            return block.phase == phase && block.kind == kind;
          });
      const int64_t none = placeIn(plan::PhasePlaces(), kind);
      if (!isThere && place != none)
        return refuse(
            PlanRule::There,
            formatText("has the place %d for its %s, of which there are none",
                       place, stepBlockName(kind)));
      if (isThere && (place < 0 || place % plan::placeAlignment != 0))
        return refuse(
            PlanRule::There,
            place == plan::noPlace
                ? formatText("has no place for its %s", stepBlockName(kind))
                : formatText("has its %s at offset %d, which is negative or "
                             "not a multiple of %d",
                             stepBlockName(kind), place, plan::placeAlignment));
    }
  return Status::ok();
}

static Status checkBlocks(const plan::StepPlan &step,
                          const std::vector<StepBlock> &blocks, int rank,
                          int64_t limit, int &phase) {
  DYNA_RETURN_IF_ERROR(checkPlaces(step, blocks, rank, phase));
  for (size_t number = 0; number < blocks.size(); ++number) {
    const StepBlock &block = blocks[number];
    phase = block.phase;
    if (block.bytes > limit || block.place > limit - block.bytes)
      return refuse(PlanRule::Fits,
                    formatText("has its %s, %d bytes, at offset %d, but the "
                               "limit is %d",
                               stepBlockName(block.kind), block.bytes,
                               block.place, limit));
    for (size_t other = 0; other < number; ++other) {
      const StepBlock &before = blocks[other];
      if (before.first > block.last || block.first > before.last ||
          before.place >= block.end() || block.place >= before.end())
        continue;
      return refuse(
          PlanRule::Apart,
          formatText("has its %s at offset %d, over the %s at offset %d, "
                     "in use",
                     stepBlockName(block.kind), block.place, describe(before),
                     before.place));
    }
  }
  return Status::ok();
}

Status checkStepMemory(const plan::StepPlan &step,
                       const std::vector<StepBlock> &blocks, int rank,
                       int64_t limit, int &phase) {
  const Status status = checkBlocks(step, blocks, rank, limit, phase);
  if (status.isOk())
    return status;
  const std::string what =
      status.message().substr(std::string("plan: ").size());
  return Status(
      status.code(),
      step.phaseCount() > 1
          ? formatText("plan: phase %d rank %d: %s", phase, rank, what)
          : formatText("plan: rank %d: %s", rank, what));
}

} // namespace dyna
