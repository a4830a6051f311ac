//===- TaskGraphTest.cpp - When work in lanes runs ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/TaskGraph.h"

#include "runtime/abi/Random.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;

namespace {

TEST(TaskGraphTest, LanesAndWaits) {
  //   lane 0   a a a b
  //   lane 1       . . c c d
  TaskGraph graph(2);
  int a = graph.add(0, 3), b = graph.add(0, 1);
  int c = graph.add(1, 2), d = graph.add(1, 1);
  graph.wait(c, b);
  graph.wait(d, a);
  auto times = graph.run();
  ASSERT_TRUE(times.isOk());
  EXPECT_EQ((*times)[b].start, 3);
  EXPECT_EQ((*times)[c].start, 4);
  EXPECT_EQ((*times)[d].start, 6);
  EXPECT_EQ((*times)[d].end, 7);
}

TEST(TaskGraphTest, NothingToDo) {
  EXPECT_THAT(*TaskGraph(0).run(), testing::IsEmpty());
}

TEST(TaskGraphTest, TasksThatWaitForEachOtherAreNamed) {
  TaskGraph graph(2);
  int a = graph.add(0, 1), b = graph.add(0, 1);
  int c = graph.add(1, 1), d = graph.add(1, 1);
  graph.wait(b, d);
  graph.wait(c, b); // b, d and c, as d runs behind c
  (void)a;
  auto times = graph.run();
  ASSERT_FALSE(times.isOk());
  EXPECT_EQ(times.status().message(),
            "3 of 4 tasks wait for each other, such as task 1");
  TaskGraph selfish(1);
  selfish.wait(selfish.add(0, 1), 0);
  EXPECT_FALSE(selfish.run().isOk());
}

// Against the definition: each task starts at the largest end among those
// before it, found by repeating until nothing changes.
TEST(TaskGraphTest, RandomGraphsAgreeWithTheDefinition) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    uint64_t state = seed * 1000;
    auto below = [&](uint64_t n) {
      return static_cast<int>(dyna_mix64(state++) % n);
    };
    const int lanes = 1 + below(4), tasks = 1 + below(30);
    TaskGraph graph(lanes);
    std::vector<double> seconds;
    std::vector<std::pair<int, int>> edges;
    std::vector<int> last(lanes, -1);
    for (int task = 0; task < tasks; ++task) {
      int lane = below(static_cast<uint64_t>(lanes));
      seconds.push_back(below(10));
      EXPECT_EQ(graph.add(lane, seconds.back()), task);
      if (last[lane] >= 0)
        edges.push_back({task, last[lane]});
      last[lane] = task;
    }
    // Now and then a wait for a later task, which may close a circle.
    for (int wait = below(40); wait > 0; --wait) {
      int task = below(static_cast<uint64_t>(tasks));
      int other = below(static_cast<uint64_t>(seed % 5 ? task + 1 : tasks));
      if (task == other)
        continue;
      graph.wait(task, other);
      edges.push_back({task, other});
    }
    std::vector<double> end(tasks, 0), start(tasks, 0);
    bool changes = true;
    for (int round = 0; changes && round <= tasks; ++round) {
      changes = false;
      for (auto [task, other] : edges)
        start[task] = std::max(start[task], end[other]);
      for (int task = 0; task < tasks; ++task) {
        changes |= end[task] != start[task] + seconds[task];
        end[task] = start[task] + seconds[task];
      }
    }
    // A circle of tasks without duration does not grow: follow the waits.
    std::vector<int> left(tasks, 1);
    for (int round = 0; round < tasks; ++round)
      for (int task = 0; task < tasks; ++task)
        left[task] = std::any_of(edges.begin(), edges.end(), [&](auto edge) {
          return edge.first == task && left[edge.second];
        });
    bool circle = std::find(left.begin(), left.end(), 1) != left.end();
    auto times = graph.run();
    ASSERT_EQ(times.isOk(), !circle) << seed;
    for (int task = 0; !circle && task < tasks; ++task) {
      EXPECT_EQ((*times)[task].start, start[task]) << seed;
      EXPECT_EQ((*times)[task].end, end[task]) << seed;
    }
  }
}

} // namespace
