//===- RankExchangeTest.cpp - Messages on edges that skip stages ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/RankExchange.h"

#include "runtime/base/text/Text.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/runtime/plan/SkippingModel.h"

#include <map>

using namespace dyna;
using plan::Instruction;

namespace {

/// Bytes that say which edge, direction and micro-batch they belong to.
std::vector<unsigned char> contents(const Instruction &i) {
  const bool isGradient = exchangeOf(i.op).isGradient();
  return std::vector<unsigned char>(
      16 * (1 + edgeOf(i)),
      static_cast<unsigned char>(100 * (isGradient ? 1 : 0) +
                                 10 * i.microBatch + edgeOf(i)));
}

/// Runs the messages of a plan on threads. Fails if a rank receives other bytes.
Status runMessages(const ExecutableGraph &graph, const plan::Plan &plan) {
  return runRanks(graph.ranks(), [&](Transport &transport) -> Status {
    const RankView &view = graph.replicaView(transport.rank());
    SharedGroups groups;
    DYNA_ASSIGN_OR_RETURN(auto exchange,
                          RankExchange::create(graph, view, transport, groups));
    std::map<std::tuple<bool, int, int>, std::vector<unsigned char>> buffers;
    for (const Instruction &i : plan.ranks[transport.rank()].instructions) {
      const ExchangeOp op = exchangeOf(i.op);
      auto &buffer = buffers[{op.isGradient(), edgeOf(i), i.microBatch}];
      if (op.starts) {
        buffer = contents(i);
        if (!op.sends)
          buffer.assign(buffer.size(), 0xFF);
      }
      DYNA_RETURN_IF_ERROR(exchange->message(
          i, buffer.data(), static_cast<int64_t>(buffer.size()), nullptr));
      if (!op.starts && buffer != contents(i))
        return Status::internal(describeInstruction(i) + " got other bytes");
    }
    return Status::ok();
  });
}

TEST(RankExchangeTest, MessagesSkipStages) {
  const Status status =
      runMessages(skippingGraph("pp=4,layers=1+1+1+2"), skippingMessages());
  EXPECT_TRUE(status.isOk()) << status.message();
}

// Edges 2, 5 and 6 of two micro-batches are all under way between ranks 0 and 1.
TEST(RankExchangeTest, SeveralEdgesCrossOneBorder) {
  plan::Plan plan;
  plan.ranks.resize(2);
  for (auto [send, receive] :
       {std::pair(Instruction::SEND_ACT_START, Instruction::RECV_ACT_START),
        {Instruction::SEND_ACT_WAIT, Instruction::RECV_ACT_WAIT}})
    for (int microBatch : {0, 1})
      for (int edge : {5, 2, 6}) {
        addTo(plan, 0, send, edge, microBatch);
        addTo(plan, 1, receive, edge, microBatch);
      }
  const Status status = runMessages(skippingGraph("pp=2,layers=2+3"), plan);
  EXPECT_TRUE(status.isOk()) << status.message();
}

} // namespace
