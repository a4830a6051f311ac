//===- PlayedChoiceTest.cpp - What is found is what plays fastest ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/ChooseStrategies.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/request/LengthRanges.h"
#include "runtime/planner/search/SizedSteps.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace dyna;

namespace {

TEST(DrawSteps, HaveOfEveryLengthItsPart) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 1000; ++i)
    lengths.push_back(10 + (i * 37) % 300);
  lengths.resize(1010, 5000); // one in a hundred
  for (auto [tokens, count] : {std::pair<int64_t, size_t>(1000, 4),
                               {100000, 4},
                               {200000, 2},
                               {600000, 1},
                               {int64_t(1) << 40, 1}}) {
    const auto steps = drawSteps(lengths, tokens);
    ASSERT_EQ(steps.size(), count);
    EXPECT_EQ(steps, drawSteps(lengths, tokens));
    std::vector<int64_t> all;
    const int64_t wanted = std::min<int64_t>(tokens, 1 << 20);
    for (const std::vector<int64_t> &step : steps) {
      const int64_t sum = std::accumulate(step.begin(), step.end(), int64_t(0));
      // No more than a sample beside its part of all, which rounding makes.
      EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(wanted),
                  2 * 5000 + 300);
      EXPECT_FALSE(std::is_sorted(step.begin(), step.end()) && step.size() > 9);
      all.insert(all.end(), step.begin(), step.end());
    }
    auto countOf = [](const std::vector<int64_t> &from, int64_t most) {
      return static_cast<double>(
          std::count_if(from.begin(), from.end(),
                        [&](int64_t length) { return length <= most; }));
    };
    for (int64_t most : {20, 100, 250, 309, 4999})
      EXPECT_NEAR(countOf(all, most),
                  countOf(lengths, most) * static_cast<double>(all.size()) /
                      static_cast<double>(lengths.size()),
                  1.01);
  }
}

struct PlayedCase {
  int64_t hidden;
  int blocks;
  int64_t memory;
  std::vector<int64_t> lengths;
  int64_t tokens;
};

/// Infinite where it has no room, or no order fits.
double secondsOf(const CostModel &costs, const StrategySpace &space,
                 const std::string &strategies, const std::string &ranges,
                 int64_t longest, const std::vector<int64_t> &lengths) {
  SizedSteps::Asked asked;
  asked.strategies = *parseStrategies(strategies);
  std::vector<std::string> names, notes;
  for (const Strategy &strategy : asked.strategies)
    names.push_back(strategy.name);
  asked.ranges = *parseLengthRanges(ranges, names);
  asked.request.tokensPerBatch = space.tokensPerStep;
  asked.memoryBytes = space.memoryBytes;
  asked.longest = longest;
  const auto sized =
      std::move(*SizedSteps::create(costs, std::move(asked), notes));
  if (sized->lackingBytes() > 0)
    return std::numeric_limits<double>::infinity();
  auto seconds = sized->play(drawSteps(lengths, space.tokensPerStep));
  return seconds.isOk() ? *seconds : std::numeric_limits<double>::infinity();
}

/// Nothing that is played takes less than what is chosen, be it several strategies or
/// one: neither the first of the others nor strategies of a set.
TEST(PlayedChoice, NoOtherIsFaster) {
  std::vector<int64_t> uniform, twoPeaks(300, 40);
  for (int64_t i = 1; i <= 512; ++i)
    uniform.push_back(2 * i);
  twoPeaks.resize(306, 1000);
  std::vector<PlayedCase> cases;
  for (int64_t memory : {int64_t(0), int64_t(1000000), int64_t(2500000)})
    for (int64_t tokens : {2048, 16384})
      for (const auto &lengths : {uniform, twoPeaks})
        for (auto [hidden, blocks] : {std::pair<int64_t, int>(48, 4), {24, 7}})
          cases.push_back({hidden, blocks, memory, lengths, tokens});
  int others = 0, sets = 0, played = 0;
  for (const PlayedCase &one : cases) {
    TinyOptions options;
    options.hidden = one.hidden;
    options.blocks = one.blocks;
    options.degrees = {{2, false}, {4, false}};
    plan::Manifest manifest = tinyManifest(options);
    manifest.mutable_facts()->set_positions(1024);
    const Model model = *Model::create(std::move(manifest));
    const CostModel costs = *CostModel::create(
        model,
        *CostTable::parse(
            "device { name: \"d\" f64_flops: 1e8 f32_flops: 1e8 bf16_flops: "
            "1e8 bytes_per_second: 1e9 launch_seconds: 1e-5 } cluster { nodes: "
            "2 devices_per_node: 2 inside { bytes_per_second: 1e9 } between { "
            "bytes_per_second: 1e7 latency_seconds: 1e-5 } }",
            "costs"));
    StrategySpace space;
    space.ranks = 4;
    space.tokensPerStep = one.tokens;
    space.memoryBytes = one.memory;
    std::vector<std::string> told;
    space.tellEvery = std::chrono::milliseconds(0);
    space.tell = [&](const std::string &next) { told.push_back(next); };
    auto chosen = chooseStrategies(costs, space, one.lengths);
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told[0], "strategies and ranges are searched");
    if (played == 0) { // once for all: what is soon done is not told
      const size_t before = told.size();
      space.tellEvery = std::chrono::hours(1);
      ASSERT_TRUE(chooseStrategies(costs, space, one.lengths).isOk());
      EXPECT_EQ(told.size(), before);
    }
    if (!chosen.isOk())
      continue;
    EXPECT_GT(told.size(), 1u);
    EXPECT_NE(told.back().find("simulated, next is dp="), std::string::npos)
        << told.back();
    const auto &found = chosen->found();
    auto play = [&](const std::string &strategies, const std::string &ranges) {
      return secondsOf(costs, space, strategies, ranges, chosen->longest(),
                       one.lengths);
    };
    const double own = play(chosen->strategies(), chosen->ranges());
    if (!std::isfinite(own)) {
      EXPECT_NE(chosen->table().find("no order of one fits"), std::string::npos)
          << chosen->table();
      continue;
    }
    ++played;
    const bool isSet = chosen->isSet();
    sets += isSet;
    // The first of different families by estimates, as they are.
    const auto &candidates = chosen->candidates();
    std::vector<int> order(candidates.candidates());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return std::pair(found.singles[a], a) < std::pair(found.singles[b], b);
    });
    std::set<int> families;
    for (int c : order) {
      if (!std::isfinite(found.singles[c]) || families.size() >= 5 ||
          !families.insert(candidates.family(c)).second)
        continue;
      Strategy strategy = candidates.strategy(c);
      strategy.name = "a";
      EXPECT_GE(play(describeStrategy(strategy), "a: 0-"),
                own * (isSet ? 1.0199 : 0.9999))
          << describeStrategy(strategy) << "\n"
          << chosen->table();
    }
    // What estimates say alone is another one.
    Strategy favoured = candidates.strategy(found.bestSingle.home);
    favoured.name = "a";
    others += !isSet && chosen->strategies() != describeStrategy(favoured);
  }
  EXPECT_GT(played, 12);
  EXPECT_GT(others, 2);
  EXPECT_GT(sets, 0);
}

} // namespace
