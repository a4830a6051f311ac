//===- LayerExchanges.cpp - Lists the exchanges of a layer function -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/LayerExchanges.h"

#include "dialects/dist/Dist.h"
#include "passes/memory/value/TokenParts.h"
#include "runtime/abi/Collectives.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;

// CollectiveLowering.cpp uses the codes of the manifest.
static_assert(
    plan::LayerExchange::ALL_REDUCE == int(DYNA_EXCHANGE_ALL_REDUCE) &&
    plan::LayerExchange::ALL_GATHER == int(DYNA_EXCHANGE_ALL_GATHER) &&
    plan::LayerExchange::REDUCE_SCATTER == int(DYNA_EXCHANGE_REDUCE_SCATTER) &&
    plan::LayerExchange::ALL_TO_ALL == int(DYNA_EXCHANGE_ALL_TO_ALL));

namespace {

/// Lists the exchanges of a lowered function in the order of its calls.
class ExchangeList {
public:
  ExchangeList(FunctionOp function, plan::LayerKind::Role *role)
      : tokens(function), role(role) {
    for (Operation &op : function.getBody().front())
      visit(&op);
  }

private:
  void visit(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](dist::ExchangeOp fused) {
          plan::LayerExchange *exchange = add(fused.getGroup().getIndex());
          for (dist::CollectiveOpInterface collective : fused.getCollectives())
            addTensor(exchange, collective);
        })
        .Case([&](dist::CollectiveOpInterface collective) {
          if (collective.isExchange())
            addTensor(add(collective.getGroup().getIndex()), collective);
        })
        .Case([&](ExchangingOpInterface inside) {
          for (const InnerExchange &sum : inside.getInnerExchanges())
            addSum(sum);
        });
  }

  plan::LayerExchange *add(int64_t group) {
    plan::LayerExchange *exchange = role->add_exchanges();
    exchange->set_group(static_cast<int32_t>(group));
    return exchange;
  }

  void addTensor(plan::LayerExchange *exchange,
                 dist::CollectiveOpInterface op) {
    plan::LayerExchange::Tensor *tensor = exchange->add_tensors();
    ::dyna::ReshardStep step = op.getStep();
    Value whole = op.getX();
    switch (step.kind) {
    case ::dyna::ReshardKind::AllReduce:
      tensor->set_kind(plan::LayerExchange::ALL_REDUCE);
      break;
    case ::dyna::ReshardKind::AllGather:
      tensor->set_kind(plan::LayerExchange::ALL_GATHER);
      whole = op->getResult(0);
      break;
    case ::dyna::ReshardKind::ReduceScatter:
      tensor->set_kind(plan::LayerExchange::REDUCE_SCATTER);
      break;
    case ::dyna::ReshardKind::AllToAll:
      tensor->set_kind(plan::LayerExchange::ALL_TO_ALL);
      // The whole tensor has the rows of the side on which rows are not split,
      // and the columns of the other side.
      if (step.dim == 0)
        whole = op->getResult(0);
      break;
    case ::dyna::ReshardKind::Slice:
      llvm_unreachable("nothing is exchanged");
    }
    auto type = cast<RankedTensorType>(whole.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    bool perToken = type.getRank() > 0 && type.isDynamicDim(0);
    for (int64_t size : type.getShape().drop_front(perToken ? 1 : 0))
      bytes *= size;
    if (step.kind == ::dyna::ReshardKind::AllToAll)
      bytes *= op.getGroup().getSize();
    if (perToken)
      tensor->mutable_bytes()->set_tq(bytes);
    else
      tensor->mutable_bytes()->set_constant(bytes);
    if (dist::GroupAttr dealt = tokens.of(whole))
      tensor->set_dealt_group(static_cast<int32_t>(dealt.getIndex()));
  }

  void addSum(const InnerExchange &sum) {
    plan::LayerExchange *exchange = add(sum.group);
    exchange->set_per_chunk(true);
    plan::LayerExchange::Tensor *tensor = exchange->add_tensors();
    tensor->set_kind(plan::LayerExchange::ALL_REDUCE);
    tensor->mutable_bytes()->set_tq(sum.bytesPerRow);
  }

  TokenParts tokens;
  plan::LayerKind::Role *role;
};

} // namespace

void mlir::dyna::listExchanges(FunctionOp function,
                               plan::LayerKind::Role *role) {
  ExchangeList(function, role);
}
