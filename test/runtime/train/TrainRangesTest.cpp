//===- TrainRangesTest.cpp - Runs of several strategies -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/SearchRanges.h"
#include "test/runtime/base/TraceNesting.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/train/TrainProgram.h"

#include "runtime/executor/open/OpenProgram.h"

#include <algorithm>
#include <fstream>

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainRangesTest : public TrainProgram {
protected:
  Result ranged(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
        "--tokens-per-batch=400", "--steps=3"};
    if (more.front().rfind("--ranges", 0) != 0)
      arguments.push_back("--ranges=short: 0-40; long: 41-");
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(training(arguments));
  }
};

// The update would clear them: the step that they are of has none.
TEST_F(TrainRangesTest, GradientNormsAreOfAllPhasesTogether) {
  ASSERT_EQ(
      ranged({"--print-grad-norms=" + path("several"), "--merge-ranges=never"})
          .code,
      0);
  ASSERT_EQ(run(training({"--strategy=dp=2", "--tokens-per-batch=400",
                          "--steps=3", "--print-grad-norms=" + path("one")}))
                .code,
            0);
  auto several = parseJson(*readFile(path("several"))),
       one = parseJson(*readFile(path("one")));
  ASSERT_TRUE(several.isOk() && one.isOk());
  const JsonValue *norms = one->find("gradient_norms"),
                  *got = several->find("gradient_norms");
  ASSERT_TRUE(norms && got);
  ASSERT_GT(norms->keys.size(), 5u);
  for (const std::string &name : norms->keys) {
    ASSERT_NE(got->find(name), nullptr) << name;
    EXPECT_GT(norms->find(name)->number, 0) << name;
    EXPECT_NEAR(got->find(name)->number, norms->find(name)->number, 1e-9)
        << name;
  }
  for (int step = 0; step < 3; ++step)
    EXPECT_NEAR(several->find("losses")->items[step].number,
                one->find("losses")->items[step].number, 1e-9);
}

/// Nothing reads the values of such a phase: it has the update alone.
TEST_F(TrainRangesTest, HomeWithoutSamplesGathersNothing) {
  Result result = ranged({"--ranges=short: 0-1; long: 2-; home=short",
                          "--merge-ranges=never", "--counts=" + path("counts"),
                          "--metrics=" + path("metrics")});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("'short' is home"));
  EXPECT_THAT(numbers("metrics", "phases"), testing::Each(2));
  auto counts = parseJson(*readFile(path("counts")));
  ASSERT_TRUE(counts.isOk());
  const std::vector<JsonValue> &ranks = counts->find("ranks")->items;
  ASSERT_EQ(ranks.size(), 2u);
  for (const JsonValue &rank : ranks) {
    EXPECT_EQ(rank.find("all_gather")->findInteger("count"), 0);
    EXPECT_GT(*rank.find("reduce_scatter")->findInteger("count"), 0);
  }
}

/// Samples of a merged range fill up the micro-batches of the other.
TEST_F(TrainRangesTest, FewSamplesMergeUnlessTheyMustNot) {
  for (const char *merge : {"auto", "never"})
    ASSERT_EQ(ranged({"--metrics=" + path(merge),
                      std::string("--merge-ranges=") + merge})
                  .code,
              0);
  const auto merged = numbers("auto", "micro_batches"),
             apart = numbers("never", "micro_batches");
  ASSERT_EQ(merged.size(), 3u);
  for (size_t step = 0; step < merged.size(); ++step)
    EXPECT_LT(merged[step], apart[step]);
  EXPECT_NEAR(numbers("auto", "loss").back(), numbers("never", "loss").back(),
              1e-9);
}

TEST_F(TrainRangesTest, WhatSwitchesIsSaidEverywhere) {
  std::vector<std::string> arguments =
      training({"--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
                "--ranges=short: 0-40; long: 41-; home=short",
                "--merge-ranges=never", "--tokens-per-batch=400", "--steps=3",
                "--metrics=" + path("metrics"), "--trace=" + path("trace")});
  arguments.erase(
      std::find(arguments.begin(), arguments.end(), "--no-progress"));
  Result result = run(arguments);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("2 ranks, strategies by length, home "));
  EXPECT_THAT(result.err, HasSubstr("range: 0-40 tokens, short: dp=2,"));
  EXPECT_THAT(result.err, HasSubstr("range: 41- tokens, long: dp=1,"));
  for (const char *row : {"strategy short", "strategy long", "switches  "})
    EXPECT_THAT(result.out, HasSubstr(row));
  const std::string trace = *readFile(path("trace"));
  EXPECT_THAT(trace, HasSubstr("\"phase\": 0, \"strategy\": \"long\""));
  EXPECT_THAT(trace, HasSubstr("\"phase\": 1, \"strategy\": \"short\""));
  std::ifstream lines(path("metrics"));
  for (std::string line; std::getline(lines, line);) {
    auto json = parseJson(line);
    ASSERT_TRUE(json.isOk());
    const JsonValue *phases = json->find("strategies");
    ASSERT_NE(phases, nullptr);
    ASSERT_EQ(static_cast<int64_t>(phases->items.size()),
              json->findInteger("phases"));
    int64_t samples = 0, tokens = 0, microBatches = 0;
    for (const JsonValue &phase : phases->items) {
      samples += *phase.findInteger("samples");
      tokens += *phase.findInteger("tokens");
      microBatches += *phase.findInteger("micro_batches");
      EXPECT_EQ(phase.findInteger("merged"), 0);
    }
    EXPECT_EQ(samples, json->findInteger("samples"));
    EXPECT_EQ(tokens, json->findInteger("tokens"));
    EXPECT_EQ(microBatches, json->findInteger("micro_batches"));
    EXPECT_GT(json->find("bubble")->number, 0);
    EXPECT_LT(json->find("bubble")->number, 1);
    ASSERT_EQ(json->find("rank_peak_bytes")->items.size(), 2u);
  }
}

TEST_F(TrainRangesTest, MergedSamplesAreCounted) {
  ASSERT_EQ(ranged({"--metrics=" + path("merged")}).code, 0);
  auto json = parseJson(readFile(path("merged"))
                            ->substr(0, readFile(path("merged"))->find('\n')));
  ASSERT_TRUE(json.isOk());
  // All that are short, with those that are not.
  int64_t merged = 0;
  for (const JsonValue &phase : json->find("strategies")->items)
    merged += *phase.findInteger("merged");
  EXPECT_GT(merged, 0);
  EXPECT_LT(merged, *json->findInteger("samples"));
}

/// A rank may be in a later phase than another rank, so that phases overlap.
TEST_F(TrainRangesTest, StepsOfPhasesArePredicted) {
  ASSERT_EQ(run({"--profile=" + path("costs"), "--profile-seconds=1",
                 "--strategy=dp=2", "--threads=1", "--no-progress"})
                .code,
            0);
  ASSERT_EQ(ranged({"--costs=" + path("costs"), "--merge-ranges=never",
                    "--metrics=" + path("metrics"), "--trace=" + path("trace")})
                .code,
            0);
  std::ifstream lines(path("metrics"));
  int steps = 0;
  for (std::string line; std::getline(lines, line); ++steps) {
    auto json = parseJson(line);
    ASSERT_TRUE(json.isOk());
    const JsonValue *predicted = json->find("predicted");
    ASSERT_NE(predicted, nullptr);
    const double seconds = predicted->find("seconds")->number;
    EXPECT_GT(predicted->find("switch_seconds")->number, 0);
    EXPECT_GT(predicted->find("switch_alone_seconds")->number, 0);
    double sum = 0;
    for (const char *bound : {"bound_seconds", "busy_bound_seconds",
                              "load_bound_seconds", "path_bound_seconds"}) {
      EXPECT_GT(predicted->find(bound)->number, 0) << bound;
      EXPECT_LE(predicted->find(bound)->number, seconds) << bound;
    }
    EXPECT_NEAR(predicted->find("bubble")->number,
                1 - predicted->find("busy_bound_seconds")->number / seconds,
                1e-5);
    const JsonValue *phases = predicted->find("phases");
    ASSERT_NE(phases, nullptr);
    ASSERT_EQ(static_cast<int64_t>(phases->items.size()),
              json->findInteger("phases"));
    for (const JsonValue &phase : phases->items) {
      EXPECT_LE(phase.find("seconds")->number, seconds * (1 + 1e-6));
      sum += phase.find("seconds")->number;
      EXPECT_FALSE(phase.find("stages")->items.empty());
      for (int rank = 0; rank < 2; ++rank)
        EXPECT_LE(*phase.find("rank_peak_bytes")->items[rank].integer,
                  *json->find("rank_peak_bytes")->items[rank].integer);
    }
    EXPECT_GE(sum, seconds * (1 - 1e-6));
    const JsonValue *ran = json->find("rank_peak_bytes"),
                    *said = predicted->find("rank_peak_bytes");
    ASSERT_EQ(said->items.size(), 2u);
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(said->items[rank].integer, ran->items[rank].integer);
  }
  EXPECT_EQ(steps, 3);
  const std::string trace = *readFile(path("trace"));
  EXPECT_EQ(droppedSlices(trace), "");
  EXPECT_THAT(trace, HasSubstr("predicted rank 1"));
  // Of the executor's two ranks, and of those that are predicted.
  for (const char *process : {"\"pid\": 0", "\"pid\": 3"})
    EXPECT_THAT(trace,
                HasSubstr(std::string("{\"name\": \"values come\", \"cat\": "
                                      "\"switch\", \"ph\": \"X\", ") +
                          process));
}

TEST_F(TrainRangesTest, RangesWithoutSamplesAreNoted) {
  Result result =
      run(training({"--strategies=short: dp=2; long: pp=2",
                    "--ranges=short: 0-5000; long: 5001-", "--steps=1"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("no sample has 5001- tokens, so that strategy 'long' "
                        "gets none: samples have at most "));
  EXPECT_EQ(result.err.find("strategy 'short' gets none"), std::string::npos);
}

TEST_F(TrainRangesTest, AHomeWithoutSamplesIsNotedAsOne) {
  for (std::string home : {"long", "short"}) {
    Result result = run(training(
        {"--strategies=short: dp=2; long: pp=2",
         "--ranges=short: 0-5000; long: 5001-; home=" + home, "--steps=1"}));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err.find("every step switches to it") != std::string::npos,
              home == "long")
        << result.err;
  }
}

TEST_F(TrainRangesTest, StrategiesThatNobodyAsksForAreNoted) {
  Result result = run(training({"--strategies=q: dp=2", "--steps=1"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("neither --strategy nor --ranges"));
  result = run(training({"--strategies=q: dp=2", "--strategy=q", "--steps=1"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err.find("neither --strategy"), std::string::npos);
}

class SearchRangesTest : public testing::Test {
protected:
  SearchRangesTest() {
    for (int64_t tokens : {5, 9, 300})
      for (int i = 0; i < 400 / tokens; ++i)
        add(tokens);
    options_.tokensPerBatch = 1 << 14;
  }
  void add(int64_t tokens) {
    if (samples_.longestSample() < tokens)
      samples_.counts.resize(static_cast<size_t>(tokens) + 1);
    ++samples_.counts[static_cast<size_t>(tokens)];
    ++samples_.samples;
    samples_.tokens += tokens;
  }

  static TinyOptions tinyOptions() {
    TinyOptions options;
    options.hidden = 12;
    options.degrees = {{2, false}, {2, true}, {4, false}};
    return options;
  }
  TinyProgram program_{tinyOptions()};
  Model model_ = *openProgram(program_.program());
  TrainOptions options_;
  SampleStatistics samples_;
};

TEST_F(SearchRangesTest, LongerSamplesThanTheCorpusHasHaveARangeToo) {
  auto found = searchRanges(model_, options_, samples_, 4);
  ASSERT_TRUE(found.isOk()) << found.status().message();
  EXPECT_THAT(found->strategies, HasSubstr("a: "));
  EXPECT_THAT(found->ranges, HasSubstr("a: 0-"));
  EXPECT_EQ(found->ranges.back(), '-');
}

TEST_F(SearchRangesTest, RoomForTheLongestIsAskedOfTheFlag) {
  options_.rankMemory = "4GiB";
  EXPECT_TRUE(searchRanges(model_, options_, samples_, 4).isOk());
  options_.rankMemory = "1KiB";
  Status status = searchRanges(model_, options_, samples_, 4).status();
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
}

} // namespace
