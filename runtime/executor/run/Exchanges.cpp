//===- Exchanges.cpp - Runs exchanges with other ranks ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/Run.h"

namespace dyna {

using plan::Instruction;

/// Starts or waits for the exchange of parameters or gradients that the layer
/// updates together with other ranks.
static Status exchangeParameters(Run &run, const Instruction &i) {
  ExchangeOp op = exchangeOf(i.op);
  bool gathers = op.kind == ExchangeKind::Gather;
  GraphSeat &seat = run.seat;
  RankExchange &exchange = *seat.exchange();
  void *stream = run.machine.stream().handle();
  if (!op.starts)
    return exchange.wait(i.layer, stream);
  std::vector<RankExchange::ParameterData> parameters;
  for (int slot : run.view().sharedSlots(i.layer)) {
    if (!exchangesSlot(i, slot))
      continue;
    int p = run.view().layer(i.layer).parameters(slot);
    ParameterPart part =
        gathers ? valuePart(seat.model(), p) : ParameterPart::Gradient;
    parameters.push_back(
        {p, seat.tensorOf(p, part).data, typeOf(seat.model(), p, part)});
  }
  return gathers ? exchange.startGathers(i.layer, parameters, stream)
                 : exchange.startReductions(i.layer, parameters, stream);
}

/// Combines norms by layer, so that the sum over layers has one order on all
/// ranks.
static Status combineNorms(Run &run) {
  run.hasNorm = true;
  DYNA_RETURN_IF_ERROR(noteLosses(run));
  return run.seat.exchange()->sum(run.machine.result(run.normIndex(0)),
                                  run.view().layers(),
                                  run.machine.stream().handle());
}

Status exchange(Run &run, const Instruction &i) {
  RankExchange *exchange = run.seat.exchange();
  ExchangeOp op = exchangeOf(i.op);
  if (op.isSwitch() && run.switches)
    return op.starts ? run.switches->start(i) : run.switches->wait(i);
  if (!exchange)
    return Status::internal("one rank has nobody to exchange with");
  if (op.kind == ExchangeKind::Norm)
    return combineNorms(run);
  if (op.isOfParameters())
    return exchangeParameters(run, i);
  Operand crosses = op.isGradient() ? Operand::Gradient : Operand::Kept;
  return exchange->message(
      i, run.block(crosses),
      run.view().messageBytes(edgeOf(i), run.blocks.load(i.microBatch)),
      run.machine.stream().handle());
}

} // namespace dyna
