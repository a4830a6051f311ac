//===- LayerCalls.cpp - From instructions to calls ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/base/Text.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/RankExchange.h"
#include "runtime/executor/Run.h"

#include <cmath>
#include <numeric>

namespace dyna {

using plan::Instruction;

// Traffic counts by the manifest's kinds.
static_assert(
    plan::LayerExchange::ALL_REDUCE == int(CollectiveKind::AllReduce) &&
    plan::LayerExchange::ALL_GATHER == int(CollectiveKind::AllGather) &&
    plan::LayerExchange::REDUCE_SCATTER == int(CollectiveKind::ReduceScatter) &&
    plan::LayerExchange::ALL_TO_ALL == int(CollectiveKind::AllToAll));

static int64_t sumOf(const std::array<int64_t, kCollectiveKinds> &counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t(0));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

std::vector<dyna_tensor> Executor::computeParameters(int layer) const {
  std::vector<dyna_tensor> tensors;
  for (int p : view_.layer(layer).parameters())
    tensors.push_back(tensorOf(p, view_.hasCopy(p) ? ParameterPart::Copy
                                                   : ParameterPart::Master));
  return tensors;
}

std::vector<dyna_tensor> Executor::gradients(int layer) const {
  std::vector<dyna_tensor> tensors;
  for (int p : view_.layer(layer).parameters())
    tensors.push_back(tensorOf(p, ParameterPart::Gradient));
  return tensors;
}

std::vector<dyna_tensor> Executor::updatedGradients(int layer,
                                                    bool countedOnly) const {
  std::vector<dyna_tensor> tensors;
  const auto &list = view_.layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool here =
        view_.updates(layer, slot) && (!countedOnly || view_.place(p).counts);
    tensors.push_back(here ? updatedRows(p, ParameterPart::Gradient)
                           : dyna_tensor{nullptr, 0});
  }
  return tensors;
}

dyna_saved Executor::savedOf(const Run &run, const Instruction &i) const {
  int l = i.layer;
  const Extent &extent = run.blocks.extent(i.microBatch);
  dyna_saved saved = {};
  int64_t kept = run.place(Operand::Kept), late = run.place(Operand::Late);
  saved.input = dynamic(kept);
  kept += view_.inputBytes(l, extent);
  if (i.op == Instruction::EVALUATE)
    return saved;
  plan::Recompute mode = run.blocks.mode(i.microBatch, l);
  int64_t &products = mode == plan::RECOMPUTE_FULL ? late : kept;
  saved.products = dynamic(products);
  products += view_.productsBytes(l, extent);
  int64_t &elementwise = mode == plan::RECOMPUTE_NONE ? kept : late;
  saved.elementwise = dynamic(elementwise);
  elementwise += view_.elementwiseBytes(l, extent);
  if (run.blocks.split(i.microBatch, l) && i.op != Instruction::FORWARD)
    saved.deferred = dynamic(late);
  return saved;
}

Status Executor::call(Run &run, const Instruction &i,
                      const std::vector<dyna_tensor> &params,
                      const std::vector<dyna_tensor> &grads,
                      const std::vector<dyna_tensor> &in,
                      const std::vector<dyna_tensor> &out) {
  int kind = view_.functionKind(i.layer);
  dyna_layer_function function =
      variant_.functions[kind * DYNA_ROLE_COUNT + roleOf(i)];
  dyna_saved saved = {};
  dyna_segments segments = {};
  if (isPerMicroBatch(i.op)) {
    saved = savedOf(run, i);
    segments = run.segments[i.microBatch];
  }
  Traffic before = exchange_ ? exchange_->transport().traffic() : Traffic();
  dyna_status status = function(&context_, params.data(), grads.data(), &saved,
                                block(run, Operand::Workspace), &segments,
                                in.data(), out.data());
  if (status == DYNA_OK)
    return exchange_ ? checkExchanges(run, i, before) : Status::ok();
  StatusCode code = status >= DYNA_INVALID_ARGUMENT && status <= DYNA_INTERNAL
                        ? static_cast<StatusCode>(status)
                        : StatusCode::Internal;
  message_[sizeof(message_) - 1] = '\0';
  return Status(code, message_[0]
                          ? std::string(message_)
                          : formatText("failed with status %d", status));
}

/// What the manifest says that a function exchanges in this micro-batch.
Traffic Executor::statedExchanges(const Run &run, const Instruction &i) const {
  Traffic stated;
  for (const plan::LayerExchange &exchange :
       view_.exchanges(i.layer, roleOf(i))) {
    const Staging &staging = run.staging[i.microBatch];
    constexpr int64_t chunk = DYNA_HEAD_CHUNK_ROWS;
    bool perChunk = exchange.per_chunk();
    int64_t times = perChunk ? (staging.targets + chunk - 1) / chunk : 1;
    stated.collectiveCalls += times;
    for (const plan::LayerExchange::Tensor &tensor : exchange.tensors()) {
      int64_t rows = perChunk ? staging.targets : staging.extent.tq;
      if (const dyna_group &group = groups_[tensor.dealt_group()];
          tensor.dealt_group() != 0)
        rows = dyna_part_size(rows, group.size, group.index);
      stated.collectives[tensor.kind()] += times;
      stated.wholeBytes +=
          rows * tensor.bytes().tq() + times * tensor.bytes().constant();
    }
  }
  return stated;
}

/// The proof that no rank waits for ever rests on what the manifest says of a
/// function's exchanges, so it is compared with what the function did.
Status Executor::checkExchanges(const Run &run, const Instruction &i,
                                const Traffic &before) const {
  Traffic stated = statedExchanges(run, i);
  Traffic done = exchange_->transport().traffic();
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

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Status Executor::callLayer(Run &run, const Instruction &i) {
  switch (i.op) {
  case Instruction::LOAD:
    return load(run, i);
  case Instruction::FORWARD:
  case Instruction::EVALUATE:
    return callForward(run, i);
  case Instruction::RECOMPUTE:
    return call(run, i, computeParameters(i.layer), {}, {}, {});
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
  case Instruction::FREE:
    return Status::ok(); // the planner reuses the memory
  default:
    return exchange(run, i);
  }
}

Status Executor::load(Run &run, const Instruction &i) {
  int m = i.microBatch;
  DYNA_ASSIGN_OR_RETURN(Staging staged,
                        stage(view_, run.plan.microBatches[m], run.miniBatch));
  run.staging[m] = std::move(staged);
  const Staging &staging = run.staging[m];
  int64_t batch = run.place(Operand::Batch);
  if (view_.hasLayer(0))
    DYNA_RETURN_IF_ERROR(device_.copyToDevice(
        *stream_, *arena_, dynamicStart_ + run.place(Operand::Kept),
        staging.tokens.data(),
        static_cast<int64_t>(staging.tokens.size() * sizeof(int32_t))));
  DYNA_RETURN_IF_ERROR(device_.copyToDevice(
      *stream_, *arena_, dynamicStart_ + batch, staging.batch.data(),
      static_cast<int64_t>(staging.batch.size())));
  auto at = [&](int64_t offset) { return dynamic(batch + offset); };
  dyna_segments &segments = run.segments[m];
  segments.data =
      static_cast<const dyna_segment *>(at(staging.layout.segments));
  segments.count = staging.extent.s;
  segments.tq = staging.extent.tq;
  segments.tkv = staging.extent.tkv;
  segments.row_sample =
      static_cast<const int64_t *>(at(staging.layout.rowSample));
  segments.row_position =
      static_cast<const int64_t *>(at(staging.layout.rowPosition));
  return Status::ok();
}

Status Executor::callForward(Run &run, const Instruction &i) {
  int m = i.microBatch;
  const Extent &extent = run.blocks.extent(m);
  const plan::LayerKind &kind = view_.kind(i.layer);
  const BatchLayout &batch = run.staging[m].layout;
  int64_t batchPlace = run.place(Operand::Batch);
  bool last = view_.givesLoss(i.layer);
  std::vector<dyna_tensor> in = {
      {block(run, Operand::Kept), view_.rowsOf(kind.inputs(0), extent)}};
  if (last)
    in.push_back({dynamic(batchPlace + batch.targets), extent.tq});
  std::vector<dyna_tensor> out = {
      last ? dyna_tensor{dynamic(batchPlace + batch.loss), 1}
           : dyna_tensor{block(run, Operand::Next),
                         view_.rowsOf(kind.outputs(0), extent)}};
  std::vector<dyna_tensor> grads;
  if (i.op == Instruction::FORWARD)
    grads = gradients(i.layer);
  DYNA_RETURN_IF_ERROR(
      call(run, i, computeParameters(i.layer), grads, in, out));
  if (!last || !view_.reportsLoss())
    return Status::ok();
  return device_.copyToHost(*stream_, &run.result.microBatchLosses[m], *arena_,
                            dynamicStart_ + batchPlace + batch.loss,
                            sizeof(double));
}

Status Executor::callBackward(Run &run, const Instruction &i) {
  const Extent &extent = run.blocks.extent(i.microBatch);
  const plan::LayerKind &kind = view_.kind(i.layer);
  dyna_tensor none = {nullptr, 0};
  bool weight = i.op == Instruction::BACKWARD_WEIGHT;
  bool hasIn = !weight && !view_.givesLoss(i.layer);
  bool hasOut = !weight && i.layer > 0;
  std::vector<dyna_tensor> in = {
      hasIn ? dyna_tensor{block(run, Operand::NextGradient),
                          view_.rowsOf(kind.outputs(0), extent)}
            : none};
  std::vector<dyna_tensor> out = {
      hasOut ? dyna_tensor{block(run, Operand::Gradient),
                           view_.rowsOf(kind.inputs(0), extent)}
             : none};
  std::vector<dyna_tensor> grads;
  if (i.op != Instruction::BACKWARD_INPUT)
    grads = gradients(i.layer);
  return call(run, i, computeParameters(i.layer), grads, in, out);
}

Status Executor::callGradNorm(Run &run, const Instruction &i) {
  int64_t sum = run.place(Operand::Norm);
  DYNA_RETURN_IF_ERROR(
      device_.fill(*stream_, *arena_, dynamicStart_ + sum, sizeof(double), 0));
  DYNA_RETURN_IF_ERROR(call(run, i, {}, updatedGradients(i.layer, true), {},
                            {{dynamic(sum), 1}}));
  run.hasNorm = true;
  return device_.copyToHost(*stream_, &run.squaredNorms[i.layer], *arena_,
                            dynamicStart_ + sum, sizeof(double));
}

/// A loss that is not finite makes the norm no number, so that every rank knows
/// of it before anything is updated.
void Executor::countLosses(Run &run) const {
  for (double loss : run.result.microBatchLosses)
    if (!std::isfinite(loss))
      run.squaredNorms[0] = std::nan("");
}

/// The norm of the whole gradient, and from it the factor of clipping.
Status Executor::finishGradientNorm(Run &run) {
  run.scaled = true;
  double limit = run.scalars.clip;
  if (!run.hasNorm)
    return limit > 0 ? Status::invalidArgument(
                           "clipping needs a plan with GRAD_NORM instructions")
                     : Status::ok();
  DYNA_RETURN_IF_ERROR(synchronize());
  countLosses(run);
  double sum = 0;
  for (double squared : run.squaredNorms)
    sum += squared;
  double norm = std::sqrt(sum);
  run.result.gradientNorm = norm;
  run.isFinite = std::isfinite(norm);
  if (limit > 0 && norm > limit)
    context_.optimizer.gradient_scale = limit / norm;
  return Status::ok();
}

Status Executor::callUpdate(Run &run, const Instruction &i) {
  if (!run.scaled)
    DYNA_RETURN_IF_ERROR(finishGradientNorm(run));
  if (!run.isFinite)
    return clearGradients(i.layer);
  std::vector<dyna_tensor> params, in;
  const auto &list = view_.layer(i.layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool here = view_.updates(i.layer, slot);
    auto tensor = [&](ParameterPart part) {
      return here ? updatedRows(p, part) : dyna_tensor{nullptr, 0};
    };
    params.push_back(
        tensor(view_.hasCopy(p) ? ParameterPart::Copy : ParameterPart::Master));
    in.push_back(tensor(ParameterPart::Master));
    in.push_back(tensor(ParameterPart::FirstMoment));
    in.push_back(tensor(ParameterPart::SecondMoment));
  }
  DYNA_RETURN_IF_ERROR(
      call(run, i, params, updatedGradients(i.layer, false), in, {}));
  return view_.zero() ? clearOtherRows(i.layer) : Status::ok();
}

/// In place of an update.
Status Executor::clearGradients(int layer) {
  const auto &list = view_.layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot)
    if (int p = list.Get(slot); view_.updates(layer, slot))
      DYNA_RETURN_IF_ERROR(
          device_.fill(*stream_, *arena_, placeOf(p, ParameterPart::Gradient),
                       partBytes(p, ParameterPart::Gradient), 0));
  return Status::ok();
}

/// `update` clears the gradient rows it is given; with ZeRO the rows of other
/// ranks hold what this rank contributed to them.
Status Executor::clearOtherRows(int layer) {
  const auto &list = view_.layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    if (!view_.updates(layer, slot))
      continue;
    int64_t row = rowBytes(p, ParameterPart::Gradient);
    int64_t place = placeOf(p, ParameterPart::Gradient);
    int64_t begin = view_.place(p).updateBegin * row;
    int64_t end = view_.place(p).updateEnd * row;
    DYNA_RETURN_IF_ERROR(device_.fill(*stream_, *arena_, place, begin, 0));
    DYNA_RETURN_IF_ERROR(
        device_.fill(*stream_, *arena_, place + end,
                     partBytes(p, ParameterPart::Gradient) - end, 0));
  }
  return Status::ok();
}

Status Executor::callCast(Run &run, const Instruction &i) {
  std::vector<dyna_tensor> params, in;
  const auto &list = view_.layer(i.layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool here = view_.updates(i.layer, slot) && view_.hasCopy(p);
    dyna_tensor none = {nullptr, 0};
    params.push_back(here ? updatedRows(p, ParameterPart::Copy) : none);
    in.push_back(here ? updatedRows(p, ParameterPart::Master) : none);
  }
  return call(run, i, params, {}, in, {});
}

} // namespace dyna
