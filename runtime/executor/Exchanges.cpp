//===- Exchanges.cpp - Instructions that involve other ranks -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankExchange.h"
#include "runtime/executor/Run.h"

namespace dyna {

using plan::Instruction;

Status Executor::exchange(Run &run, const Instruction &i) {
  if (!exchange_)
    return Status::internal("one rank has nobody to exchange with");
  if (i.op() == Instruction::COMBINE_NORM)
    return combineNorms(run);
  MessageOp message = messageOf(i.op());
  if (!message.isMessage)
    return exchangeParameters(i);
  int64_t offset = !message.gradient ? i.kept_offset()
                   : message.sends   ? i.grad_out_offset()
                                     : i.grad_in_offset();
  return exchange_->message(i, dynamic(offset), stream_->handle());
}

/// One exchange per parameter that the layer updates together with others, all
/// started before any is waited for.
Status Executor::exchangeParameters(const Instruction &i) {
  const auto &list = view_.layer(i.layer()).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    if (!view_.updates(i.layer(), slot) || view_.place(p).holders == 1)
      continue;
    switch (i.op()) {
    case Instruction::REDUCE_GRADS_START:
      DYNA_RETURN_IF_ERROR(exchange_->startReduction(
          p, tensorOf(p, ParameterPart::Gradient).data, stream_->handle()));
      break;
    case Instruction::GATHER_PARAMS_START: {
      ParameterPart part =
          view_.hasCopy(p) ? ParameterPart::Copy : ParameterPart::Master;
      DYNA_RETURN_IF_ERROR(exchange_->startGather(
          p, tensorOf(p, part).data, view_.computeType(p), stream_->handle()));
      break;
    }
    default:
      DYNA_RETURN_IF_ERROR(exchange_->wait(p, stream_->handle()));
    }
  }
  return Status::ok();
}

Status Executor::sumOverRanks(std::vector<double> &values) {
  return exchange_ ? exchange_->sum(values, stream_->handle()) : Status::ok();
}

/// By layer, so that the sum over layers is taken in one order everywhere.
Status Executor::combineNorms(Run &run) {
  DYNA_RETURN_IF_ERROR(synchronize());
  return exchange_->sum(run.squaredNorms, stream_->handle());
}

} // namespace dyna
