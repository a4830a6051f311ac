//===- LayerCalls.cpp - Calls layer functions -----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/base/text/Text.h"
#include "runtime/executor/run/Run.h"
#include "runtime/plan/model/HeadChunks.h"

#include <numeric>

namespace dyna {

using plan::Instruction;

// Traffic is counted by kinds of the manifest, so both enums must agree.
static_assert(
    plan::LayerExchange::ALL_REDUCE == int(CollectiveKind::AllReduce) &&
    plan::LayerExchange::ALL_GATHER == int(CollectiveKind::AllGather) &&
    plan::LayerExchange::REDUCE_SCATTER == int(CollectiveKind::ReduceScatter) &&
    plan::LayerExchange::ALL_TO_ALL == int(CollectiveKind::AllToAll));

static int64_t sumOf(const std::array<int64_t, kCollectiveKinds> &counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t(0));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static dyna_saved savedOf(const Run &run, const Instruction &i) {
  constexpr void *dyna_saved::*fields[] = {
      &dyna_saved::input, &dyna_saved::products, &dyna_saved::elementwise,
      &dyna_saved::deferred};
  static_assert(std::size(fields) == DYNA_TIER_COUNT);
  const Load &load = run.blocks.load(i.microBatch);
  plan::Recompute mode = run.blocks.mode(i.microBatch, i.layer);
  bool defers =
      run.blocks.split(i.microBatch, i.layer) && i.op != Instruction::FORWARD;
  int64_t kept = run.place(Operand::Kept), late = run.place(Operand::Late);
  dyna_saved saved = {};
  for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier) {
    // An evaluation saves only its input.
    if (tier == DYNA_TIER_DEFERRED ? !defers
                                   : tier > 0 && i.op == Instruction::EVALUATE)
      continue;
    int64_t &place = keepsTier(mode, tier) ? kept : late;
    saved.*fields[tier] = run.machine.dynamic(place);
    place += run.view().tierBytes(i.layer, tier, load);
  }
  if (run.staging[i.microBatch].stored > 0) {
    saved.keys = run.block(Operand::Keys);
    saved.key_gradients = run.block(Operand::KeyGradients);
  }
  return saved;
}

/// Returns the queries that have a target, as a load of their own.
static Load targetRows(const Load &load) {
  Load rows;
  rows.queries = rows.targets = load.targets;
  return rows;
}

/// Returns the exchanges that the manifest states for a function in this micro-batch.
static Traffic statedExchanges(const Run &run, const Instruction &i) {
  Traffic stated;
  for (const plan::LayerExchange &exchange :
       run.view().exchanges(i.layer, roleOf(i))) {
    const Load &load = run.staging[i.microBatch].load;
    const int64_t chunk = headChunkRows(run.seat.model().manifest().target());
    bool perChunk = exchange.per_chunk();
    int64_t times = perChunk ? (load.targets + chunk - 1) / chunk : 1;
    stated.collectiveCalls += times;
    for (const plan::LayerExchange::Tensor &tensor : exchange.tensors()) {
      Load rows = perChunk ? targetRows(load) : load;
      if (const dyna_group &group = run.seat.groups()[tensor.dealt_group()];
          tensor.dealt_group() != 0)
        rows.queries = dyna_part_size(rows.queries, group.size, group.index);
      stated.collectives[tensor.kind()] += times;
      stated.wholeBytes += formulaOf(tensor.bytes()).ofRows(rows) +
                           times * tensor.bytes().constant();
    }
  }
  return stated;
}

/// Compares the exchanges of a function with those in the manifest. The proof
/// that no rank waits forever relies on the manifest.
static Status checkExchanges(const Run &run, const Instruction &i,
                             const Traffic &before) {
  Traffic stated = statedExchanges(run, i);
  Traffic done = run.machine.traffic();
  done.add(before, -1);
  if (done.collectiveCalls == stated.collectiveCalls &&
      done.collectives == stated.collectives &&
      done.wholeBytes == stated.wholeBytes)
    return Status::ok();
  return Status::internal(formatText(
      "the function exchanged %d tensors in %d calls, %d bytes in all; "
      "by the manifest it is %d in %d, %d bytes: the binary is damaged, "
      "compile it again",
      sumOf(done.collectives), done.collectiveCalls, done.wholeBytes,
      sumOf(stated.collectives), stated.collectiveCalls, stated.wholeBytes));
}

static Status call(Run &run, const Instruction &i,
                   const std::vector<dyna_tensor> &params,
                   const std::vector<dyna_tensor> &grads,
                   const std::vector<dyna_tensor> &in,
                   const std::vector<dyna_tensor> &out) {
  int kind = run.view().functionKind(i.layer);
  dyna_layer_function function =
      run.variant.functions[kind * DYNA_ROLE_COUNT + roleOf(i)];
  dyna_saved saved = {};
  dyna_segments segments = {};
  if (isPerMicroBatch(i.op)) {
    saved = savedOf(run, i);
    segments = run.segments[i.microBatch];
  }
  Traffic before = run.machine.traffic();
  dyna_status status =
      function(&run.machine.context(), params.data(), grads.data(), &saved,
               run.block(Operand::Workspace), &segments, in.data(), out.data());
  DYNA_RETURN_IF_ERROR(run.machine.outcome(status));
  return run.seat.exchange() ? checkExchanges(run, i, before) : Status::ok();
}

/// Returns the tensors that a function of the layer reads. Before a phase first uses a
/// weight in sparse form, its values are copied from the updated and gathered weight.
static StatusOr<std::vector<dyna_tensor>> valuesOf(Run &run, int layer) {
  for (int p : run.view().layer(layer).parameters()) {
    if (run.hasValues[p])
      continue;
    DYNA_RETURN_IF_ERROR(run.seat.takeSparseValues(p));
    run.hasValues[p] = true;
  }
  return run.seat.values(layer);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static Status load(Run &run, const Instruction &i) {
  int m = i.microBatch;
  DYNA_ASSIGN_OR_RETURN(Staging staged,
                        stage(run.seat.model(), run.plan.microBatches[m],
                              run.blocks.bundles().of(m), run.samples,
                              run.miniBatch));
  run.staging[m] = std::move(staged);
  const Staging &staging = run.staging[m];
  int64_t batch = run.place(Operand::Batch);
  if (run.view().takesTokens(run.view().firstLayer()))
    DYNA_RETURN_IF_ERROR(run.machine.upload(
        run.machine.dynamicStart() + run.place(Operand::Kept),
        staging.tokens.data(),
        static_cast<int64_t>(staging.tokens.size() * sizeof(int32_t))));
  DYNA_RETURN_IF_ERROR(run.machine.upload(
      run.machine.dynamicStart() + batch, staging.batch.data(),
      static_cast<int64_t>(staging.batch.size())));
  run.segments[m] = segmentsAt(staging, run.machine.dynamic(batch));
  return Status::ok();
}

static Status callForward(Run &run, const Instruction &i) {
  int m = i.microBatch;
  const Load &load = run.blocks.load(m);
  const plan::LayerKind &kind = run.view().kind(i.layer);
  const BatchLayout &batch = run.staging[m].layout;
  int64_t batchPlace = run.place(Operand::Batch);
  std::vector<dyna_tensor> in = {
      {run.block(Operand::Kept), run.view().rowsOf(inputOf(kind), load)}};
  std::vector<dyna_tensor> out;
  if (run.view().handsOn(i.layer))
    out.push_back(
        {run.block(Operand::Next), run.view().rowsOf(outputOf(kind), load)});
  if (run.view().givesLoss(i.layer)) {
    const Model &model = run.view().model();
    const int loss = model.lossOf(i.layer);
    in.push_back(
        {run.machine.dynamic(batchPlace + batch.targets), load.queries});
    out.push_back({run.machine.result(run.lossIndex(m, loss)), 1});
    run.machine.context().inverse_targets =
        run.inverseTargets() * model.lossWeight(loss);
  }
  std::vector<dyna_tensor> grads;
  if (writes(i.op, ParameterUse::UsedGradients))
    grads = run.seat.gradients(i.layer);
  DYNA_ASSIGN_OR_RETURN(const auto values, valuesOf(run, i.layer));
  return call(run, i, values, grads, in, out);
}

static Status callBackward(Run &run, const Instruction &i) {
  const Load &load = run.blocks.load(i.microBatch);
  const plan::LayerKind &kind = run.view().kind(i.layer);
  dyna_tensor none = {nullptr, 0};
  bool weight = i.op == Instruction::BACKWARD_WEIGHT;
  bool hasIn = !weight && run.view().handsOn(i.layer);
  bool hasOut = !weight && run.view().givesGradient(i.layer);
  std::vector<dyna_tensor> in = {
      hasIn ? dyna_tensor{run.block(Operand::NextGradient),
                          run.view().rowsOf(outputOf(kind), load)}
            : none};
  std::vector<dyna_tensor> out = {
      hasOut ? dyna_tensor{run.block(Operand::Gradient),
                           run.view().rowsOf(inputOf(kind), load)}
             : none};
  std::vector<dyna_tensor> grads;
  if (writes(i.op, ParameterUse::UsedGradients))
    grads = run.seat.gradients(i.layer);
  DYNA_ASSIGN_OR_RETURN(const auto values, valuesOf(run, i.layer));
  return call(run, i, values, grads, in, out);
}

static Status callRecompute(Run &run, const Instruction &i) {
  DYNA_ASSIGN_OR_RETURN(const auto values, valuesOf(run, i.layer));
  return call(run, i, values, {}, {}, {});
}

/// Clears the gradients of keys: backward of slices adds to them.
static Status clearKeyGradients(Run &run, const Instruction &i) {
  const int64_t bytes = run.view().keyGradientBytes(
      i.layer, run.blocks.bundles().of(i.microBatch).rows);
  return run.machine.fill(
      run.machine.dynamicStart() + run.place(Operand::KeyGradients), bytes, 0);
}

/// Zeroes the gradients of pruned weights that the layer updates, once in a phase:
/// before their norm is taken, or before they are used. If the step asks for it, they
/// become scores first.
static Status zeroPrunedGradients(Run &run, int layer) {
  if (run.isMasked[layer])
    return Status::ok();
  run.isMasked[layer] = true;
  const auto &list = run.view().layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot)
    if (run.view().updates(layer, slot)) {
      if (run.scalars.scoresPruned)
        DYNA_RETURN_IF_ERROR(
            run.seat.addScores(list.Get(slot), /*ofPruned=*/true));
      DYNA_RETURN_IF_ERROR(
          run.seat.zeroPruned(list.Get(slot), ParameterPart::Gradient));
    }
  return Status::ok();
}

/// Adds to the scores of weights that the layer updates, while their gradients and the
/// weights of this step are there.
static Status addScores(Run &run, int layer) {
  const auto &list = run.view().layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot)
    if (run.view().updates(layer, slot))
      DYNA_RETURN_IF_ERROR(
          run.seat.addScores(list.Get(slot), /*ofPruned=*/false));
  return Status::ok();
}

static Status callGradNorm(Run &run, const Instruction &i) {
  run.hasNorm = true;
  DYNA_RETURN_IF_ERROR(zeroPrunedGradients(run, i.layer));
  return call(run, i, {}, run.seat.updatedGradients(i.layer, true), {},
              {{run.machine.result(run.normIndex(i.layer)), 1}});
}

Status noteLosses(Run &run) {
  return run.machine.outcome(dyna_note_losses(
      &run.machine.context(), run.machine.result(run.view().layers()),
      run.firstLoss + run.lossCount(), run.machine.result(run.normIndex(0))));
}

Status clipGradient(Run &run) {
  run.isScaled = true;
  if (!run.hasNorm)
    return run.scalars.clip > 0
               ? Status::invalidArgument(
                     "clipping needs a plan with GRAD_NORM instructions")
               : Status::ok();
  DYNA_RETURN_IF_ERROR(noteLosses(run));
  const dyna_clip clip = {run.machine.result(run.normIndex(0)),
                          run.view().layers(),
                          run.scalars.clip,
                          run.machine.gradientNorm(),
                          run.machine.gradientScale(),
                          run.machine.skipsLeft()};
  return run.machine.outcome(dyna_clip_norm(&run.machine.context(), &clip));
}

static Status callUpdate(Run &run, const Instruction &i) {
  if (!run.isScaled)
    DYNA_RETURN_IF_ERROR(clipGradient(run));
  DYNA_RETURN_IF_ERROR(zeroPrunedGradients(run, i.layer));
  if (run.scalars.addsScores)
    DYNA_RETURN_IF_ERROR(addScores(run, i.layer));
  std::vector<dyna_tensor> params, in;
  const auto &list = run.view().layer(i.layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool here = run.view().updates(i.layer, slot);
    auto tensor = [&](ParameterPart part) {
      return here ? run.seat.updatedRows(p, part) : dyna_tensor{nullptr, 0};
    };
    params.push_back(tensor(valuePart(run.seat.model(), p)));
    in.push_back(tensor(ParameterPart::Master));
    in.push_back(tensor(ParameterPart::FirstMoment));
    in.push_back(tensor(ParameterPart::SecondMoment));
  }
  DYNA_RETURN_IF_ERROR(
      call(run, i, params, run.seat.updatedGradients(i.layer, false), in, {}));
  return run.view().zero() ? run.seat.clearOtherRows(i.layer) : Status::ok();
}

static Status callCast(Run &run, const Instruction &i) {
  std::vector<dyna_tensor> params, in;
  const auto &list = run.view().layer(i.layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool here = run.view().updates(i.layer, slot) && run.view().hasCopy(p);
    dyna_tensor none = {nullptr, 0};
    params.push_back(here ? run.seat.updatedRows(p, ParameterPart::Copy)
                          : none);
    in.push_back(here ? run.seat.updatedRows(p, ParameterPart::Master) : none);
  }
  return call(run, i, params, {}, in, {});
}

Status execute(Run &run, const Instruction &i) {
  switch (i.op) {
  case Instruction::LOAD:
    return load(run, i);
  case Instruction::FORWARD:
  case Instruction::EVALUATE:
    return callForward(run, i);
  case Instruction::RECOMPUTE:
    return callRecompute(run, i);
  case Instruction::BACKWARD:
  case Instruction::BACKWARD_INPUT:
  case Instruction::BACKWARD_WEIGHT:
    return callBackward(run, i);
  case Instruction::GRAD_NORM:
    return callGradNorm(run, i);
  case Instruction::UPDATE:
    return callUpdate(run, i);
  case Instruction::CAST_PARAMS:
    return callCast(run, i);
  case Instruction::CLEAR_KEY_GRADS:
    return clearKeyGradients(run, i);
  case Instruction::FREE:
  case Instruction::TAKE_KEYS:
  case Instruction::FREE_KEYS:
    return Status::ok(); // memory that is used or reused from here on
  default:
    return exchange(run, i);
  }
}

} // namespace dyna
