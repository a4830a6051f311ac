//===- Exchanges.cpp - Instructions that involve other ranks -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/Executor.h"
#include "runtime/executor/RankExchange.h"
#include "runtime/executor/Run.h"

namespace dyna {

using plan::Instruction;

Status Executor::exchange(Run &run, const Instruction &i) {
  if (!exchange_)
    return Status::internal("one rank has nobody to exchange with");
  ExchangeOp op = exchangeOf(i.op);
  if (op.kind == ExchangeKind::Norm)
    return combineNorms(run);
  if (op.isOfParameters())
    return exchangeParameters(i);
  Operand crosses = op.isGradient() ? Operand::Gradient : Operand::Kept;
  return exchange_->message(
      i, block(run, crosses),
      view_.messageBytes(i.layer, run.blocks.extent(i.microBatch)),
      stream_->handle());
}

/// What the layer updates together with other ranks.
Status Executor::exchangeParameters(const Instruction &i) {
  ExchangeOp op = exchangeOf(i.op);
  bool gathers = op.kind == ExchangeKind::Gather;
  if (!op.starts)
    return exchange_->wait(i.layer, stream_->handle());
  std::vector<RankExchange::ParameterData> parameters;
  const auto &list = view_.layer(i.layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    if (!view_.updates(i.layer, slot) || view_.place(p).holders == 1)
      continue;
    ParameterPart part = !gathers           ? ParameterPart::Gradient
                         : view_.hasCopy(p) ? ParameterPart::Copy
                                            : ParameterPart::Master;
    parameters.push_back(
        {p, tensorOf(p, part).data,
         gathers ? view_.computeType(p) : view_.gradientType()});
  }
  return gathers
             ? exchange_->startGathers(i.layer, parameters, stream_->handle())
             : exchange_->startReductions(i.layer, parameters,
                                          stream_->handle());
}

Status Executor::sumOverRanks(std::vector<double> &values) {
  return exchange_ ? exchange_->sum(values, stream_->handle()) : Status::ok();
}

/// By layer, so that the sum over layers is taken in one order everywhere.
Status Executor::combineNorms(Run &run) {
  DYNA_RETURN_IF_ERROR(synchronize());
  countLosses(run);
  return exchange_->sum(run.squaredNorms, stream_->handle());
}

} // namespace dyna
