//===- InstructionBlocks.cpp - What instructions do with memory -----------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/InstructionBlocks.h"

#include "runtime/plan/PersistentLayout.h"
#include "runtime/plan/Text.h"

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

int64_t offsetOf(const Instruction &instruction, OffsetField field) {
  switch (field) {
  case OffsetField::Kept:
    return instruction.kept_offset();
  case OffsetField::Late:
    return instruction.late_offset();
  case OffsetField::Out:
    return instruction.out_offset();
  case OffsetField::GradIn:
    return instruction.grad_in_offset();
  case OffsetField::GradOut:
    return instruction.grad_out_offset();
  case OffsetField::Workspace:
    return instruction.workspace_offset();
  case OffsetField::Batch:
    return instruction.batch_offset();
  }
  return -1;
}

void setOffset(Instruction &instruction, OffsetField field, int64_t value) {
  switch (field) {
  case OffsetField::Kept:
    return instruction.set_kept_offset(value);
  case OffsetField::Late:
    return instruction.set_late_offset(value);
  case OffsetField::Out:
    return instruction.set_out_offset(value);
  case OffsetField::GradIn:
    return instruction.set_grad_in_offset(value);
  case OffsetField::GradOut:
    return instruction.set_grad_out_offset(value);
  case OffsetField::Workspace:
    return instruction.set_workspace_offset(value);
  case OffsetField::Batch:
    return instruction.set_batch_offset(value);
  }
}

Extent extentOf(const plan::MicroBatch &microBatch) {
  Extent extent;
  for (const plan::Segment &segment : microBatch.segments())
    extent.tq += segment.length();
  extent.tkv = extent.tq;
  extent.s = microBatch.segments_size();
  return extent;
}

const char *instructionName(Instruction::Op op) {
  static const char *const names[] = {"unknown instruction",
                                      "LOAD",
                                      "FORWARD",
                                      "RECOMPUTE",
                                      "BACKWARD",
                                      "BACKWARD_INPUT",
                                      "BACKWARD_WEIGHT",
                                      "FREE",
                                      "GRAD_NORM",
                                      "UPDATE",
                                      "CAST_PARAMS",
                                      "EVALUATE"};
  return op >= 0 && op < 12 ? names[op] : names[0];
}

std::string describeInstruction(const Instruction &instruction) {
  std::string text = instructionName(instruction.op());
  if (instruction.op() != Instruction::LOAD)
    text += formatText(" layer %d", instruction.layer());
  bool perMicroBatch = instruction.op() != Instruction::GRAD_NORM &&
                       instruction.op() != Instruction::UPDATE &&
                       instruction.op() != Instruction::CAST_PARAMS;
  if (perMicroBatch)
    text += formatText(" micro-batch %d", instruction.micro_batch());
  return text;
}

int roleOf(const Instruction &instruction) {
  switch (instruction.op()) {
  case Instruction::FORWARD:
    return DYNA_ROLE_FORWARD;
  case Instruction::RECOMPUTE:
    return instruction.recompute() == plan::RECOMPUTE_FULL
               ? DYNA_ROLE_RECOMPUTE_FULL
               : DYNA_ROLE_RECOMPUTE_SELECTIVE;
  case Instruction::BACKWARD:
    return DYNA_ROLE_BACKWARD;
  case Instruction::BACKWARD_INPUT:
    return DYNA_ROLE_BACKWARD_INPUT;
  case Instruction::BACKWARD_WEIGHT:
    return DYNA_ROLE_BACKWARD_WEIGHT;
  case Instruction::GRAD_NORM:
    return DYNA_ROLE_GRAD_NORM;
  case Instruction::UPDATE:
    return DYNA_ROLE_UPDATE;
  case Instruction::CAST_PARAMS:
    return DYNA_ROLE_CAST;
  case Instruction::EVALUATE:
    return DYNA_ROLE_EVALUATE;
  default:
    return -1;
  }
}

InstructionBlocks::InstructionBlocks(const ManifestView &view,
                                     const plan::Plan &plan,
                                     const plan::RankProgram &program,
                                     const Extent *largest)
    : view_(view), program_(program),
      lastInstruction_(plan.micro_batches_size(), -1),
      facts_(static_cast<size_t>(plan.micro_batches_size()) * view.layers()) {
  for (const plan::MicroBatch &microBatch : plan.micro_batches())
    extents_.push_back(largest ? *largest : extentOf(microBatch));
  for (int index = 0; index < program.instructions_size(); ++index) {
    const Instruction &i = program.instructions(index);
    bool perMicroBatch = i.op() != Instruction::GRAD_NORM &&
                         i.op() != Instruction::UPDATE &&
                         i.op() != Instruction::CAST_PARAMS;
    if (!perMicroBatch)
      continue;
    lastInstruction_[i.micro_batch()] = index;
    Facts &facts = facts_[static_cast<size_t>(i.micro_batch()) * view.layers() +
                          i.layer()];
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
  bool perMicroBatch = false;
  switch (i.op()) {
  case Instruction::GRAD_NORM:
    uses.push_back({BlockKind::Norm, -1, i.layer(), OffsetField::Out,
                    DYNA_BLOCK_ALIGNMENT, true, true, true});
    break;
  case Instruction::UPDATE:
  case Instruction::CAST_PARAMS:
    break;
  default:
    perMicroBatch = true;
    addLayerUses(index, uses);
  }
  if (role >= 0) {
    Extent extent = perMicroBatch ? extents_[i.micro_batch()] : Extent();
    uses.push_back({BlockKind::Workspace, i.micro_batch(), i.layer(),
                    OffsetField::Workspace,
                    view_.workspaceBytes(i.layer(), role, extent), true, true,
                    true});
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
  bool ends = lastInstruction_[m] == index;
  bool loads = i.op() == Instruction::LOAD;
  bool givesLoss = l == view_.layers() - 1 && (i.op() == Instruction::FORWARD ||
                                               i.op() == Instruction::EVALUATE);
  uses.push_back({BlockKind::Batch, m, -1, OffsetField::Batch,
                  batchLayout(extents_[m]).bytes, loads, ends,
                  loads || givesLoss});
  switch (i.op()) {
  case Instruction::LOAD:
    uses.push_back({BlockKind::Kept, m, 0, OffsetField::Out, keptBytes(m, 0),
                    true, false, true});
    break;
  case Instruction::FORWARD:
  case Instruction::EVALUATE:
    addForward(i, uses);
    break;
  case Instruction::RECOMPUTE:
    uses.push_back({BlockKind::Kept, m, l, OffsetField::Kept, keptBytes(m, l),
                    false, false, false});
    uses.push_back({BlockKind::Late, m, l, OffsetField::Late,
                    lateBytes(m, l, facts(m, l).split), true, false, true});
    break;
  case Instruction::BACKWARD:
  case Instruction::BACKWARD_INPUT:
  case Instruction::BACKWARD_WEIGHT:
    addBackward(i, uses);
    break;
  case Instruction::FREE:
    uses.push_back({BlockKind::Kept, m, l, OffsetField::Kept, keptBytes(m, l),
                    false, true, false});
    break;
  default:
    break;
  }
}

void InstructionBlocks::addForward(const Instruction &i,
                                   std::vector<BlockUse> &uses) const {
  int m = i.micro_batch(), l = i.layer();
  bool evaluates = i.op() == Instruction::EVALUATE;
  uses.push_back({BlockKind::Kept, m, l, OffsetField::Kept, keptBytes(m, l),
                  false, evaluates, !evaluates});
  if (!evaluates)
    uses.push_back({BlockKind::Late, m, l, OffsetField::Late,
                    lateBytes(m, l, false), true, true, true});
  if (l + 1 < view_.layers())
    uses.push_back({BlockKind::Kept, m, l + 1, OffsetField::Out,
                    keptBytes(m, l + 1), true, false, true});
}

void InstructionBlocks::addBackward(const Instruction &i,
                                    std::vector<BlockUse> &uses) const {
  int m = i.micro_batch(), l = i.layer();
  bool whole = i.op() == Instruction::BACKWARD;
  bool weight = i.op() == Instruction::BACKWARD_WEIGHT;
  uses.push_back({BlockKind::Kept, m, l, OffsetField::Kept, keptBytes(m, l),
                  false, false, false});
  // Without recomputation the late block holds the deferred tier alone, and
  // BACKWARD_INPUT is the first to need it.
  bool takesLate = !weight && !facts(m, l).recomputed;
  uses.push_back({BlockKind::Late, m, l, OffsetField::Late,
                  lateBytes(m, l, facts(m, l).split), takesLate,
                  whole || weight, i.op() == Instruction::BACKWARD_INPUT});
  if (weight)
    return;
  if (l + 1 < view_.layers())
    uses.push_back({BlockKind::Gradient, m, l + 1, OffsetField::GradIn,
                    view_.gradientBytes(l + 1, extents_[m]), false, true,
                    false});
  if (l > 0)
    uses.push_back({BlockKind::Gradient, m, l, OffsetField::GradOut,
                    view_.gradientBytes(l, extents_[m]), true, false, true});
}

} // namespace dyna
