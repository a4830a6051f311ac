//===- ContextReportTest.cpp - How well slices are predicted --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/ContextReport.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/slice/FitContext.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// Whole samples cost 1 ms, 1 us a token and 1 ns a pair.
double wholeSeconds(const Load &load) {
  return 1e-3 + 1e-6 * static_cast<double>(load.queries) +
         1e-9 * static_cast<double>(load.pairs);
}

struct Slice {
  int64_t tokens, context;
};
const std::vector<Slice> grid = {{8, 64},   {8, 512},   {8, 2048},
                                 {64, 64},  {64, 512},  {64, 2048},
                                 {512, 64}, {512, 512}, {512, 2048}};

/// Returns a table of one function, with slices of the grid that take `seconds`.
CostTable tableOf(const std::function<double(const Load &)> &seconds) {
  std::string text = "entries { kind: \"block\" direction: FORWARD\n";
  for (int64_t tokens : {8, 64, 512, 4096})
    for (int64_t length : {8, 64, 512})
      if (length <= tokens) {
        const Load load =
            callLoad(tokens, tokens / length * length * (length + 1) / 2, 0);
        text += formatText("points { tokens: %d pairs: %d seconds: %.15g }\n",
                           load.queries, load.pairs, wholeSeconds(load));
      }
  for (const Slice &slice : grid) {
    const Load load = sliceLoad(slice.tokens, slice.context);
    text += formatText(
        "points { tokens: %d pairs: %d context: %d seconds: %.15g }\n",
        load.queries, load.pairs, load.context, seconds(load));
  }
  text += "}\nentries { kind: \"head\" direction: FORWARD\n"
          "points { tokens: 8 seconds: 1 } }\n";
  auto table = CostTable::parse(text, "costs");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return *table;
}

const CostKey block{"block", 1, false, cost::FORWARD};

TEST(ContextReportTest, BothArePerfectWhereTheirModelIsTheTruth) {
  // As whole samples with as many pairs: a factor of 1, and a fit of i and j.
  auto errors = contextErrors(tableOf(wholeSeconds));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].function.kind, "block");
  EXPECT_EQ(errors[0].points, 9);
  EXPECT_LT(errors[0].tableLargest, 1e-6);
  EXPECT_LT(errors[0].fitLargest, 1e-6);
  EXPECT_NEAR(errors[0].numbers[3], 1e-9, 1e-14);
  EXPECT_NEAR(errors[0].numbers[0], 0, 1e-8);
}

TEST(ContextReportTest, AFactorOfSizesIsNoFit) {
  // Small slices take three times as much: a plane in i and j does not say that.
  const CostTable table = tableOf([](const Load &load) {
    return (load.queries == 8 ? 3 : 1) * wholeSeconds(load);
  });
  std::vector<MeasuredSlice> heldOut;
  for (int64_t context : {100, 1000})
    for (int64_t tokens : {8, 64, 512}) {
      const Load load = sliceLoad(tokens, context);
      heldOut.push_back(
          {block, {load, (tokens == 8 ? 3 : 1) * wholeSeconds(load)}});
    }
  // Neither other functions nor whole samples count.
  heldOut.push_back({{"head", 1, false, cost::FORWARD}, heldOut[0].point});
  heldOut.push_back({block, {callLoad(64, 64 * 65 / 2, 0), 9}});
  auto errors = contextErrors(table, heldOut);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].points, 6);
  EXPECT_LT(errors[0].tableLargest, 1e-6);
  EXPECT_GT(errors[0].fitMean, 0.1);
  EXPECT_GT(errors[0].fitLargest, errors[0].fitMean);
  EXPECT_THAT(describeContext(errors[0]),
              HasSubstr("error of slices: block tp=1 FORWARD: mean 0.0 %, "
                        "largest 0.0 %, over 6 points; TeraPipe's fit: mean "));
  const std::string json = contextJson(errors).text();
  EXPECT_THAT(json, HasSubstr("\"function\": \"block tp=1 FORWARD\""));
  EXPECT_THAT(json, HasSubstr("\"points\": 6"));
  EXPECT_TRUE(contextErrors(table, {}).empty());
}

// Each point of the table is predicted from all others, as worked out here.
TEST(ContextReportTest, PointsAreNotPredictedFromThemselves) {
  auto seconds = [](const Load &load) {
    return wholeSeconds(load) *
           (1.5 + 0.1 * std::sin(static_cast<double>(load.pairs)));
  };
  const auto errors = contextErrors(tableOf(seconds));
  ASSERT_EQ(errors.size(), 1u);
  double table = 0, fitted = 0;
  for (size_t without = 0; without < grid.size(); ++without) {
    std::vector<ContextPoint> added;
    std::vector<ContextFactors::Point> factors;
    for (size_t i = 0; i < grid.size(); ++i) {
      const auto [tokens, context] = grid[i];
      const Load load = sliceLoad(tokens, context);
      if (i == without)
        continue;
      added.push_back({tokens, context,
                       seconds(load) - wholeSeconds(sliceLoad(tokens, 0))});
      factors.push_back({tokens, context, seconds(load) / wholeSeconds(load)});
    }
    const auto [tokens, context] = grid[without];
    const Load load = sliceLoad(tokens, context);
    table += std::abs(ContextFactors(factors).at(tokens, context) *
                          wholeSeconds(load) / seconds(load) -
                      1);
    fitted += std::abs((wholeSeconds(sliceLoad(tokens, 0)) +
                        fitContext(added)->seconds(tokens, context)) /
                           seconds(load) -
                       1);
  }
  EXPECT_GT(table, 0.01);
  EXPECT_NEAR(errors[0].tableMean, table / 9, 1e-6);
  EXPECT_NEAR(errors[0].fitMean, fitted / 9, 1e-6);
}

TEST(ContextReportTest, FewPointsSayNothing) {
  auto table =
      CostTable::parse("entries { kind: \"block\" direction: FORWARD "
                       "points { tokens: 4 pairs: 10 seconds: 1 } "
                       "points { tokens: 4 pairs: 42 context: 8 seconds: 7 } }",
                       "costs");
  ASSERT_TRUE(table.isOk());
  EXPECT_TRUE(contextErrors(*table).empty());
  EXPECT_TRUE(contextErrors(CostTable::host()).empty());
}

} // namespace
