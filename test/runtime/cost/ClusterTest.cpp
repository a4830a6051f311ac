//===- ClusterTest.cpp - What messages and exchanges take -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/Cluster.h"
#include "runtime/cost/CostTable.h"
#include "runtime/cost/Descriptions.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace dyna;
using plan::LayerExchange;
using testing::HasSubstr;

namespace {

/// Nodes of four; inside 2 s and 100 bytes a second, between 30 s and 20.
Cluster nodesOfFour() {
  cost::Cluster description;
  description.set_devices_per_node(4);
  description.mutable_inside()->set_latency_seconds(2);
  description.mutable_inside()->set_bytes_per_second(100);
  description.mutable_between()->set_latency_seconds(30);
  description.mutable_between()->set_bytes_per_second(20);
  return *Cluster::create(description);
}

TEST(ClusterTest, MessagesTakeTheirLink) {
  Cluster cluster = nodesOfFour();
  EXPECT_DOUBLE_EQ(cluster.messageSeconds(0, 3, 500), 2 + 5);
  EXPECT_DOUBLE_EQ(cluster.messageSeconds(3, 4, 500), 30 + 25);
  EXPECT_DOUBLE_EQ(cluster.messageSeconds(9, 2, 0), 30);
  EXPECT_DOUBLE_EQ(Cluster().messageSeconds(0, 1, 1e9), 0);
}

TEST(ClusterTest, GroupsLieOnNodes) {
  Cluster cluster = nodesOfFour();
  auto shape = [&](const std::vector<int> &ranks) {
    GroupShape shape = cluster.shapeOf(ranks);
    return std::pair(shape.ranks, shape.perNode);
  };
  EXPECT_EQ(shape({0, 1, 2, 3}), std::pair(4, 4));
  EXPECT_EQ(shape({0, 4, 8}), std::pair(3, 1));
  EXPECT_EQ(shape({2, 3, 4, 5, 6, 7}), std::pair(6, 4));
  EXPECT_EQ(shape({5}), std::pair(1, 1));
}

/// The steps of a ring whose ranks lie node by node, walked one by one: in each
/// step every rank passes one n-th on, and the step ends with the slowest. As
/// many rings as a node has members, each with its part of the bytes, leave the
/// node by a port of their own; inside of it they share the devices' links.
double ringSeconds(double bytes, int nodes, int perNode) {
  const int n = nodes * perNode;
  double seconds = 0;
  for (int step = 1; step < n; ++step) {
    double inside = perNode > 1 ? bytes / n / 100 : 0;
    double between = nodes > 1 ? bytes / n / perNode / 20 : 0;
    seconds += std::max(inside, between);
  }
  return seconds;
}

TEST(ClusterTest, ExchangesGoRoundARing) {
  Cluster cluster = nodesOfFour();
  for (int nodes : {1, 2, 5})
    for (int perNode : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << nodes << " nodes of " << perNode);
      const int n = nodes * perNode;
      GroupShape shape{n, perNode};
      double steps = n > 1 ? (nodes - 1) * 30 + (n - nodes) * 2.0 : 0;
      double once = steps + ringSeconds(4000, nodes, perNode);
      EXPECT_NEAR(
          cluster.exchangeSeconds(LayerExchange::ALL_GATHER, 4000, shape), once,
          1e-9);
      EXPECT_NEAR(
          cluster.exchangeSeconds(LayerExchange::REDUCE_SCATTER, 4000, shape),
          once, 1e-9);
      EXPECT_NEAR(
          cluster.exchangeSeconds(LayerExchange::ALL_REDUCE, 4000, shape),
          2 * once, 1e-9);
      EXPECT_NEAR(
          cluster.exchangeSeconds(LayerExchange::ALL_TO_ALL, 4000, shape),
          steps + ringSeconds(4000, nodes, perNode) / n, 1e-9);
    }
  // Two nodes of two by hand: two ports of 20 bytes a second, three steps.
  EXPECT_DOUBLE_EQ(
      cluster.exchangeSeconds(LayerExchange::ALL_GATHER, 400, {4, 2}),
      30 + 2 * 2 + 3 * 100 / 40.0);
}

TEST(ClusterTest, WhatCannotBeIsRefused) {
  struct {
    const char *text, *words;
  } cases[] = {
      {"nodes: -1", "cluster: nodes expects 0 or more, but got -1"},
      {"devices_per_node: -8", "devices_per_node expects 0 or more"},
      {"nodes: 4", "4 nodes, but devices_per_node is not said"},
      {"nodes: 4 devices_per_node: 8 inside { latency_seconds: 1 }",
       "nodes of 8 devices, but between is not said"},
      {"inside { latency_seconds: -1 }",
       "inside: latency_seconds expects 0 to"},
      {"between { latency_seconds: nan }", "between: latency_seconds"},
      {"between { bytes_per_second: 0.5 }",
       "between: bytes_per_second expects a rate of at least 1"},
      {"inside { bytes_per_second: inf }", "inside: bytes_per_second"},
      {"inside { latency_seconds: 1e-6 }",
       "cluster: inside: latency_seconds is 1e-06, but bytes_per_second is not "
       "said"},
      {"devices_per_node: 8 between { latency_seconds: 2 }",
       "cluster: between: latency_seconds is 2, but bytes_per_second"},
  };
  for (const auto &bad : cases) {
    auto table =
        CostTable::parse(std::string("cluster { ") + bad.text + " }", "file");
    ASSERT_FALSE(table.isOk()) << bad.text;
    EXPECT_THAT(table.status().message(), HasSubstr(bad.words));
    EXPECT_THAT(table.status().message(), HasSubstr("file: "));
  }
}

TEST(ClusterTest, WhatIsNotSaidTakesNoTime) {
  for (const char *text :
       {"cluster {}", "cluster { inside {} between {} }",
        "cluster { inside { latency_seconds: 0 bytes_per_second: 0 } }"}) {
    auto table = CostTable::parse(text, "file");
    ASSERT_TRUE(table.isOk()) << table.status().message();
    EXPECT_EQ(table->cluster().messageSeconds(0, 1, 1e9), 0);
  }
}

TEST(ClusterTest, DescribedDevicesHaveNames) {
  EXPECT_GE(descriptions().size(), 7u);
  for (const Description &description : descriptions()) {
    auto table = CostTable::described(description.name);
    ASSERT_TRUE(table.isOk()) << table.status().message();
    EXPECT_EQ(table->device().name(), description.name);
    // A node's links are faster than the network.
    const cost::Cluster &cluster = table->cluster().description();
    EXPECT_GT(cluster.inside().bytes_per_second(),
              cluster.between().bytes_per_second());
    EXPECT_LE(cluster.inside().latency_seconds(),
              cluster.between().latency_seconds());
    if (std::string(description.name) == "host")
      continue;
    EXPECT_GT(table->device().memory_bytes(), INT64_C(30000000000));
    EXPECT_GT(table->device().bf16_flops(), table->device().f32_flops());
  }
  auto cluster = CostTable::described("a100-40g:4x8");
  ASSERT_TRUE(cluster.isOk()) << cluster.status().message();
  EXPECT_EQ(cluster->cluster().devices(), 32);
  EXPECT_EQ(cluster->cluster().nodeOf(31), 3);
  for (const char *bad : {"a100-40g:", "a100-40g:4", "a100-40g:4x",
                          "a100-40g:0x8", "a100-40g:4x8x2", "a100-40g:-4x8"})
    EXPECT_THAT(CostTable::described(bad).status().message(),
                HasSubstr("expects nodes x devices of each"))
        << bad;
  EXPECT_THAT(CostTable::described("a100").status().message(),
              HasSubstr("no device 'a100' is described: expects a100-40g"));
}

TEST(ClusterTest, DevicesAreLikeThoseWhoseNamesTheySay) {
  auto like = [](const char *says) {
    return CostTable::likest(says, "host").device().name();
  };
  EXPECT_EQ(like("NVIDIA A100-SXM4-80GB, compute capability 8.0"), "a100-80g");
  EXPECT_EQ(like("NVIDIA A100-SXM4-40GB"), "a100-40g");
  EXPECT_EQ(like("NVIDIA H200, compute capability 9.0"), "h200");
  EXPECT_EQ(like("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(like("Tesla V100-SXM2-16GB"), "v100");
  EXPECT_EQ(like("A100 of unknown size"), "host");
  EXPECT_EQ(like("16 threads, oneDNN"), "host");
  EXPECT_EQ(like(""), "host");
  EXPECT_EQ(CostTable::likest("NVIDIA L40", "h100").device().name(), "h100");
}

} // namespace
