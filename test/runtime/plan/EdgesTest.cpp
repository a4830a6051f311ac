//===- EdgesTest.cpp - Messages on edges of a graph that is no chain ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/ExchangeChecker.h"
#include "runtime/plan/verify/OrderChecker.h"
#include "test/runtime/plan/SkippingModel.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <optional>

using namespace dyna;
using plan::Instruction;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

TEST(EdgesTest, FirstInputsHaveTheNumbersOfTheirLayers) {
  const Model &model = skippingModel();
  ASSERT_EQ(model.edges(), 7);
  std::vector<std::pair<int, int>> ends;
  for (int e = 0; e < model.edges(); ++e)
    ends.push_back({model.edge(e).producer, model.edge(e).consumer});
  EXPECT_THAT(ends,
              ElementsAre(std::pair(-1, 0), std::pair(0, 1), std::pair(1, 2),
                          std::pair(2, 3), std::pair(3, 4), std::pair(1, 3),
                          std::pair(0, 3)));
  EXPECT_THAT(model.inputsOf(3), ElementsAre(3, 5, 6));
  EXPECT_THAT(model.outputsOf(0), ElementsAre(1, 6));
  EXPECT_THAT(model.outputsOf(4), IsEmpty());
  // A chain has no others.
  EXPECT_EQ(Model::create(tinyManifest())->edges(),
            Model::create(tinyManifest())->layers());
}

TEST(EdgesTest, NoManifestMayHaveThemYet) {
  plan::Manifest manifest = tinyManifest();
  EXPECT_TRUE(checkManifest(manifest).isOk());
  manifest.mutable_layers(3)->add_producers(1);
  EXPECT_THAT(checkManifest(manifest).message(),
              HasSubstr("a model is a chain of layers"));
}

TEST(EdgesTest, PeersAreOnTheStagesOfTheTwoLayers) {
  // Ranks d * 4 + stage, layers 0, 1, 2, 3 and 4.
  const ExecutableGraph graph = skippingGraph("dp=2,pp=4,layers=1+1+1+2");
  EXPECT_THAT(graph.crossingEdges(), ElementsAre(1, 2, 3, 5, 6));
  EXPECT_EQ(graph.peerOf(0, 6, true), 3);
  EXPECT_EQ(graph.peerOf(3, 6, false), 0);
  EXPECT_EQ(graph.peerOf(5, 5, true), 7);
  EXPECT_EQ(graph.peerOf(7, 5, false), 5);
  EXPECT_EQ(graph.peerOf(7, 3, false), 6);
}

// Bytes are those of the input that the edge leads to.
TEST(EdgesTest, BytesAreThoseOfWhatTheEdgeCarries) {
  const ExecutableGraph graph = skippingGraph("pp=4,layers=1+1+1+2");
  const Load load = loadOfSample(10);
  const int64_t first = graph.replicaView(0).messageBytes(3, load);
  EXPECT_EQ(first, 10 * tinyWidth * 8);
  EXPECT_EQ(graph.replicaView(0).messageBytes(5, load), 2 * first);
  EXPECT_EQ(graph.replicaView(3).messageBytes(6, load), 3 * first);
}

// Layers 0 and 1 against 2 to 4: three edges lead over one border.
TEST(EdgesTest, SeveralEdgesMayLeadOverOneBorder) {
  const ExecutableGraph graph = skippingGraph("pp=2,layers=2+3");
  EXPECT_THAT(graph.crossingEdges(), ElementsAre(2, 5, 6));
  EXPECT_EQ(graph.channelIndex(2), 0);
  EXPECT_EQ(graph.channelIndex(5), 1);
  EXPECT_EQ(graph.channelIndex(6), 2);
}

//===----------------------------------------------------------------------===//
// P9 to P11
//===----------------------------------------------------------------------===//

std::string exchangesOf(const plan::Plan &plan, const std::string &strategy) {
  PlanPosition failedAt;
  return verifyExchanges(skippingGraph(strategy), plan, failedAt).message();
}
constexpr const char *fourStages = "pp=4,layers=1+1+1+2";

std::vector<Instruction>::iterator find(plan::Plan &plan, int rank,
                                        Instruction::Op op, int edge) {
  auto &list = plan.ranks[rank].instructions;
  return std::find_if(list.begin(), list.end(), [&](const Instruction &i) {
    return i.op == op && edgeOf(i) == edge;
  });
}

TEST(EdgesTest, MessagesMeetOverSkippedStages) {
  EXPECT_EQ(exchangesOf(skippingMessages(), fourStages), "");
}

TEST(EdgesTest, AMessageWithoutCounterpartIsRefused) {
  plan::Plan plan = skippingMessages();
  plan.ranks[3].instructions.erase(
      find(plan, 3, Instruction::RECV_ACT_START, 5));
  EXPECT_THAT(exchangesOf(plan, fourStages),
              HasSubstr("(SEND_ACT_START layer 5 micro-batch 0 to rank 3)"));
}

TEST(EdgesTest, EdgesOverOneBorderHaveOneOrder) {
  plan::Plan plan;
  plan.microBatches.push_back({{{0, 0, 10}}, 0});
  plan.ranks.resize(2);
  for (int edge : {2, 5, 6}) {
    addTo(plan, 0, Instruction::SEND_ACT_START, edge);
    addTo(plan, 1, Instruction::RECV_ACT_START, edge);
  }
  EXPECT_EQ(exchangesOf(plan, "pp=2,layers=2+3"), "");
  std::swap(plan.ranks[1].instructions[1], plan.ranks[1].instructions[2]);
  EXPECT_THAT(exchangesOf(plan, "pp=2,layers=2+3"),
              HasSubstr("message 1 between ranks 0 and 1"));
}

// Rank 0 offers edge 6 first, but rank 3 takes it behind edge 3, which hangs on edge 1.
TEST(EdgesTest, AWaitAroundSkippedStagesIsRefused) {
  plan::Plan plan = skippingMessages();
  std::iter_swap(find(plan, 0, Instruction::SEND_ACT_START, 1),
                 find(plan, 0, Instruction::SEND_ACT_START, 6));
  EXPECT_EQ(exchangesOf(plan, fourStages), "");
  std::iter_swap(find(plan, 3, Instruction::RECV_ACT_START, 3),
                 find(plan, 3, Instruction::RECV_ACT_START, 6));
  EXPECT_THAT(exchangesOf(plan, fourStages),
              HasSubstr("the ranks wait for each other"));
}

//===----------------------------------------------------------------------===//
// P3 on one stage
//===----------------------------------------------------------------------===//

class StageOrder {
public:
  explicit StageOrder(int stage)
      : graph_(skippingGraph(fourStages)), view_(graph_.replicaView(stage)) {
    plan_.ranks.resize(1);
  }
  StageOrder &add(Instruction::Op op, int layer) {
    addTo(plan_, 0, op, layer);
    return *this;
  }
  StageOrder &message(Instruction::Op start, Instruction::Op wait,
                      std::vector<int> edges) {
    for (int edge : edges)
      add(start, edge).add(wait, edge);
    return *this;
  }
  StageOrder &receive(std::vector<int> edges) {
    return message(Instruction::RECV_ACT_START, Instruction::RECV_ACT_WAIT,
                   std::move(edges));
  }
  StageOrder &send(std::vector<int> edges) {
    return message(Instruction::SEND_ACT_START, Instruction::SEND_ACT_WAIT,
                   std::move(edges));
  }
  StageOrder &receiveGradients(std::vector<int> edges) {
    return message(Instruction::RECV_GRAD_START, Instruction::RECV_GRAD_WAIT,
                   std::move(edges));
  }
  StageOrder &sendGradients(std::vector<int> edges) {
    return message(Instruction::SEND_GRAD_START, Instruction::SEND_GRAD_WAIT,
                   std::move(edges));
  }
  std::string wrong() const {
    const std::vector<int> microBatches = {0};
    auto order =
        OrderChecker::create(view_, microBatches, {false, false, {false}});
    for (const Instruction &i : plan_.ranks[0].instructions)
      if (Status status = order->step(i); !status.isOk())
        return status.message();
    return order->finish().message();
  }

private:
  ExecutableGraph graph_;
  const RankView &view_;
  plan::Plan plan_;
};

/// Layers 3 and 4, which take three edges.
std::string lastStage(std::vector<int> received, std::vector<int> sent) {
  return StageOrder(3)
      .add(Instruction::LOAD, 0)
      .receive(std::move(received))
      .add(Instruction::FORWARD, 3)
      .add(Instruction::FORWARD, 4)
      .add(Instruction::BACKWARD, 4)
      .add(Instruction::FREE, 4)
      .add(Instruction::BACKWARD, 3)
      .add(Instruction::FREE, 3)
      .sendGradients(std::move(sent))
      .wrong();
}

/// Layer 1, which gives two edges.
std::string secondStage(std::vector<int> sent, std::vector<int> received) {
  return StageOrder(1)
      .add(Instruction::LOAD, 0)
      .receive({1})
      .add(Instruction::FORWARD, 1)
      .send(std::move(sent))
      .receiveGradients(std::move(received))
      .add(Instruction::BACKWARD, 1)
      .add(Instruction::FREE, 1)
      .sendGradients({1})
      .wrong();
}

TEST(EdgesTest, ALayerWaitsForAllItsInputs) {
  EXPECT_EQ(lastStage({5, 3, 6}, {6, 3, 5}), "");
  for (std::vector<int> received : {std::vector{3, 5}, {3, 6}, {5, 6}})
    EXPECT_THAT(lastStage(received, {3, 5, 6}),
                HasSubstr("its input has not been received yet"));
  EXPECT_THAT(lastStage({3, 5, 6, 5}, {3, 5, 6}), HasSubstr("started twice"));
  EXPECT_THAT(lastStage({2, 3}, {}),
              HasSubstr("at this end of the stage lies layer 3 or 5 or 6"));
  EXPECT_THAT(lastStage({3, 5, 6}, {3, 5}),
              HasSubstr("its gradient is not sent"));
}

TEST(EdgesTest, ALayerWaitsForTheGradientsOfAllItsOutputs) {
  EXPECT_EQ(secondStage({2, 5}, {5, 2}), "");
  EXPECT_THAT(secondStage({2}, {2, 5}),
              HasSubstr("its activation is not sent"));
  EXPECT_THAT(secondStage({2, 5}, {2}),
              HasSubstr("the gradient of its output has not been received"));
}

// Edge 5 is ready behind layer 1, whatever runs behind it on the stage.
TEST(EdgesTest, AnEdgeIsSentOnceItsProducerHasRun) {
  EXPECT_THAT(
      StageOrder(1).add(Instruction::LOAD, 0).receive({1}).send({5}).wrong(),
      HasSubstr("sent before its forward"));
  EXPECT_THAT(StageOrder(3)
                  .add(Instruction::LOAD, 0)
                  .receive({3, 5, 6})
                  .add(Instruction::FORWARD, 3)
                  .add(Instruction::FORWARD, 4)
                  .add(Instruction::BACKWARD, 4)
                  .sendGradients({6})
                  .wrong(),
              HasSubstr("sent before its backward"));
}

} // namespace
