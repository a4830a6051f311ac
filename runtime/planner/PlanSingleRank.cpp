//===- PlanSingleRank.cpp - Plans for one rank ----------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/PlanSingleRank.h"

#include "runtime/plan/InstructionBlocks.h"
#include "runtime/plan/Text.h"
#include "runtime/planner/PackMicroBatches.h"
#include "runtime/planner/PlaceBlocks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dyna {
namespace {

using plan::Instruction;

/// Appends instructions to a program, without offsets yet.
class ProgramWriter {
public:
  ProgramWriter(const ManifestView &view, const PlanOptions &options,
                plan::RankProgram &program)
      : view_(view), options_(options), program_(program) {}

  Instruction &add(Instruction::Op op, int layer, int microBatch) {
    Instruction &i = *program_.add_instructions();
    i.set_op(op);
    i.set_layer(layer);
    i.set_micro_batch(microBatch);
    return i;
  }

  void forward(int m) {
    add(Instruction::LOAD, 0, m);
    for (int l = 0; l < view_.layers(); ++l)
      add(Instruction::FORWARD, l, m).set_recompute(mode(l));
  }

  void backward(int m) {
    std::vector<int> weights;
    for (int l = view_.layers() - 1; l >= 0; --l) {
      if (mode(l) != plan::RECOMPUTE_NONE)
        add(Instruction::RECOMPUTE, l, m).set_recompute(mode(l));
      bool whole = view_.hasRole(l, DYNA_ROLE_BACKWARD);
      if (view_.splitsBackward(l) && (options_.splitBackward || !whole)) {
        add(Instruction::BACKWARD_INPUT, l, m).set_recompute(mode(l));
        weights.push_back(l);
      } else {
        add(Instruction::BACKWARD, l, m).set_recompute(mode(l));
        add(Instruction::FREE, l, m);
      }
    }
    for (int l : weights) {
      add(Instruction::BACKWARD_WEIGHT, l, m).set_recompute(mode(l));
      add(Instruction::FREE, l, m);
    }
  }

  void evaluate(int m) {
    add(Instruction::LOAD, 0, m);
    for (int l = 0; l < view_.layers(); ++l)
      add(Instruction::EVALUATE, l, m);
  }

  void forOwners(Instruction::Op op) {
    for (int l = 0; l < view_.layers(); ++l)
      if (view_.ownsParameters(l))
        add(op, l, 0);
  }

private:
  plan::Recompute mode(int layer) const {
    const auto &modes = options_.recompute;
    return view_.nearestMode(layer,
                             modes.size() == 1 ? modes[0] : modes[layer]);
  }

  const ManifestView &view_;
  const PlanOptions &options_;
  plan::RankProgram &program_;
};

/// Chooses all offsets of the program; with `largest`, as if every micro-batch
/// had that extent.
Status assignMemory(const ManifestView &view, plan::Plan &plan,
                    const Extent *largest) {
  plan::RankProgram &program = *plan.mutable_ranks(0);
  InstructionBlocks blocks(view, plan, program, largest);
  using Key = std::tuple<BlockKind, int, int>;
  std::map<Key, int> alive;
  std::vector<BlockLifetime> lifetimes;
  struct Place {
    int instruction;
    OffsetField field;
    int block;
  };
  std::vector<Place> places;
  for (int index = 0; index < program.instructions_size(); ++index)
    for (const BlockUse &use : blocks.uses(index)) {
      if (use.bytes > maxBlockBytes)
        return Status::resourceExhausted(formatText(
            "the %s block of %s needs %s, more than any machine has: use "
            "smaller micro-batches",
            blockKindName(use.kind),
            describeInstruction(program.instructions(index)).c_str(),
            formatBytes(use.bytes).c_str()));
      Key key{use.kind, use.microBatch, use.layer};
      if (use.acquires) {
        alive[key] = static_cast<int>(lifetimes.size());
        lifetimes.push_back({use.bytes, index, index});
      }
      int block = alive.at(key);
      lifetimes[block].last = index;
      places.push_back({index, use.field, block});
    }
  BlockPlacement placement = placeBlocks(lifetimes);
  for (const Place &place : places)
    setOffset(*program.mutable_instructions(place.instruction), place.field,
              placement.offsets[place.block]);
  program.set_dynamic_bytes(placement.peak);
  return Status::ok();
}

Extent largestExtent(const PlanOptions &options) {
  int64_t tokens = options.maxTokensPerMicroBatch;
  return {tokens, tokens, tokens};
}

Status assignWithinLimit(const ManifestView &view, plan::Plan &plan,
                         const PlanOptions &options) {
  DYNA_RETURN_IF_ERROR(assignMemory(view, plan, nullptr));
  if (options.dynamicLimit <= 0 ||
      plan.ranks(0).dynamic_bytes() <= options.dynamicLimit)
    return Status::ok();
  // Heuristic placement is not monotone in the sizes, so a smaller micro-batch
  // may, rarely, come out larger than the largest one.
  Extent largest = largestExtent(options);
  DYNA_RETURN_IF_ERROR(assignMemory(view, plan, &largest));
  if (plan.ranks(0).dynamic_bytes() <= options.dynamicLimit)
    return Status::ok();
  return Status::resourceExhausted(
      formatText("this mini-batch needs %s beside parameters, but there are "
                 "%s: use smaller micro-batches or more recomputation",
                 formatBytes(plan.ranks(0).dynamic_bytes()).c_str(),
                 formatBytes(options.dynamicLimit).c_str()));
}

Status checkOptions(const ManifestView &view, const PlanOptions &options) {
  if (options.recompute.size() != 1 &&
      options.recompute.size() != static_cast<size_t>(view.layers()))
    return Status::invalidArgument(
        formatText("recompute modes for %zu layers, but the model has %d",
                   options.recompute.size(), view.layers()));
  if (options.maxTokensPerMicroBatch <= 0 ||
      options.maxTokensPerMicroBatch > maxMicroBatchTokens)
    return Status::invalidArgument(
        formatText("micro-batches of %lld tokens: expects 1 to %lld",
                   static_cast<long long>(options.maxTokensPerMicroBatch),
                   static_cast<long long>(maxMicroBatchTokens)));
  if (options.inFlight <= 0)
    return Status::invalidArgument(formatText(
        "%d micro-batches in flight: expects at least 1", options.inFlight));
  return Status::ok();
}

/// The model's largest share of attention work beside the rest, per token.
double tokensPerPair(const ManifestView &view) {
  double perToken = 0, perPair = 0;
  for (int l = 0; l < view.layers(); ++l) {
    perToken += static_cast<double>(view.kind(l).flops_per_token());
    perToken += static_cast<double>(view.kind(l).flops_per_target());
    perPair += static_cast<double>(view.kind(l).attention_flops_per_pair());
  }
  return perToken > 0 ? perPair / perToken : 0;
}

/// A plan with micro-batches and an empty program.
StatusOr<plan::Plan> startPlan(const ManifestView &view,
                               const std::vector<int64_t> &lengths,
                               int64_t targetTokens,
                               const PlanOptions &options) {
  DYNA_RETURN_IF_ERROR(checkOptions(view, options));
  auto bins = packMicroBatches(
      lengths, {options.maxTokensPerMicroBatch, tokensPerPair(view)});
  if (!bins.isOk())
    return bins.status();
  plan::Plan plan;
  plan.set_manifest_hash(view.hash());
  plan.set_target_tokens(targetTokens);
  plan.add_ranks();
  for (const std::vector<int64_t> &bin : *bins) {
    plan::MicroBatch &microBatch = *plan.add_micro_batches();
    for (int64_t sample : bin) {
      plan::Segment &segment = *microBatch.add_segments();
      segment.set_sample(sample);
      segment.set_length(lengths[sample]);
    }
  }
  return plan;
}

void writeTraining(const ManifestView &view, const PlanOptions &options,
                   plan::Plan &plan) {
  ProgramWriter writer(view, options, *plan.mutable_ranks(0));
  int count = plan.micro_batches_size();
  for (int begin = 0; begin < count; begin += options.inFlight) {
    int end = std::min(begin + options.inFlight, count);
    for (int m = begin; m < end; ++m)
      writer.forward(m);
    for (int m = begin; m < end; ++m)
      writer.backward(m);
  }
  if (!options.update)
    return;
  writer.forOwners(Instruction::GRAD_NORM);
  writer.forOwners(Instruction::UPDATE);
}

void writeEvaluation(const ManifestView &view, const PlanOptions &options,
                     plan::Plan &plan) {
  ProgramWriter writer(view, options, *plan.mutable_ranks(0));
  for (int m = 0; m < plan.micro_batches_size(); ++m)
    writer.evaluate(m);
}

} // namespace

StatusOr<plan::Plan> planTraining(const ManifestView &view,
                                  const std::vector<int64_t> &lengths,
                                  int64_t targetTokens,
                                  const PlanOptions &options) {
  StatusOr<plan::Plan> plan = startPlan(view, lengths, targetTokens, options);
  if (!plan.isOk())
    return plan;
  writeTraining(view, options, *plan);
  DYNA_RETURN_IF_ERROR(assignWithinLimit(view, *plan, options));
  return plan;
}

StatusOr<plan::Plan> planEvaluation(const ManifestView &view,
                                    const std::vector<int64_t> &lengths,
                                    int64_t targetTokens,
                                    const PlanOptions &options) {
  StatusOr<plan::Plan> plan = startPlan(view, lengths, targetTokens, options);
  if (!plan.isOk())
    return plan;
  writeEvaluation(view, options, *plan);
  DYNA_RETURN_IF_ERROR(assignWithinLimit(view, *plan, options));
  return plan;
}

plan::Plan planCast(const ManifestView &view) {
  plan::Plan plan;
  plan.set_manifest_hash(view.hash());
  plan::RankProgram &program = *plan.add_ranks();
  for (int l = 0; l < view.layers(); ++l) {
    bool copies = false;
    for (int slot = 0; slot < view.layer(l).parameters_size(); ++slot)
      copies |=
          view.updates(l, slot) && view.hasCopy(view.layer(l).parameters(slot));
    if (!copies)
      continue;
    Instruction &i = *program.add_instructions();
    i.set_op(Instruction::CAST_PARAMS);
    i.set_layer(l);
  }
  // The casts' workspaces are of one time each: they share offset 0.
  for (int index = 0; index < program.instructions_size(); ++index)
    program.set_dynamic_bytes(
        std::max(program.dynamic_bytes(),
                 view.workspaceBytes(program.instructions(index).layer(),
                                     DYNA_ROLE_CAST, Extent())));
  return plan;
}

StatusOr<plan::Plan> planUpdate(const ManifestView &view) {
  plan::Plan plan;
  plan.set_manifest_hash(view.hash());
  PlanOptions options;
  ProgramWriter writer(view, options, *plan.add_ranks());
  writer.forOwners(Instruction::GRAD_NORM);
  writer.forOwners(Instruction::UPDATE);
  DYNA_RETURN_IF_ERROR(assignMemory(view, plan, nullptr));
  return plan;
}

StatusOr<int64_t> largestDynamicBytes(const ManifestView &view,
                                      const PlanOptions &options,
                                      bool training) {
  DYNA_RETURN_IF_ERROR(checkOptions(view, options));
  PlanOptions unlimited = options;
  unlimited.dynamicLimit = 0;
  Extent largest = largestExtent(options);
  int64_t bytes = planCast(view).ranks(0).dynamic_bytes();
  // The last window of a step may hold fewer micro-batches.
  for (int window = 1; window <= options.inFlight; ++window) {
    plan::Plan plan;
    plan.add_ranks();
    for (int m = 0; m < window; ++m)
      plan.add_micro_batches();
    if (training)
      writeTraining(view, unlimited, plan);
    else
      writeEvaluation(view, unlimited, plan);
    DYNA_RETURN_IF_ERROR(assignMemory(view, plan, &largest));
    bytes = std::max(bytes, plan.ranks(0).dynamic_bytes());
  }
  plan::Plan evaluation;
  evaluation.add_ranks();
  evaluation.add_micro_batches();
  writeEvaluation(view, unlimited, evaluation);
  DYNA_RETURN_IF_ERROR(assignMemory(view, evaluation, &largest));
  return std::max(bytes, evaluation.ranks(0).dynamic_bytes());
}

} // namespace dyna
