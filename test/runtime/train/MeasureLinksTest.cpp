//===- MeasureLinksTest.cpp - What goes between ranks takes ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/MeasureLinks.h"

#include "runtime/cost/Cluster.h"
#include "runtime/cost/CostTable.h"
#include "runtime/executor/open/OpenProgram.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/runtime/device/TestDevice.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// Replicas, as threads; what nodes they are on is only said.
class Team {
public:
  explicit Team(int ranks)
      : model_(*openProgram(program_.program())),
        graph_(*ExecutableGraph::create(
            model_, *parseStrategy("dp=" + std::to_string(ranks)))) {
    auto transports = makeThreadTransports(ranks);
    std::vector<RankResources> resources(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      resources[rank].rank = rank;
      resources[rank].device = makeTestDevice();
      resources[rank].dynamicBytes = 1 << 16;
      if (ranks > 1)
        resources[rank].transport = std::move(transports[rank]);
    }
    auto team = RankTeam::create({{&graph_}},
                                 **chooseVariant(program_.program(), "", 0),
                                 std::move(resources), {});
    EXPECT_TRUE(team.isOk()) << team.status().message();
    ranks_ = std::move(*team);
  }

  MeasuredLinks measure(const std::vector<uint64_t> &hosts,
                        const cost::Cluster &before = {}) {
    auto links = measureLinks(*ranks_, hosts, before);
    EXPECT_TRUE(links.isOk()) << links.status().message();
    if (links->cluster)
      EXPECT_TRUE(Cluster::create(*links->cluster).isOk());
    return *links;
  }
  RankTeam &ranks() { return *ranks_; }

private:
  TinyProgram program_;
  Model model_;
  ExecutableGraph graph_;
  std::unique_ptr<RankTeam> ranks_;
};

bool isMeasured(const cost::Link &link) {
  return link.latency_seconds() > 0 && link.bytes_per_second() > 1;
}

bool areEqual(const cost::Link &a, const cost::Link &b) {
  return a.latency_seconds() == b.latency_seconds() &&
         a.bytes_per_second() == b.bytes_per_second();
}

TEST(MeasureLinksTest, RowsOfRanks) {
  EXPECT_EQ(ranksPerNode({7}), 0);
  EXPECT_EQ(ranksPerNode({7, 7, 7}), 0);
  EXPECT_EQ(ranksPerNode({7, 8}), 1);
  EXPECT_EQ(ranksPerNode({7, 7, 8, 8}), 2);
  EXPECT_EQ(ranksPerNode({7, 7, 8, 8, 9}), 2);
  EXPECT_EQ(ranksPerNode({7, 7, 8}), 2);
  EXPECT_EQ(ranksPerNode({7, 8, 7, 8}), 0); // round robin
  EXPECT_EQ(ranksPerNode({7, 8, 8}), 0);
  EXPECT_EQ(ranksPerNode({7, 7, 8, 8, 7, 7}), 0);
  EXPECT_EQ(ranksPerNode({7, 7, 8, 8, 8, 8}), 0);
}

TEST(MeasureLinksTest, OneRankHasNone) {
  MeasuredLinks links = Team(1).measure({0});
  EXPECT_FALSE(links.cluster);
  EXPECT_THAT(links.note, HasSubstr("one rank has no links"));
}

TEST(MeasureLinksTest, WhatOneNodeCannotTellIsDescribed) {
  Team team(2);
  auto hosts = findHosts(team.ranks());
  ASSERT_TRUE(hosts.isOk());
  EXPECT_EQ(*hosts, (std::vector<uint64_t>{0, 0}));
  MeasuredLinks links = team.measure(*hosts);
  const cost::Cluster described = CostTable::host().cluster().description();
  EXPECT_TRUE(isMeasured(links.cluster->inside()));
  EXPECT_TRUE(areEqual(links.cluster->between(), described.between()));
  EXPECT_EQ(links.cluster->devices_per_node(), 0);
  EXPECT_THAT(links.note, HasSubstr("described for 'host'"));
  // What somebody wrote stays.
  cost::Cluster before;
  before.set_devices_per_node(8);
  before.mutable_between()->set_bytes_per_second(1234);
  before.mutable_inside()->set_bytes_per_second(0.5);
  links = team.measure(*hosts, before);
  EXPECT_EQ(links.cluster->between().bytes_per_second(), 1234);
  EXPECT_EQ(links.cluster->devices_per_node(), 8);
  EXPECT_TRUE(isMeasured(links.cluster->inside()));
  EXPECT_THAT(links.note, HasSubstr("those of the file before"));
}

TEST(MeasureLinksTest, NodesAreMeasuredApart) {
  Team team(4);
  MeasuredLinks links = team.measure({1, 1, 2, 2});
  EXPECT_TRUE(isMeasured(links.cluster->inside()));
  EXPECT_TRUE(isMeasured(links.cluster->between()));
  EXPECT_EQ(links.cluster->devices_per_node(), 2);
  EXPECT_EQ(links.note, "links between nodes: ranks 0 and 2; inside: ranks 0 "
                        "and 1");
  links = team.measure({1, 2, 1, 2});
  EXPECT_EQ(links.cluster->devices_per_node(), 0);
  EXPECT_THAT(links.note, HasSubstr("between nodes: ranks 0 and 1; inside: "
                                    "ranks 0 and 2; ranks do not lie"));
  links = team.measure({1, 2, 3, 4});
  EXPECT_EQ(links.cluster->devices_per_node(), 1);
  EXPECT_TRUE(areEqual(links.cluster->inside(),
                       CostTable::host().cluster().description().inside()));
  EXPECT_THAT(links.note, HasSubstr("inside are those described for 'host'"));
}

} // namespace
