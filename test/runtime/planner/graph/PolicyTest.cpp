//===- PolicyTest.cpp - What is asked of plans becomes their options ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/Policy.h"

#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/graph/RankMemory.h"
#include "test/runtime/executor/TinyModel.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class PolicyTest : public testing::Test {
protected:
  PolicyTest() : PolicyTest(0) {}
  explicit PolicyTest(int64_t positions) {
    plan::Manifest manifest = tinyManifest();
    manifest.mutable_facts()->set_positions(positions);
    manifest.set_hash(manifestHash(manifest));
    model = std::make_unique<Model>(*Model::create(std::move(manifest)));
  }

  StatusOr<Policy> choose(const std::string &strategy,
                          PlanRequest request = {}) {
    request.strategy = *parseStrategy(strategy);
    return choosePolicy(CostModel(*model), request);
  }

  std::unique_ptr<Model> model;
};

struct PositionsTest : PolicyTest {
  PositionsTest() : PolicyTest(1024) {}
};

TEST_F(PolicyTest, SizesOfMicroBatches) {
  struct Case {
    const char *strategy;
    int64_t tokensPerBatch, longestSample, size, count;
  };
  for (const Case &c : {Case{"dp=1", 16384, 0, 4096, 4},
                        {"dp=1", 1000, 0, 1000, 1},
                        {"dp=4", 16384, 0, 4096, 1},
                        {"pp=2", 16384, 0, 2048, 8},
                        {"dp=2,pp=2", 16384, 0, 1024, 8},
                        {"pp=2", 7, 0, 1, 7},
                        // A sample that is known fits, whatever it takes.
                        {"pp=2", 16384, 3000, 3000, 6},
                        {"dp=1", 16384, 9000, 9000, 2}}) {
    PlanRequest request;
    request.tokensPerBatch = c.tokensPerBatch;
    request.longestSample = c.longestSample;
    auto policy = choose(c.strategy, request);
    ASSERT_TRUE(policy.isOk()) << policy.status().message();
    EXPECT_EQ(policy->options.maxTokensPerMicroBatch, c.size) << c.strategy;
    EXPECT_EQ(policy->microBatches, c.count) << c.strategy;
  }
}

TEST_F(PolicyTest, WordsOfBothTables) {
  PlanRequest request;
  EXPECT_TRUE(takeWords("padded", request).isOk());
  EXPECT_TRUE(takeWords("gpipe", request).isOk());
  EXPECT_EQ(choose("pp=2", request)->options.batching, Batching::Padded);
  EXPECT_EQ(choose("pp=2", request)->options.schedule, Schedule::GPipe);
  EXPECT_TRUE(takeWords("1f1b+tokens", request).isOk());
  EXPECT_EQ(choose("pp=2", request)->options.batching, Batching::Tokens);
  EXPECT_EQ(choose("pp=2", request)->options.schedule,
            Schedule::OneForwardOneBackward);
  // The words that people read are those there are, the example among them.
  for (const auto &table : {batchingNames(), scheduleNames()})
    for (const std::string &name : table)
      EXPECT_THAT(knownWords(), HasSubstr(name + ", "));
  const std::string example = knownWords();
  EXPECT_TRUE(takeWords(example.substr(example.rfind(' ') + 1), request).isOk())
      << example;
  EXPECT_TRUE(takeWords("seq1f1b:8+gpipe", request).isOk());
  EXPECT_EQ(choose("pp=2", request)->options.slices.policy, SlicePolicy::Work);
  EXPECT_EQ(choose("pp=2", request)->options.slices.number, 8);
  EXPECT_TRUE(takeWords("none", request).isOk());
  EXPECT_FALSE(choose("pp=2", request)->options.slices.any());
  // No word may mean two things.
  for (const auto &table : {batchingNames(), scheduleNames()})
    for (const std::string &name : table)
      EXPECT_FALSE(parseSlices(name).isOk()) << name;
  for (const std::string &name : batchingNames())
    EXPECT_FALSE(findSchedule(name).isOk()) << name;
  for (const char *words : {"", "+", "padded+", "1f1b+gpipe", "padded+tokens",
                            "padded+gpipe+1f1b", "Padded", "uniform:", "64+32"})
    EXPECT_FALSE(takeWords(words, request).isOk()) << words;
  EXPECT_THAT(takeWords("1f1b+gpipe", request).message(),
              HasSubstr("names two schedules"));
  EXPECT_THAT(takeWords("auto+exact", request).message(),
              HasSubstr("names two ways to cut slices"));
  request.microBatches = "bins";
  EXPECT_THAT(choose("pp=2", request).status().message(),
              HasSubstr("are ragged, padded, tokens,"));
}

// Flags have bounds, but whoever calls may not.
TEST_F(PolicyTest, HugeStepsDoNotWrapAround) {
  PlanRequest request;
  request.tokensPerBatch = INT64_MAX;
  request.pipeline = "gpipe";
  auto policy = choose("pp=2", request);
  EXPECT_EQ(policy->microBatches, (INT64_C(1) << 51));
  EXPECT_EQ(policy->options.inFlight, 1024);
}

// No sample that the model can take is cut because a pipeline is kept busy.
TEST_F(PositionsTest, MicroBatchesHoldThePositions) {
  PlanRequest request;
  request.tokensPerBatch = 2048;
  EXPECT_EQ(choose("pp=2", request)->options.maxTokensPerMicroBatch, 1024);
  request.tokensPerMicroBatch = 100;
  auto policy = choose("pp=2", request);
  EXPECT_EQ(policy->options.maxTokensPerMicroBatch, 100);
  EXPECT_EQ(policy->options.longestSample, 1024);
  request.longestSample = 300;
  EXPECT_EQ(choose("pp=2", request)->options.longestSample, 300);
}

TEST_F(PolicyTest, SchedulesAndWhatIsInFlight) {
  auto inFlight = [&](const char *strategy, const char *pipeline,
                      int64_t asked = 0) {
    PlanRequest request;
    request.pipeline = pipeline;
    request.inFlight = asked;
    auto policy = choose(strategy, request);
    return std::pair(policy->options.schedule, policy->options.inFlight);
  };
  using S = Schedule;
  EXPECT_EQ(inFlight("pp=2", ""), std::pair(S::Adaptive, 1));
  EXPECT_EQ(inFlight("pp=2", "1f1b", 3),
            std::pair(S::OneForwardOneBackward, 3));
  EXPECT_EQ(inFlight("pp=2", "gpipe"), std::pair(S::GPipe, 9));
  EXPECT_EQ(inFlight("pp=2", "gpipe", 3), std::pair(S::GPipe, 3));
  EXPECT_EQ(inFlight("pp=2", "sequential"), std::pair(S::Sequential, 1));
  // One stage works in windows, whatever the pipelines would do.
  EXPECT_EQ(inFlight("dp=2", ""), std::pair(S::GPipe, 1));
  EXPECT_EQ(inFlight("dp=2", "gpipe"), std::pair(S::GPipe, 1));
  EXPECT_EQ(inFlight("dp=2", "1f1b", 3), std::pair(S::GPipe, 3));
  PlanRequest huge;
  huge.pipeline = "gpipe";
  huge.tokensPerBatch = int64_t(1) << 28;
  EXPECT_EQ(choose("pp=2", huge)->options.inFlight, 1024);
}

TEST_F(PolicyTest, RecomputationIsTheRequestsOrTheStrategys) {
  PlanRequest request;
  EXPECT_THAT(choose("dp=1", request)->options.recompute,
              ElementsAre(plan::RECOMPUTE_NONE));
  EXPECT_THAT(choose("dp=1,recompute=full", request)->options.recompute,
              ElementsAre(plan::RECOMPUTE_FULL));
  request.recompute = "selective";
  auto policy = choose("dp=1,recompute=full", request);
  EXPECT_THAT(policy->options.recompute,
              testing::Each(plan::RECOMPUTE_SELECTIVE));
  EXPECT_FALSE(policy->strategy.recompute);
  EXPECT_THAT(policy->notes,
              ElementsAre(HasSubstr("--recompute selective is used, not")));
  // The same word twice is nothing to talk about.
  EXPECT_THAT(choose("dp=1,recompute=selective", request)->notes, IsEmpty());
}

TEST_F(PolicyTest, NotesSayWhatWasChosenAndWhatIsNotUsed) {
  EXPECT_THAT(choose("dp=1")->notes, IsEmpty());
  EXPECT_THAT(choose("pp=2")->notes, ElementsAre(HasSubstr("stage cut")));
  PlanRequest request;
  request.tokensPerBatch = 2;
  request.inFlight = 2;
  EXPECT_THAT(
      choose("pp=2,layers=2+3", request)->notes,
      ElementsAre(HasSubstr("--in-flight is not used"),
                  HasSubstr("as few as 2 micro-batches for 2 stages: if "
                            "all take the same, each stage then waits "
                            "for 33 %")));
}

// Times of 4096 tokens, each function's where it is not left out.
std::string measuredBut(const std::vector<std::string> &left,
                        const std::string &degree = "") {
  std::string text;
  for (const char *kind : {"embedding", "block", "head"})
    for (const char *direction :
         {"FORWARD", "BACKWARD", "RECOMPUTE_FULL", "UPDATE"})
      if (std::string name = std::string(kind) + " " + direction;
          std::find(left.begin(), left.end(), name) == left.end())
        text += "entries { kind: \"" + std::string(kind) + "\" " + degree +
                " direction: " + direction +
                " points { tokens: 4096 seconds: 1 } }\n";
  return text;
}

// Said once: behind the stage cut if there was one, else alone.
TEST_F(PolicyTest, NotesSayWhatCostsLack) {
  auto notesOf = [&](const std::string &text, const std::string &strategy,
                     PlanRequest request = {}) {
    request.strategy = *parseStrategy(strategy);
    CostModel costs =
        *CostModel::create(*model, *CostTable::parse(text, "my.costs"));
    return choosePolicy(costs, request)->notes;
  };
  const std::string estimate =
      ": estimated from flops and bytes of device 'host'";
  EXPECT_THAT(notesOf(measuredBut({}), "dp=1"), IsEmpty());
  EXPECT_THAT(notesOf(measuredBut({}), "dp=2,tp=2"),
              ElementsAre("my.costs lacks embedding tp=2, block tp=2 and head "
                          "tp=2" +
                          estimate));
  EXPECT_THAT(notesOf(measuredBut({}, "tp: 2"), "tp=2,sp=1"),
              ElementsAre("my.costs lacks embedding tp=2,sp=1, block "
                          "tp=2,sp=1 and head tp=2,sp=1" +
                          estimate));
  const std::string partly = measuredBut({"block BACKWARD", "head UPDATE"});
  EXPECT_THAT(
      notesOf(partly, "dp=2"),
      ElementsAre("my.costs lacks block tp=1 BACKWARD and head tp=1 UPDATE" +
                  estimate));
  EXPECT_THAT(notesOf(partly, "pp=2,layers=2+3"),
              ElementsAre(HasSubstr("lacks block tp=1 BACKWARD and")));
  // The cut goes by passes, and says of them what is lacking.
  EXPECT_THAT(
      notesOf(partly, "pp=2"),
      ElementsAre(testing::EndsWith("costs from my.costs; it lacks block tp=1 "
                                    "BACKWARD" +
                                    estimate),
                  "my.costs lacks head tp=1 UPDATE" + estimate));
  EXPECT_THAT(
      notesOf(measuredBut({}), "tp=2,pp=2"),
      ElementsAre(HasSubstr("my.costs has no entry for this strategy")));
  // A device alone is there to estimate by.
  EXPECT_THAT(notesOf("cluster {}", "dp=2,tp=2"), IsEmpty());
  PlanRequest again;
  again.isAgain = true;
  EXPECT_THAT(notesOf(partly, "dp=2", again), IsEmpty());
}

// What is chosen later, or computed in halves, is asked for, too.
TEST_F(PolicyTest, NotesSayWhatCostsLackOfModes) {
  auto notesOf = [&](const std::string &text, PlanRequest request) {
    CostModel costs =
        *CostModel::create(*model, *CostTable::parse(text, "my.costs"));
    return choosePolicy(costs, request)->notes;
  };
  const std::string text = measuredBut({"block RECOMPUTE_FULL"});
  PlanRequest request;
  EXPECT_THAT(notesOf(text, request), IsEmpty());
  for (const char *word : {"full", "auto"}) {
    request.recompute = word;
    EXPECT_THAT(notesOf(text, request),
                ElementsAre(HasSubstr("block tp=1 RECOMPUTE_FULL")))
        << word;
  }
  request = {};
  request.splitBackward = true;
  EXPECT_THAT(notesOf(text, request),
              ElementsAre(HasSubstr("block tp=1 BACKWARD_INPUT")));
}

TEST_F(PolicyTest, WhatDoesNotExistIsRefused) {
  PlanRequest request;
  request.pipeline = "zigzag";
  EXPECT_THAT(choose("dp=1", request).status().message(),
              HasSubstr("the schedules are 1f1b, gpipe, sequential"));
  request.pipeline = "";
  request.recompute = "half";
  EXPECT_THAT(choose("dp=1", request).status().message(),
              HasSubstr("expects none, selective or full"));
  EXPECT_THAT(choose("pp=9").status().message(), HasSubstr("9 stages"));
}

// What a stage takes is the sum of its layers' functions; worked out by hand.
TEST_F(PolicyTest, StagesTakeWhatTheirLayersTake) {
  std::string text;
  auto add = [&](const char *kind, const char *direction, int seconds) {
    text += "entries { kind: \"" + std::string(kind) +
            "\" direction: " + direction +
            " points { tokens: 10 pairs: 0 targets: 0 seconds: " +
            std::to_string(seconds) + " } }\n";
  };
  for (const char *kind : {"embedding", "block", "head"}) {
    int base = kind[0] == 'e' ? 1 : kind[0] == 'b' ? 10 : 100;
    add(kind, "FORWARD", base);
    add(kind, "BACKWARD", 3 * base);
    add(kind, "RECOMPUTE_FULL", 2 * base);
  }
  CostModel costs =
      *CostModel::create(*model, *CostTable::parse(text, "costs.txt"));
  auto graph =
      *ExecutableGraph::create(*model, *parseStrategy("pp=2,layers=2+3"));
  plan::Plan plan;
  for (int length : {10, 20}) {
    plan::Segment &segment =
        plan.microBatches.emplace_back().segments.emplace_back();
    segment.length = length;
  }
  PlanOptions options;
  PipelineProblem stages = estimateStages(graph, costs, plan, {1, 0}, options);
  // embedding, block | block, block, head; 20 tokens take twice as long.
  EXPECT_THAT(stages.forward,
              ElementsAre(ElementsAre(22, 11), ElementsAre(240, 120)));
  EXPECT_THAT(stages.backward,
              ElementsAre(ElementsAre(66, 33), ElementsAre(720, 360)));
  options.recompute = *parseRecompute("none,full,none,full,none", 5);
  stages = estimateStages(graph, costs, plan, {0}, options);
  EXPECT_THAT(stages.backward,
              ElementsAre(ElementsAre(33 + 20), ElementsAre(360 + 20)));
}

// Of what stages compute again, the layer that backward begins with is all that
// needs no gradient. Between stages counts the slowest way: here the middle one.
TEST_F(PolicyTest, WhatWaitsForNothingAndTheSlowestWay) {
  std::string text = "cluster { devices_per_node: 2 "
                     "inside { latency_seconds: 1 bytes_per_second: 1e6 } "
                     "between { latency_seconds: 3 bytes_per_second: 100 } } ";
  for (auto [direction, seconds] :
       {std::pair("FORWARD", 10), {"BACKWARD", 30}, {"RECOMPUTE_FULL", 20}})
    text += "entries { kind: \"block\" direction: " + std::string(direction) +
            " points { tokens: 10 pairs: 0 targets: 0 seconds: " +
            std::to_string(seconds) + " } } ";
  CostModel costs =
      *CostModel::create(*model, *CostTable::parse(text, "costs.txt"));
  plan::Plan plan;
  for (int length : {10, 20})
    plan.microBatches.emplace_back().segments.emplace_back().length = length;
  PlanOptions options;
  options.schedule = Schedule::Adaptive;
  options.recompute = {plan::RECOMPUTE_FULL};
  auto estimate = [&](const char *strategy) {
    return estimateStages(
        *ExecutableGraph::create(*model, *parseStrategy(strategy)), costs, plan,
        {0, 1}, options);
  };
  // embedding | block, block | block, head, which computes nothing again.
  PipelineProblem stages = estimate("pp=3,layers=1+2+2");
  EXPECT_THAT(stages.backward[1], ElementsAre(100, 200));
  EXPECT_THAT(
      stages.recompute,
      ElementsAre(ElementsAre(0, 0), ElementsAre(20, 40), ElementsAre(0, 0)));
  // A mean of 15 tokens.
  const double bytes = 15 * tinyWidth * 8;
  EXPECT_DOUBLE_EQ(estimate("pp=2,layers=3+2").links[0].seconds,
                   1 + bytes / 1e6);
  EXPECT_DOUBLE_EQ(estimate("pp=4,layers=2+1+1+1").links[0].seconds,
                   3 + bytes / 100);
}

// Where attention is what takes time, one long sample takes more than two short
// ones of as many tokens.
TEST_F(PolicyTest, StagesTakeWhatTheirPairsTake) {
  CostModel costs = *CostModel::create(
      *model, *CostTable::parse("entries { kind: \"block\" direction: FORWARD "
                                "points { tokens: 10 pairs: 50 seconds: 50 } "
                                "points { tokens: 10 pairs: 100 seconds: 100 } "
                                "points { tokens: 20 pairs: 400 seconds: 400 } "
                                "}",
                                "costs.txt"));
  auto graph =
      *ExecutableGraph::create(*model, *parseStrategy("pp=5,layers=1+1+1+1+1"));
  plan::Plan plan;
  for (std::vector<int64_t> lengths : {std::vector<int64_t>{20}, {10, 10}}) {
    plan::MicroBatch &microBatch = plan.microBatches.emplace_back();
    for (int64_t length : lengths)
      microBatch.segments.emplace_back().length = length;
  }
  PipelineProblem stages =
      estimateStages(graph, costs, plan, {0, 1}, PlanOptions());
  EXPECT_NEAR(stages.forward[1][0], 400, 1e-6); // all see all
  EXPECT_NEAR(stages.forward[1][1], 200, 1e-6);
}

// A last number that repeats can mean thousands of slices, each with fixed costs.
TEST_F(PositionsTest, NotesSayThatThereAreManySlices) {
  struct Case {
    const char *slices, *note; ///< no note: null
  };
  for (const Case &c :
       {Case{"500+300+1", "500+300+1 cuts a sample of 1024 tokens into 226 "
                          "micro-batches, each with the fixed time of all its "
                          "calls: the last number, 1, repeats; end the list "
                          "with a larger one"},
        {"129", "129 micro-batches, each with the fixed time of all its calls: "
                "ask for fewer slices"},
        {"seq1f1b:200", "200 micro-batches"},
        {"chunkflow:7", "147 micro-batches, each with the fixed time of all "
                        "its calls: use larger chunks"},
        {"128", nullptr},
        {"500+8", nullptr},
        {"chunkflow:8", nullptr},
        {"uniform", nullptr},
        {"exact", nullptr}}) {
    PlanRequest request;
    request.tokensPerBatch = 4096;
    request.slices = c.slices;
    auto policy = choose("pp=2", request);
    ASSERT_TRUE(policy.isOk()) << policy.status().message();
    const auto many = HasSubstr("cuts a sample of");
    if (c.note)
      EXPECT_THAT(policy->notes, testing::Contains(HasSubstr(c.note)))
          << c.slices;
    else
      EXPECT_THAT(policy->notes, testing::Not(testing::Contains(many)))
          << c.slices;
  }
}

// The largest micro-batch with memory for so many slices is not searched if not even
// that without a limit has tokens for them. The search would take minutes.
TEST_F(PositionsTest, SlicesNeedTokens) {
  PlanRequest request;
  request.tokensPerBatch = 64;
  for (const char *slices : {"1025", "uniform:1025", "1000+24+1"}) {
    request.slices = slices;
    auto policy = choose("pp=2,layers=3+2", request);
    ASSERT_TRUE(policy.isOk()) << policy.status().message();
    const Planner planner(*ExecutableGraph::create(*model, policy->strategy));
    EXPECT_THAT(limitPolicy(planner, request, policy->options,
                            Persistent::Training, /*rankBytes=*/1 << 30,
                            /*beside=*/0, "--rank-memory")
                    .status()
                    .message(),
                HasSubstr("--slices"))
        << slices;
  }
}

} // namespace
