//===- TrainRangesTest.cpp - Runs of several strategies -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/SearchRanges.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/train/TrainProgram.h"

#include "runtime/executor/OpenProgram.h"

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
  Result result =
      ranged({"--ranges=short: 0-1; long: 2-", "--merge-ranges=never",
              "--counts=" + path("counts"), "--metrics=" + path("metrics")});
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
