//===- CostTextTest.cpp - Tables of costs, written ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostText.h"

#include "runtime/cost/CostTable.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

using namespace dyna;

namespace {

cost::Table tableOf(const std::string &text) {
  auto table = CostTable::parse(text, "test");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return table.isOk() ? table->message() : cost::Table();
}

const char *const everything = R"(
  entries { kind: "a \"b\"\n" tp: 2 sp: true direction: BACKWARD_INPUT
    points { tokens: 3 pairs: 5 targets: 1 seconds: 0.125 }
    points { tokens: 4503599627370495 seconds: 0.25 }
    points { tokens: 4 pairs: 42 context: 8 seconds: 0.5 } }
  layers { kind: "a \"b\"\n" parameters: 7 flops_per_token: 9007199254740993
    flops_per_pair: 5 flops_per_target: 6 }
  layers { kind: "head" }
  entries { kind: "head" direction: UPDATE points { seconds: 3 } }
  device { name: "n" f64_flops: 1 f32_flops: 2e12 bf16_flops: 3
    bytes_per_second: 4 launch_seconds: 5e-06 flops_reach: 0.5 bytes_reach: 0.25
    memory_bytes: 77 instruction_seconds: 7e-07 step_seconds: 0.0001 }
  cluster { nodes: 3 devices_per_node: 8
    inside { latency_seconds: 2e-06 bytes_per_second: 1e10 }
    between { latency_seconds: 3e-06 bytes_per_second: 2e9 } }
  compute_type: "bf16"
  sparse { source: "s" points { sparsity: 0.5 forward: 1.5 }
    points { sparsity: 0.875 forward: 0.25 input_gradient: 2
      weight_gradient: 3 } })";

TEST(CostTextTest, EveryFieldComesBack) {
  cost::Table table = tableOf(everything);
  std::string text = writeCosts(table, {"of a test", "tp=2: two"});
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(table, tableOf(text)))
      << text;
  EXPECT_EQ(costComments(text),
            (std::vector<std::string>{"of a test", "tp=2: two"}));
  EXPECT_EQ(costComments("#\nentries"), std::vector<std::string>{""});
  EXPECT_TRUE(costComments("entries # behind").empty());
}

TEST(CostTextTest, MergedOnesKeepWhatWasNotMeasured) {
  cost::Table before = tableOf(R"(
    entries { kind: "x" direction: FORWARD points { tokens: 1 seconds: 1 } }
    entries { kind: "x" tp: 2 direction: FORWARD points { tokens: 1 seconds: 2 } }
    entries { kind: "x" tp: 2 sp: true direction: FORWARD points { tokens: 1 seconds: 3 } }
    entries { kind: "y" tp: 2 direction: FORWARD points { tokens: 1 seconds: 4 } }
    layers { kind: "y" parameters: 4 }
    cluster { inside { latency_seconds: 1 bytes_per_second: 1 } }
    sparse { points { sparsity: 0.5 forward: 1.5 } }
    compute_type: "f32")");
  cost::Table measured = tableOf(R"(
    entries { kind: "x" tp: 1 direction: FORWARD points { tokens: 1 seconds: 10 } }
    entries { kind: "x" tp: 2 direction: FORWARD points { tokens: 1 seconds: 20 } }
    device { name: "new" f64_flops: 1 f32_flops: 1 bf16_flops: 1
             bytes_per_second: 1 })");
  cost::Table merged = mergeCosts(before, measured);
  std::vector<double> seconds;
  for (const cost::Entry &entry : merged.entries())
    seconds.push_back(entry.points(0).seconds());
  EXPECT_EQ(seconds, (std::vector<double>{10, 20, 3, 4}));
  ASSERT_EQ(merged.layers_size(), 1);
  EXPECT_EQ(merged.layers(0).parameters(), 4);
  EXPECT_EQ(merged.device().name(), "new");
  EXPECT_EQ(merged.cluster().inside().latency_seconds(), 1);
  EXPECT_EQ(merged.sparse().points_size(), 1);
  EXPECT_EQ(merged.compute_type(), "f32");
  measured.set_compute_type("f64");
  EXPECT_EQ(mergeCosts(before, measured).compute_type(), "f64");
}

} // namespace
