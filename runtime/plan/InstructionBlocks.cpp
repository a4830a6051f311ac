//===- InstructionBlocks.cpp - What instructions do with memory -----------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/InstructionBlocks.h"

#include "runtime/base/Text.h"
#include "runtime/plan/PersistentLayout.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

const char *blockKindName(BlockKind kind) {
  switch (kind) {
  case BlockKind::Batch:
    return "batch";
  case BlockKind::Kept:
    return "kept";
  case BlockKind::Late:
    return "late";
  case BlockKind::Gradient:
    return "gradient";
  case BlockKind::Workspace:
    return "workspace";
  case BlockKind::Norm:
    return "norm";
  }
  return "unknown";
}

Extent extentOf(const plan::MicroBatch &microBatch) {
  Extent extent;
  for (const plan::Segment &segment : microBatch.segments())
    extent.tq += segment.length();
  extent.tkv = extent.tq;
  extent.s = microBatch.segments_size();
  return extent;
}

std::vector<std::vector<int>> microBatchesOfReplicas(const plan::Plan &plan,
                                                     int replicas) {
  std::vector<std::vector<int>> own(replicas);
  for (int m = 0; m < plan.micro_batches_size(); ++m)
    own[plan.micro_batches(m).replica()].push_back(m);
  return own;
}

std::string describeInstruction(const Instruction &instruction) {
  std::string text = instructionName(instruction.op());
  if (namesLayer(instruction.op()))
    text += formatText(" layer %d", instruction.layer());
  if (isPerMicroBatch(instruction.op()))
    text += formatText(" micro-batch %d", instruction.micro_batch());
  if (ExchangeOp message = exchangeOf(instruction.op()); message.isMessage())
    text += formatText(" %s rank %d", message.sends ? "to" : "from",
                       instruction.peer());
  return text;
}

InstructionBlocks::InstructionBlocks(const ManifestView &view,
                                     const plan::Plan &plan,
                                     const plan::RankProgram &program,
                                     const Extent *largest)
    : view_(view), program_(program) {
  for (int index = 0; index < program.instructions_size(); ++index) {
    const Instruction &i = program.instructions(index);
    if (!isPerMicroBatch(i.op()))
      continue;
    MicroBatch &microBatch = microBatches_[i.micro_batch()];
    if (microBatch.layers.empty()) {
      microBatch.layers.resize(view.layers());
      microBatch.extent =
          largest ? *largest : extentOf(plan.micro_batches(i.micro_batch()));
    }
    if (!exchangeOf(i.op()).isMessage())
      microBatch.lastInstruction = index;
    Facts &facts = microBatch.layers[i.layer()];
    if (i.op() == Instruction::FORWARD)
      facts.mode = i.recompute();
    facts.split |= i.op() == Instruction::BACKWARD_INPUT;
    facts.recomputed |= i.op() == Instruction::RECOMPUTE;
    facts.evaluated |= i.op() == Instruction::EVALUATE;
  }
}

int64_t InstructionBlocks::keptBytes(int microBatch, int layer) const {
  if (facts(microBatch, layer).evaluated)
    return view_.inputBytes(layer, extent(microBatch));
  return view_.keptBytes(layer, mode(microBatch, layer), extent(microBatch));
}

int64_t InstructionBlocks::lateBytes(int microBatch, int layer,
                                     bool deferred) const {
  return view_.lateBytes(layer, mode(microBatch, layer), deferred,
                         extent(microBatch));
}

std::vector<BlockUse> InstructionBlocks::uses(int index) const {
  const Instruction &i = program_.instructions(index);
  std::vector<BlockUse> uses;
  int role = roleOf(i);
  switch (i.op()) {
  case Instruction::GRAD_NORM:
    uses.push_back({BlockKind::Norm, -1, i.layer(), Field::Out,
                    DYNA_BLOCK_ALIGNMENT, true, true, true});
    break;
  default:
    if (isPerMicroBatch(i.op()))
      addLayerUses(index, uses);
  }
  if (role >= 0) {
    Extent extent =
        isPerMicroBatch(i.op()) ? this->extent(i.micro_batch()) : Extent();
    uses.push_back(
        {BlockKind::Workspace, i.micro_batch(), i.layer(), Field::Workspace,
         view_.workspaceBytes(i.layer(), role, extent), true, true, true});
  }
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [](const BlockUse &use) { return use.bytes <= 0; }),
             uses.end());
  return uses;
}

void InstructionBlocks::addLayerUses(int index,
                                     std::vector<BlockUse> &uses) const {
  const Instruction &i = program_.instructions(index);
  int m = i.micro_batch(), l = i.layer();
  if (exchangeOf(i.op()).isMessage())
    return addMessage(i, uses);
  bool ends = microBatches_.at(m).lastInstruction == index;
  bool loads = i.op() == Instruction::LOAD;
  bool givesLoss = view_.givesLoss(l) && (i.op() == Instruction::FORWARD ||
                                          i.op() == Instruction::EVALUATE);
  uses.push_back({BlockKind::Batch, m, -1, Field::Batch,
                  batchLayout(extent(m)).bytes, loads, ends,
                  loads || givesLoss});
  switch (i.op()) {
  case Instruction::LOAD:
    if (view_.hasLayer(0))
      uses.push_back({BlockKind::Kept, m, 0, Field::Out, keptBytes(m, 0), true,
                      false, true});
    break;
  case Instruction::FORWARD:
  case Instruction::EVALUATE:
    addForward(i, uses);
    break;
  case Instruction::RECOMPUTE:
    uses.push_back({BlockKind::Kept, m, l, Field::Kept, keptBytes(m, l), false,
                    false, false});
    uses.push_back({BlockKind::Late, m, l, Field::Late,
                    lateBytes(m, l, facts(m, l).split), true, false, true});
    break;
  case Instruction::BACKWARD:
  case Instruction::BACKWARD_INPUT:
  case Instruction::BACKWARD_WEIGHT:
    addBackward(i, uses);
    break;
  case Instruction::FREE:
    uses.push_back({BlockKind::Kept, m, l, Field::Kept, keptBytes(m, l), false,
                    true, false});
    break;
  default:
    break;
  }
}

int64_t InstructionBlocks::inputBlockBytes(int microBatch, int layer) const {
  return view_.hasLayer(layer) ? keptBytes(microBatch, layer)
                               : view_.inputBytes(layer, extent(microBatch));
}

void InstructionBlocks::addMessage(const Instruction &i,
                                   std::vector<BlockUse> &uses) const {
  ExchangeOp message = exchangeOf(i.op());
  int m = i.micro_batch(), l = i.layer();
  BlockUse use = {BlockKind::Kept, m, l, Field::Kept, inputBlockBytes(m, l)};
  if (message.isGradient()) {
    use.kind = BlockKind::Gradient;
    use.field = message.sends ? Field::GradOut : Field::GradIn;
    use.bytes = view_.gradientBytes(l, extent(m));
  }
  use.acquires = !message.sends && message.starts;
  use.releases = message.sends && !message.starts;
  use.writes = !message.sends;
  uses.push_back(use);
}

void InstructionBlocks::addForward(const Instruction &i,
                                   std::vector<BlockUse> &uses) const {
  int m = i.micro_batch(), l = i.layer();
  bool evaluates = i.op() == Instruction::EVALUATE;
  uses.push_back({BlockKind::Kept, m, l, Field::Kept, keptBytes(m, l), false,
                  evaluates, !evaluates});
  if (!evaluates)
    uses.push_back({BlockKind::Late, m, l, Field::Late, lateBytes(m, l, false),
                    true, true, true});
  if (l + 1 < view_.layers())
    uses.push_back({BlockKind::Kept, m, l + 1, Field::Out,
                    inputBlockBytes(m, l + 1), true, false, true});
}

void InstructionBlocks::addBackward(const Instruction &i,
                                    std::vector<BlockUse> &uses) const {
  int m = i.micro_batch(), l = i.layer();
  bool whole = i.op() == Instruction::BACKWARD;
  bool weight = i.op() == Instruction::BACKWARD_WEIGHT;
  uses.push_back({BlockKind::Kept, m, l, Field::Kept, keptBytes(m, l), false,
                  false, false});
  // Without recomputation the late block holds the deferred tier alone, and
  // BACKWARD_INPUT is the first to need it.
  bool takesLate = !weight && !facts(m, l).recomputed;
  uses.push_back({BlockKind::Late, m, l, Field::Late,
                  lateBytes(m, l, facts(m, l).split), takesLate,
                  whole || weight, i.op() == Instruction::BACKWARD_INPUT});
  if (weight)
    return;
  if (l + 1 < view_.layers())
    uses.push_back({BlockKind::Gradient, m, l + 1, Field::GradIn,
                    view_.gradientBytes(l + 1, extent(m)), false, true, false});
  if (l > 0)
    uses.push_back({BlockKind::Gradient, m, l, Field::GradOut,
                    view_.gradientBytes(l, extent(m)), true, false, true});
}

} // namespace dyna
