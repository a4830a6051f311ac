//===- StrategyTest.cpp - Strategies as text ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/Strategy.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(StrategyTest, EveryKeyIsRead) {
  auto s = parseStrategy(
      " a.1 : dp=2, tp=3 ,pp=2,zero=1,sp=1,recompute=selective,layers=7+9 ");
  ASSERT_TRUE(s.isOk()) << s.status().message();
  EXPECT_EQ(s->name, "a.1");
  EXPECT_THAT((std::vector<int>{s->dp, s->tp, s->pp}), ElementsAre(2, 3, 2));
  EXPECT_TRUE(s->zero && s->sp);
  EXPECT_EQ(s->recompute, plan::RECOMPUTE_SELECTIVE);
  EXPECT_THAT(s->layers, ElementsAre(7, 9));
  EXPECT_EQ(s->ranks(), 12);
  EXPECT_EQ(describeStrategy(*s),
            "a.1: dp=2,tp=3,pp=2,zero=1,sp=1,recompute=selective,layers=7+9");
  auto again = parseStrategy(describeStrategy(*s));
  EXPECT_EQ(describeStrategy(*again), describeStrategy(*s));
}

TEST(StrategyTest, WhatIsAbsentIsOneOrOff) {
  auto s = parseStrategy("pp=4");
  ASSERT_TRUE(s.isOk());
  EXPECT_THAT((std::vector<int>{s->dp, s->tp, s->pp}), ElementsAre(1, 1, 4));
  EXPECT_FALSE(s->zero || s->sp || s->recompute || !s->layers.empty());
  EXPECT_EQ(s->name, "");
}

TEST(StrategyTest, RanksAreNumberedInTheirOrder) {
  auto s = parseStrategy("dp=2,tp=3,order=pp+tp + dp");
  ASSERT_TRUE(s.isOk()) << s.status().message();
  EXPECT_THAT(s->order, ElementsAre("pp", "tp", "dp"));
  EXPECT_EQ(describeStrategy(*s), "dp=2,tp=3,pp=1,order=pp+tp+dp");
  EXPECT_THAT(parseStrategy("dp=2,order=dp+pp+tp")->order,
              ElementsAre("dp", "pp", "tp"));
  EXPECT_EQ(describeStrategy(*parseStrategy("dp=2,order=dp+pp+tp")),
            "dp=2,tp=1,pp=1");

  const Model &model = modelWithDegrees();
  ExecutableGraph graph = *ExecutableGraph::create(
      model, *parseStrategy("dp=2,tp=2,pp=3,layers=1+2+2,order=tp+dp+pp"));
  EXPECT_EQ(graph.rankAt({1, 2, 0}), 5);
  EXPECT_EQ(graph.rankAt({1, 2, 1}), 11);
  // Layers 1+2+2: edge 3 leads from the second stage to the third.
  EXPECT_EQ(graph.peerOf(4, 3, /*towardsConsumer=*/true), 5);
  EXPECT_EQ(graph.peerOf(5, 3, /*towardsConsumer=*/false), 4);
  EXPECT_THAT(graph.compiledGroup(4, DYNA_GROUP_TP), ElementsAre(4, 10));
  EXPECT_THAT(graph.compiledGroup(4, DYNA_GROUP_DP), ElementsAre(1, 4));
  EXPECT_THAT(graph.compiledGroup(4, DYNA_GROUP_PP), ElementsAre(3, 4, 5));
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    EXPECT_EQ(graph.rankAt(graph.placeOf(rank)), rank);
    RankView view = graph.rankView(rank);
    EXPECT_EQ(view.firstLayer(), graph.replicaView(rank).firstLayer());
    EXPECT_EQ(view.endLayer(), graph.stage(graph.placeOf(rank).stage).endLayer);
  }
}

/// Where parts are uneven, gradients have one size on all shards, that of the
/// largest part: so has a message of them.
TEST(StrategyTest, GradientsOfUnevenPartsHaveRoomForTheLargest) {
  ExecutableGraph graph =
      *ExecutableGraph::create(modelWithDegrees(), *parseStrategy("tp=2,sp=1"));
  const Load load =
      loadOfSample(65); // parts of 33 and 32 tokens, in rows of 32
  const RankView &first = graph.replicaView(0), &second = graph.replicaView(1);
  ASSERT_EQ(first.rowsOf(inputOf(first.kind(1)), load), 33);
  ASSERT_EQ(second.rowsOf(inputOf(second.kind(1)), load), 32);
  EXPECT_EQ(first.gradientBytes(1, load), 8 * tinyWidth * 64);
  EXPECT_EQ(second.gradientBytes(1, load), 8 * tinyWidth * 64);
}

/// Plans name their graph: what deals ranks otherwise has another name, and what
/// is no more than a label, or the order that is meant anyway, has not.
TEST(StrategyTest, GraphsAreNamedByAllThatTheyDiffer) {
  auto nameOf = [](const char *text) {
    return graphName(*parseStrategy(text));
  };
  const std::string name = nameOf("dp=2,tp=2");
  for (const char *other :
       {"dp=2,tp=2,order=tp+dp+pp", "dp=2,tp=2,order=dp+tp+pp",
        "dp=2,tp=2,sp=1", "dp=2,tp=2,zero=1"})
    EXPECT_NE(nameOf(other), name) << other;
  EXPECT_NE(nameOf("dp=2,tp=2,order=tp+dp+pp"),
            nameOf("dp=2,tp=2,order=pp+tp+dp"));
  EXPECT_EQ(nameOf("dp=2,tp=2,order=dp+pp+tp"), name);
}

TEST(StrategyTest, SeveralHaveDistinctNames) {
  auto several = parseStrategies("a: dp=2,tp=2,pp=2; b: dp=4,tp=2;");
  ASSERT_TRUE(several.isOk());
  ASSERT_EQ(several->size(), 2u);
  EXPECT_EQ((*several)[1].name, "b");
  EXPECT_EQ((*several)[1].dp, 4);
}

TEST(StrategyTest, NamesAreLookedUp) {
  std::vector<std::string> known = {"a: dp=2", "b: tp=4,sp=1"};
  EXPECT_EQ(findStrategy("b", known)->tp, 4);
  EXPECT_EQ(findStrategy("pp=3", known)->pp, 3);
  EXPECT_THAT(findStrategy("c", known).status().message(),
              HasSubstr("no strategy is named 'c': this binary knows a, b"));
  EXPECT_THAT(findStrategy("c", {}).status().message(),
              HasSubstr("compiled without names"));
}

TEST(StrategyTest, FirstOfANameStays) {
  auto first = parseStrategies("b: dp=2; a: tp=2"),
       rest = parseStrategies("a: dp=8; c: pp=2");
  ASSERT_TRUE(first.isOk() && rest.isOk());
  std::vector<Strategy> joined = joinStrategies(*first, *rest);
  EXPECT_EQ(describeStrategies(joined),
            "b: dp=2,tp=1,pp=1; a: dp=1,tp=2,pp=1; c: dp=1,tp=1,pp=2");
  auto again = parseStrategies(describeStrategies(joined));
  ASSERT_TRUE(again.isOk());
  EXPECT_EQ(again->size(), 3u);
  EXPECT_EQ(describeStrategies(joinStrategies({}, *rest)),
            describeStrategies(*rest));
  EXPECT_EQ(describeStrategies({}), "");
}

TEST(StrategyTest, ErrorsNameTextKeyAndExpectation) {
  struct {
    const char *text, *message;
  } cases[] = {
      {"", "says nothing"},
      {"a:", "says nothing"},
      {"dp=0", "has dp=0: expects a whole number from 1"},
      {"tp=two", "has tp=two"},
      {"tp=99999999999", "has tp=99999999999"},
      {"zero=2", "has zero=2: expects a whole number from 0 to 1"},
      {"cp=2", "has the key 'cp': expects dp, tp"},
      {"dp", "has 'dp', where key=value was expected"},
      {"dp=2,dp=3", "says 'dp' twice"},
      {"dp=2;tp=2", "holds several, where one was expected"},
      {"recompute=some", "expects none, selective or full"},
      {"sp=1", "needs tp of 2 or more"},
      {"pp=3,layers=4+4", "gives layers for 2 stages, but has pp=3"},
      {"pp=2,layers=4+0", "has layers=0"},
      {"a b: dp=2", "has the name 'a b'"},
      {"home: dp=2", "is named home, which means something else"},
      {"search: dp=2", "is named search, which means something else"},
      {"order=dp+tp", "has order=dp+tp: expects dp, pp and tp, each once"},
      {"order=dp+tp+tp", "has order=dp+tp+tp"},
      {"order=dp+tp+pp+dp", "has order=dp+tp+pp+dp"},
      {"dp=1024,tp=1024,pp=2", "more than 1048576 ranks"},
  };
  for (const auto &test : cases) {
    auto parsed = parseStrategy(test.text);
    ASSERT_FALSE(parsed.isOk()) << test.text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(test.message));
    EXPECT_THAT(parsed.status().message(), HasSubstr(test.text));
  }
  EXPECT_THAT(parseStrategies("a: dp=2; a: dp=4").status().message(),
              HasSubstr("two strategies are named 'a'"));
  EXPECT_THAT(parseStrategies("dp=2").status().message(),
              HasSubstr("has no name"));
  EXPECT_THAT(parseStrategies(" ; ").status().message(),
              HasSubstr("no strategy given"));
}

} // namespace
