//===- PlanTraceTest.cpp - Traces and memory of played plans --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanTrace.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/sim/PlanMemory.h"
#include "test/runtime/base/TraceNesting.h"
#include "test/runtime/sim/TimedPlans.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <map>
#include <set>

using namespace dyna;

namespace {

using plan::Instruction;

const char *const clusterText =
    "inside { latency_seconds: 0.5 bytes_per_second: 1000 }";

struct Traced {
  Traced(const std::string &strategy, const std::vector<int64_t> &lengths,
         bool ofHosts = false)
      : costs(costsOf(modelWithDegrees(), 1, 2, 3, 1, clusterText)),
        timed(strategy, lengths, costs, microBatchesOf(20)),
        work(timed.planner.graph(), timed.plan, costs) {
    SimulationOptions options;
    if (ofHosts)
      options.ranks = SimulationOptions::Ranks::Host;
    times = *playPlan(work, options);
    TraceWriter writer;
    for (int step : {0, 1})
      tracePlan(writer, {step, step * times.makespan, 0, ""},
                timed.planner.graph(), timed.plan, work, times, ofHosts);
    EXPECT_EQ(droppedSlices(writer.finish()), "");
    auto json = parseJson(writer.finish());
    EXPECT_TRUE(json.isOk()) << json.status().message();
    for (const JsonValue &event : json->find("traceEvents")->items)
      events[event.find("ph")->text].push_back(event);
  }
  CostModel costs;
  Timed timed;
  PlanWork work;
  PlanTimes times;
  std::map<std::string, std::vector<JsonValue>> events; ///< by phase
};

double number(const JsonValue &event, const char *name) {
  return event.find(name)->number;
}

TEST(PlanTraceTest, SlicesAreInstructionsAndTransfers) {
  Traced traced("dp=2,pp=2,layers=3+2,zero=1", {10, 20, 10, 20});
  size_t expected = traced.work.stepCount();
  for (const PlannedTransfer &transfer : traced.work.transfers())
    expected += !transfer.isMeeting();
  EXPECT_EQ(traced.events["X"].size(), 2 * expected);
  // On one track slices follow each other.
  std::map<std::pair<double, double>, double> ends;
  std::multimap<double, const JsonValue *> slices; // in their order
  for (const JsonValue &slice : traced.events["X"])
    slices.insert({number(slice, "ts"), &slice});
  for (const auto &entry : slices) {
    const JsonValue &slice = *entry.second;
    double &end = ends[{number(slice, "pid"), number(slice, "tid")}];
    EXPECT_GE(number(slice, "ts"), end);
    end = std::max(end, number(slice, "ts") + number(slice, "dur"));
  }
  EXPECT_GT(ends.size(), 4u);
  for (const JsonValue &name : traced.events["M"])
    EXPECT_TRUE(name.find("args")->find("name")->isString());
}

// Every message has one arrow, from its sender's slice to its receiver's.
TEST(PlanTraceTest, ArrowsLeadFromSendToReceipt) {
  Traced traced("tp=2,pp=2,layers=3+2", {10, 20, 10, 20});
  std::map<int64_t, std::vector<const JsonValue *>> arrows;
  for (const char *phase : {"s", "f"})
    for (const JsonValue &event : traced.events[phase])
      arrows[*event.find("id")->integer].push_back(&event);
  size_t messages = 0;
  for (const PlannedTransfer &transfer : traced.work.transfers())
    messages += transfer.isMessage();
  EXPECT_EQ(arrows.size(), 2 * messages);
  for (const auto &arrow : arrows) {
    const std::vector<const JsonValue *> &ends = arrow.second;
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0]->find("ph")->text, "s");
    EXPECT_EQ(ends[1]->find("ph")->text, "f");
    EXPECT_NE(number(*ends[0], "pid"), number(*ends[1], "pid"));
    EXPECT_LT(number(*ends[0], "ts"), number(*ends[1], "ts"));
    for (const JsonValue *end : ends) {
      auto slice = std::find_if(
          traced.events["X"].begin(), traced.events["X"].end(),
          [&](const JsonValue &x) {
            const std::string &name = x.find("name")->text;
            bool fits = end == ends[0] ? name.find("SEND_") == 0 &&
                                             name.find("_START") != name.npos
                                       : name.find("RECV_") == 0 &&
                                             name.find("_WAIT") != name.npos;
            return fits && number(x, "pid") == number(*end, "pid") &&
                   number(x, "ts") <= number(*end, "ts") &&
                   number(*end, "ts") <= number(x, "ts") + number(x, "dur");
          });
      EXPECT_NE(slice, traced.events["X"].end());
    }
  }
}

// Whatever its times: functions take microseconds here, none a round number.
TEST(PlanTraceTest, PerfettoKeepsEverySlice) {
  const CostModel costs =
      costsOf(modelWithDegrees(), 1.2345e-5, 2.3456e-5, 3.4567e-5, 1e-5 / 3,
              "inside { latency_seconds: 1.7e-6 bytes_per_second: 1.3e7 }");
  for (const char *strategy :
       {"dp=1", "dp=2,pp=2,layers=3+2,zero=1", "tp=2,pp=2,layers=3+2", "dp=3"})
    for (auto ranks :
         {SimulationOptions::Ranks::Devices, SimulationOptions::Ranks::Host})
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        Timed timed(strategy, {10, 20, 7, 20, 3, 15}, costs,
                    microBatchesOf(20));
        PlanWork work(timed.planner.graph(), timed.plan, costs);
        SimulationOptions options;
        options.ranks = ranks;
        options.noise = 0.1;
        options.seed = seed;
        const PlanTimes times = *playPlan(work, options);
        TraceWriter writer;
        double begin = 0;
        for (int step = 0; step < 10; ++step) {
          tracePlan(writer, {step, begin, 0, ""}, timed.planner.graph(),
                    timed.plan, work, times,
                    ranks == SimulationOptions::Ranks::Host);
          begin += times.makespan;
        }
        EXPECT_EQ(droppedSlices(writer.finish()), "") << strategy;
      }
}

TEST(PlanTraceTest, HostsHaveNoStreams) {
  Traced traced("pp=2,layers=3+2", {10, 20, 10, 20}, true);
  EXPECT_EQ(traced.events["X"].size(), 2u * traced.work.stepCount());
  for (const JsonValue &slice : traced.events["X"])
    EXPECT_EQ(number(slice, "tid"), 0);
}

// What the trace shows peaks at what the plan says; the last value is nothing.
TEST(PlanTraceTest, MemoryIsThatOfThePlan) {
  for (const char *strategy :
       {"dp=1", "dp=2,pp=2,layers=3+2,zero=1", "tp=2,pp=2,layers=3+2"}) {
    SCOPED_TRACE(strategy);
    Traced traced(strategy, {10, 20, 10, 20, 10, 15});
    const ExecutableGraph &graph = traced.timed.planner.graph();
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      const plan::RankProgram &program = traced.timed.plan.ranks[rank];
      std::vector<LiveMemory> live = liveMemory(graph, traced.timed.plan, rank);
      int64_t most = 0, end = 0;
      for (const LiveMemory &memory : live) {
        most = std::max(most, memory.bytes);
        end = std::max(end, memory.end);
        EXPECT_LE(memory.bytes, memory.end);
      }
      EXPECT_EQ(end, program.dynamicBytes);
      double shown = 0, last = -1;
      for (const JsonValue &counter : traced.events["C"])
        if (number(counter, "pid") == rank) {
          last = number(*counter.find("args"), "bytes");
          shown = std::max(shown, last);
        }
      EXPECT_EQ(shown, most);
      EXPECT_EQ(last, 0);
    }
  }
}

// Against the definition: a block is there from its first to its last use.
TEST(PlanTraceTest, MemoryAgreesWithTheDefinition) {
  Traced traced("pp=2,layers=3+2", {10, 20, 10, 20, 10, 15});
  const ExecutableGraph &graph = traced.timed.planner.graph();
  for (int rank : {0, 1}) {
    std::vector<LiveMemory> live = liveMemory(graph, traced.timed.plan, rank);
    ProgramBlocks table(graph.replicaView(rank), traced.timed.plan,
                        traced.timed.plan.ranks[rank]);
    for (size_t i = 0; i < live.size(); ++i) {
      int64_t bytes = 0, end = 0;
      for (const Block &block : table.blocks())
        if (block.first <= int(i) && int(i) <= block.last) {
          bytes += block.bytes;
          end = std::max(end, block.place + dyna_align_block(block.bytes));
        }
      ASSERT_EQ(live[i].bytes, bytes) << i;
      ASSERT_EQ(live[i].end, end) << i;
    }
  }
}

} // namespace
