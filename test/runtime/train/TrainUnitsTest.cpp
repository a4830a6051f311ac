//===- TrainUnitsTest.cpp - Runs that prune channels ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs with structure=channel: every strategy against one rank, survivors against a sort of
// sums, work, checkpoints and refusals. units_test.py has heads.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/PrunedRuns.h"

#include "runtime/base/text/Text.h"
#include "runtime/elastic/prune/PrunedUnits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace dyna;
using namespace dyna::test;

namespace {

/// Three blocks have 12 channels each. The first and the last one share a matrix, so that
/// there are 24 units: 12 of three rows or columns, and 12 of two.
constexpr int64_t channels = 24;

class TrainUnitsTest : public PrunedRuns {
protected:
  static constexpr const char *gradualChannels =
      "--prune=initial=0.25,final=0.75,from=4,until=8,every=2,structure="
      "channel";

  static std::vector<UnitList> listsOf(const TinyOptions &tiny) {
    return *prunedUnits(*Model::create(tinyManifest(tiny)),
                        PrunedStructure::Channel);
  }

  /// Calls a function with the number of a unit, a parameter and an element of it.
  template <typename Function>
  static void forEach(const std::vector<UnitList> &lists, const Left &left,
                      const Function &function) {
    size_t first = 0;
    for (const UnitList &list : lists) {
      for (const UnitList::Part &part : list.parts) {
        const size_t p = static_cast<size_t>(part.parameter);
        const size_t size = left.masters[p].size();
        const size_t columns = part.dimension == 0
                                   ? size / static_cast<size_t>(list.count)
                                   : static_cast<size_t>(list.count);
        for (size_t i = 0; i < size; ++i)
          function(first + (part.dimension == 0 ? i / columns : i % columns), p,
                   i);
      }
      first += static_cast<size_t>(list.count);
    }
  }

  /// Returns which units are left, and expects that each is whole or gone.
  static std::vector<int> unitsOf(const std::vector<UnitList> &lists,
                                  const Left &left) {
    std::vector<int> alive(channels, -1);
    forEach(lists, left, [&](size_t unit, size_t p, size_t i) {
      if (alive[unit] < 0)
        alive[unit] = left.masks[p][i];
      EXPECT_EQ(left.masks[p][i], alive[unit]);
    });
    return alive;
  }
};

TEST_F(TrainUnitsTest, EveryStrategyAgreesWithOneRank) {
  for (const char *more : {"", ",criterion=gradient", ",scope=layer"}) {
    SCOPED_TRACE(more);
    const std::string prune = std::string(gradualChannels) + more;
    const Left one = train(tiny(), {"--steps=10", prune});
    expectZeros(one);
    const std::vector<int> units = unitsOf(listsOf(tiny()), one);
    EXPECT_EQ(std::accumulate(units.begin(), units.end(), 0), channels / 4);
    for (const char *strategy :
         {"dp=2,zero=1", "pp=3,layers=1+2+2", "tp=2,sp=1", "dp=2,tp=2,zero=1",
          "tp=2,pp=2,layers=3+2"}) {
      SCOPED_TRACE(strategy);
      const Left left = train(
          tiny(), {"--steps=10", prune, "--strategy=" + std::string(strategy)});
      expectNear(left, one);
      expectZeros(left);
    }
    expectNear(train(tiny(), {"--steps=10", prune, "--strategy=dp=2,zero=1",
                              "--repack=2@3; tp=2,pp=2,layers=3+2@4; dp=1@6; "
                              "dp=2,zero=1@7; pp=2,layers=2+3@8"}),
               one);
  }
}

TEST_F(TrainUnitsTest, SurvivorsHaveTheLargestSums) {
  const std::vector<std::string> more = {"--schedule-steps=6", "--warmup=1"};
  auto with = [&](std::vector<std::string> extra) {
    extra.insert(extra.end(), more.begin(), more.end());
    return extra;
  };
  const std::vector<UnitList> lists = listsOf(tiny());
  const Left before = train(tiny(), with({"--steps=3"}));
  std::vector<double> sums(channels);
  forEach(lists, before, [&](size_t unit, size_t p, size_t i) {
    sums[unit] += std::abs(before.masters[p][i]);
  });
  for (const char *scope : {"global", "layer"}) {
    const Left left = train(
        tiny(), with({"--steps=4", "--prune=final=0.5,from=4,structure=channel,"
                                   "scope=" +
                                       std::string(scope)}));
    const std::vector<int> alive = unitsOf(lists, left);
    const size_t group = std::string(scope) == "layer" ? 12 : channels;
    for (size_t first = 0; first < channels; first += group) {
      std::vector<size_t> order(group);
      std::iota(order.begin(), order.end(), first);
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return sums[a] > sums[b]; });
      for (size_t rank = 0; rank < group; ++rank)
        EXPECT_EQ(alive[order[rank]], rank < group / 2 ? 1 : 0);
    }
    EXPECT_THAT(left.said, HasSubstr("these are 12 of 24 channels"));
  }
}

/// No layer reads the output of a pruned channel, so its bias has no gradient.
TEST_F(TrainUnitsTest, PrunedChannelsReachNothing) {
  const Left left = train(tiny(), {"--steps=3", "--beta1=0",
                                   "--prune=final=0.5,from=2,structure="
                                   "channel"});
  const Model model = *Model::create(tinyManifest(tiny()));
  const std::vector<UnitList> lists = listsOf(tiny());
  const std::vector<int> alive = unitsOf(lists, left);
  // The list of the second block is the last one.
  const int block = 2;
  ASSERT_EQ(lists.back().layer, block);
  const auto &bias =
      left.moments[static_cast<size_t>(model.layer(block).parameters(1))];
  ASSERT_EQ(bias.size(), 12u);
  int64_t gone = 0;
  for (size_t channel = 0; channel < 12; ++channel)
    if (alive[12 + channel] == 0) {
      EXPECT_EQ(bias[channel], 0);
      ++gone;
    }
  EXPECT_GT(gone, 0);
}

/// Formulas count dense products of the channels that are left.
TEST_F(TrainUnitsTest, WorkIsThatOfTheChannelsThatAreLeft) {
  auto counted = [&] {
    const JsonValue counts = *parseJson(*readFile(path("counts")));
    double sum = 0;
    for (const JsonValue &rank : counts.find("ranks")->items)
      sum += rank.find("formula_flops")->number;
    return sum;
  };
  auto flops = [&](std::vector<std::string> more) {
    more.push_back("--counts=" + path("counts"));
    const Result result = run(training(std::move(more)));
    EXPECT_EQ(result.code, 0) << result.err;
    return counted();
  };
  const double dense = flops({"--steps=4"});
  EXPECT_EQ(flops({"--steps=4", "--prune=final=0.6,from=1"}), dense);
  // The program has blocks of 5 channels, and a head. Of 0.6, two are left.
  const std::string prune = "--prune=final=0.6,from=1,structure=channel,"
                            "scope=layer";
  const double left = flops({"--steps=4", prune});
  const double blocks = (dense - left) / 0.6;
  EXPECT_GT(blocks, 0.1 * dense);
  EXPECT_LT(blocks, dense);
  EXPECT_NEAR(flops({"--steps=4", "--prune=final=0.4,from=1,structure=channel,"
                                  "scope=layer"}),
              dense - 0.4 * blocks, 1e-9 * dense);
  for (const char *strategy : {"dp=2,zero=1", "pp=2,layers=2+3"})
    EXPECT_NEAR(
        flops({"--steps=4", prune, "--strategy=" + std::string(strategy)}),
        left, 1e-9 * left)
        << strategy;
  // A run that is resumed behind the event counts the same.
  const double three =
      flops({"--steps=3", prune, "--schedule-steps=4", "--save=" + path("s")});
  const Result resumed = run({"--resume=" + path("s"), "--steps=4",
                              "--no-progress", "--counts=" + path("counts")});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NEAR(three + counted(), left, 1e-9 * left);
}

/// Units are whole, so another share may be zero than the one that was asked for.
TEST_F(TrainUnitsTest, SparsityIsTheShareThatIsZero) {
  const Result result = run(training(
      {"--prune=final=0.33,from=3,structure=channel", "--steps=6",
       "--schedule-steps=6", "--warmup=2", "--metrics=" + path("shares")}));
  ASSERT_EQ(result.code, 0) << result.err;
  const auto survivors = numbers("shares", "survivors");
  const auto sparsity = numbers("shares", "sparsity");
  ASSERT_EQ(survivors.size(), 6u);
  EXPECT_NEAR(sparsity.back(), 1 - survivors.back() / survivors.front(), 1e-5);
  EXPECT_GT(std::abs(sparsity.back() - 0.33), 1e-3);
}

TEST_F(TrainUnitsTest, ResumesBitwise) {
  expectResumes(std::string(gradualChannels) + ",criterion=gradient", 3, 8,
                /*other=*/"");
  const Result changed =
      run({"--resume=" + path("whole"), "--steps=20", "--no-progress",
           "--prune=initial=0.8,final=0.9,from=12,until=14,every=2"});
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("structure= cannot change"));
}

TEST_F(TrainUnitsTest, ErrorsComeBeforeTraining) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {training({"--prune=structure=head,final=0.5,from=3"}),
       "--prune: structure=head: no layer of this program has any"},
      {training({"--prune=structure=channel,params=*.w1,final=0.5,from=3"}),
       "structure=channel prunes all matrices of a unit"},
      {training({"--prune=structure=channel,regrow=0.1,final=0.5,from=3,"
                 "until=5,every=2"}),
       "leave out params= and regrow="}};
  for (const auto &[arguments, words] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
  }
}

} // namespace
