//===- SplitsTest.cpp - Which split of an op costs least ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/Splits.h"
#include "gtest/gtest.h"

using namespace mlir::dyna;
using ::dyna::AxisParts;
using ::dyna::kDynamicSize;
using ::dyna::Layout;
using ::dyna::Mesh;
using mlir::dist::Factor;
using mlir::dist::FactorRule;

static const Mesh &mesh() {
  static const Mesh tp4 = *Mesh::create({{"tp", 4}});
  return tp4;
}

static Layout layout(const char *text) {
  return *::dyna::parseLayout(mesh(), text);
}

/// x[t, k] w[n, k] -> y[t, n].
static FactorRule linearRule() {
  FactorRule rule;
  int t = rule.addFactor("t", Factor::Uneven, kDynamicSize);
  int n = rule.addFactor("n", Factor::Even, 12);
  int k = rule.addFactor("k", Factor::Even, 8);
  rule.operands = {{{t}, {k}}, {{n}, {k}}};
  rule.results = {{{t}, {n}}};
  rule.linearIn = {{0}};
  return rule;
}

/// x[t, n] y[t, n] -> z[t, n].
static FactorRule addRule() {
  FactorRule rule;
  int t = rule.addFactor("t", Factor::Uneven, kDynamicSize);
  int n = rule.addFactor("n", Factor::Even, 8);
  rule.operands = {{{t}, {n}}, {{t}, {n}}};
  rule.results = {{{t}, {n}}};
  rule.linearIn = {{0, 1}};
  return rule;
}

static OperandState activation(std::vector<const char *> versions) {
  OperandState state;
  for (const char *version : versions)
    state.versions.push_back(layout(version));
  state.shape = {kDynamicSize, 8};
  state.elementBytes = 4;
  return state;
}

static OperandState weight(const char *text) {
  OperandState state;
  state.versions = {layout(text)};
  state.shape = {12, 8};
  state.elementBytes = 4;
  state.isFixed = true;
  return state;
}

static std::string text(const Layout &layout) {
  return describeLayout(mesh(), layout);
}

TEST(SplitsTest, ColumnLinearGathersTokensThatTheWeightsRanksWouldSplit) {
  auto choice =
      chooseSplit(mesh(), linearRule(),
                  {activation({"[[tp], []]"}), weight("[[tp], []]")}, {});
  ASSERT_TRUE(choice.isOk()) << choice.status().message();
  EXPECT_EQ(text(choice->operands[0]), "[[], []]");
  EXPECT_EQ(text(choice->results[0]), "[[], [tp]]");
  EXPECT_EQ(choice->steps, 1);
  // Each rank sends its quarter to three others.
  EXPECT_EQ(choice->bytes, 3 * (kNominalTokens / 4) * 8 * 4);
}

TEST(SplitsTest, AVersionThatExistsCostsNothing) {
  auto choice = chooseSplit(
      mesh(), linearRule(),
      {activation({"[[tp], []]", "[[], []]"}), weight("[[tp], []]")}, {});
  ASSERT_TRUE(choice.isOk());
  EXPECT_EQ(choice->sources[0], 1);
  EXPECT_EQ(choice->bytes, 0);
}

TEST(SplitsTest, RowLinearIsPartial) {
  auto choice =
      chooseSplit(mesh(), linearRule(),
                  {activation({"[[], [tp]]"}), weight("[[], [tp]]")}, {});
  ASSERT_TRUE(choice.isOk());
  EXPECT_EQ(text(choice->results[0]), "[[], []] partial [tp]");
  EXPECT_EQ(choice->bytes, 0);
}

TEST(SplitsTest, FixedWeightsAreNeverMoved) {
  // Features that must stay together, of a weight that is split over them.
  FactorRule rule = linearRule();
  rule.factors[1].kind = Factor::Whole;
  auto choice = chooseSplit(
      mesh(), rule, {activation({"[[], []]"}), weight("[[tp], []]")}, {});
  ASSERT_FALSE(choice.isOk());
  EXPECT_EQ(choice.status().message(),
            "no split of the op fits its operands (0: [[], []], 1: [[tp], "
            "[]])");
}

TEST(SplitsTest, SumsPassOnlyTogether) {
  auto both = chooseSplit(mesh(), addRule(),
                          {activation({"[[], []] partial [tp]"}),
                           activation({"[[], []] partial [tp]"})},
                          {});
  ASSERT_TRUE(both.isOk());
  EXPECT_EQ(text(both->results[0]), "[[], []] partial [tp]");
  EXPECT_EQ(both->steps, 0);

  auto one = chooseSplit(
      mesh(), addRule(),
      {activation({"[[], []] partial [tp]"}), activation({"[[], []]"})}, {});
  ASSERT_TRUE(one.isOk());
  EXPECT_EQ(text(one->operands[0]), "[[], []]");
  EXPECT_EQ(text(one->results[0]), "[[], []]");
}

TEST(SplitsTest, TokensAreSplitOnlyWhereActivationsAre) {
  std::vector<OperandState> operands = {activation({"[[], []] partial [tp]"}),
                                        activation({"[[], []]"})};
  auto without = chooseSplit(mesh(), addRule(), operands, {});
  auto with = chooseSplit(mesh(), addRule(), operands, {mesh().wholeAxis(0)});
  ASSERT_TRUE(without.isOk() && with.isOk());
  EXPECT_EQ(text(without->results[0]), "[[], []]");
  // A reduce-scatter is half an all-reduce, and the slice is free.
  EXPECT_EQ(text(with->results[0]), "[[tp], []]");
  EXPECT_EQ(2 * with->bytes, without->bytes);
}

TEST(SplitsTest, AccumulatorsHaveTheLayoutOfTheirResult) {
  // dy[t] acc[n] -> r[n], with t summed.
  FactorRule rule;
  int t = rule.addFactor("t", Factor::Uneven, kDynamicSize);
  int n = rule.addFactor("n", Factor::Even, 8);
  rule.operands = {{{t}, {n}}, {{n}}};
  rule.results = {{{n}}};
  rule.tied = {{1, 0}};
  OperandState accumulator;
  accumulator.versions = {layout("[[]]")};
  accumulator.shape = {8};
  accumulator.elementBytes = 4;
  accumulator.isFixed = true;
  accumulator.takesAnyPartial = true;
  std::vector<OperandState> operands = {activation({"[[tp], []]"}),
                                        accumulator};
  auto open = chooseSplit(mesh(), rule, operands, {});
  ASSERT_TRUE(open.isOk());
  EXPECT_EQ(text(open->operands[1]), "[[]] partial [tp]");
  EXPECT_EQ(open->bytes, 0);
  // Once it is known to be whole, tokens are gathered.
  operands[1].takesAnyPartial = false;
  auto known = chooseSplit(mesh(), rule, operands, {});
  ASSERT_TRUE(known.isOk());
  EXPECT_EQ(text(known->results[0]), "[[]]");
  EXPECT_GT(known->bytes, 0);
}

/// Two key/value heads with four query heads each, on four ranks.
TEST(SplitsTest, MinorFactorsFollowMajorOnesThatAreSplitToTheLast) {
  FactorRule rule;
  int g = rule.addFactor("g", Factor::Even, 2);
  int r = rule.addFactor("r", Factor::Even, 4);
  int d = rule.addFactor("d", Factor::Whole, 8);
  rule.operands = {{{g, r, d}}, {{g, d}}};
  rule.results = {{{g, r, d}}, {{g, d}}};
  auto vector = [](const char *text, int64_t size) {
    OperandState state;
    state.versions = {layout(text)};
    state.shape = {size};
    state.elementBytes = 4;
    return state;
  };
  auto choice = chooseSplit(
      mesh(), rule, {vector("[[tp]]", 64), vector("[[tp:2/2]]", 16)}, {});
  ASSERT_TRUE(choice.isOk()) << choice.status().message();
  EXPECT_EQ(choice->bytes, 0);
  EXPECT_EQ(text(choice->results[0]), "[[tp]]");
  EXPECT_EQ(text(choice->results[1]), "[[tp:2/2]] partial [tp:2/1]");

  auto inferred =
      inferResults(mesh(), rule, {layout("[[tp]]"), layout("[[tp:2/2]]")}, {});
  ASSERT_TRUE(inferred.isOk()) << inferred.status().message();
  EXPECT_EQ(text((*inferred)[1]), "[[tp:2/2]] partial [tp:2/1]");
  EXPECT_FALSE(
      inferResults(mesh(), rule, {layout("[[tp]]"), layout("[[tp:2/1]]")}, {})
          .isOk());
}

TEST(SplitsTest, InferenceRefusesWhatDoesNotFit) {
  auto message = [](const FactorRule &rule, const char *a, const char *b) {
    auto results = inferResults(mesh(), rule, {layout(a), layout(b)}, {});
    return results.isOk() ? "ok" : results.status().message();
  };
  EXPECT_EQ(message(linearRule(), "[[], [tp]]", "[[], [tp]]"), "ok");
  EXPECT_EQ(message(linearRule(), "[[], []]", "[[], [tp]]"),
            "operand 1 has the layout [[], [tp]], but the op expects [[], []]");
  EXPECT_EQ(message(linearRule(), "[[tp], []]", "[[tp], []]"),
            "the operands are split over the same ranks in different "
            "dimensions");
  EXPECT_EQ(message(addRule(), "[[], []] partial [tp]", "[[], []]"),
            "operand 0 has the layout [[], []] partial [tp], but the op needs "
            "the sum: reduce it first");
}
