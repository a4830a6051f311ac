//===- RankLoweringTest.cpp - What compiled code does with its rank -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tables of which each rank holds a part, the head on such a table, exchanges,
// and ops on this rank's tokens.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "test/codegen/cpu/FunctionTest.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace dyna::test;

namespace {

/// Functions of a part of a layer, as only they may take parts of tables.
constexpr const char *partOfLayer =
    "dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes "
    "{dist.mesh = #dist.mesh<tp=2>, dist.logical = @l, dist.gradients = [], "
    "dist.arguments = [#dist.layout<[[], []] on <tp=2>>], "
    "dist.results = [#dist.layout<[[], []] on <tp=2>>]} { dyna.return %x : "
    "tensor<?x8xf32> }\n";

class RankTest : public FunctionTest {
protected:
  RankTest() { declared = partOfLayer; }
  /// Gives the call a group 1 of `size` ranks, in which this one is `index`.
  void enter(Call &call, int32_t size, int32_t index) {
    groups[0] = {1, 0, nullptr};
    groups[1] = {size, index, nullptr};
    call.context.groups = groups;
    call.context.group_count = 2;
  }
  dyna_group groups[2];
};

constexpr int64_t tableRows = 11;

std::vector<int32_t> idsOf(const Call &call) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < call.tokens(); ++i)
    ids.push_back((i * 5) % tableRows);
  return ids;
}

std::string shardText(std::string text, Element e, int64_t room) {
  text = replaceAll(text, "$R", std::to_string(room));
  text = replaceAll(text, "$T", nameOf(e));
  return replaceAll(text, "$G", accumulatorOf(e));
}

const char *embeddingText =
    "dyna.function @f of @l as forward(%w: tensor<$Rx23x$T> in <parameter>, "
    "%ids: tensor<?xi32> in <input>) -> (tensor<?x23x$T> in <output>) {\n"
    "  %y = dyna.embedding %ids, %w shard<group = 1, rows = 11> {places = "
    "[#dyna.place<output>]} : tensor<?xi32>, tensor<$Rx23x$T>\n"
    "  dyna.return %y : tensor<?x23x$T>\n}\n";

/// Eight ranks: the last ones hold a part of a part, and nothing.
TEST_F(RankTest, EmbeddingOfAPart) {
  for (Element e : {Element::F32, Element::F64, Element::BF16})
    for (int32_t size : {1, 2, 3, 8})
      for (int32_t index = 0; index < size; ++index) {
        SCOPED_TRACE(nameOf(e) + " " + std::to_string(index) + " of " +
                     std::to_string(size));
        int64_t room = (tableRows + size - 1) / size;
        int64_t begin = dyna_part_begin(tableRows, size, index);
        int64_t rows = dyna_part_size(tableRows, size, index);
        Call call({5, 40});
        enter(call, size, index);
        std::vector<int32_t> ids = idsOf(call);
        // The rows of a smaller part are what the table has; behind them lies
        // what nobody may read.
        Tensor w = pattern(e, rows * 23, 1), y(e, call.tokens() * 23);
        call.params = {{w.data(), room}};
        call.in = {{ids.data(), 0}};
        call.out = {{y.data(), 0}};
        ASSERT_EQ(run(shardText(embeddingText, e, room), call), DYNA_OK);
        for (int64_t i = 0; i < call.tokens(); ++i)
          for (int64_t c = 0; c < 23; ++c) {
            bool here = ids[i] >= begin && ids[i] < begin + rows;
            ASSERT_EQ(y.get(i * 23 + c),
                      here ? w.get((ids[i] - begin) * 23 + c) : 0.0)
                << "row " << i << " of token " << ids[i];
          }
        EXPECT_TRUE(y.guardIntact());
      }
}

TEST_F(RankTest, EmbeddingGradientOfAPart) {
  const char *text =
      "dyna.function @f of @l as backward(%g: tensor<$Rx70x$G> in <gradient>, "
      "%ids: tensor<?xi32> in <saved_input>, %dy: tensor<?x70x$T> in <input>) "
      "-> (tensor<$Rx70x$G> in <gradient>) {\n"
      "  %0 = dyna.embedding_grad %dy, %ids, %g shard<group = 1, rows = 11> "
      "{places = [#dyna.place<gradient>]} : tensor<?x70x$T>, tensor<?xi32>, "
      "tensor<$Rx70x$G>\n"
      "  dyna.return %0 : tensor<$Rx70x$G>\n}\n";
  for (Element e : {Element::F32, Element::F64, Element::BF16})
    for (int32_t size : {1, 3, 8})
      for (int32_t index = 0; index < size; ++index) {
        SCOPED_TRACE(nameOf(e) + " " + std::to_string(index) + " of " +
                     std::to_string(size));
        Element acc = e == Element::F64 ? Element::F64 : Element::F32;
        int64_t room = (tableRows + size - 1) / size;
        int64_t begin = dyna_part_begin(tableRows, size, index);
        int64_t rows = dyna_part_size(tableRows, size, index);
        Call call({5, 40});
        enter(call, size, index);
        std::vector<int32_t> ids = idsOf(call);
        Tensor g = pattern(acc, room * 70, 1);
        Tensor dy = pattern(e, call.tokens() * 70, 2);
        std::vector<double> expected = g.values();
        call.grads = {{g.data(), room}};
        call.saved.input = ids.data();
        call.in = {{dy.data(), 0}};
        ASSERT_EQ(run(shardText(text, e, room), call), DYNA_OK);
        for (int64_t i = 0; i < call.tokens(); ++i)
          for (int64_t c = 0; c < 70; ++c)
            if (ids[i] >= begin && ids[i] < begin + rows)
              expected[(ids[i] - begin) * 70 + c] += dy.get(i * 70 + c);
        EXPECT_EQ(g.values(), expected);
        EXPECT_TRUE(g.guardIntact());
      }
}

/// Compiled for more ranks than there are, or for a group that is not there.
TEST_F(RankTest, RefusesGroupsItWasNotCompiledFor) {
  int32_t ids[1] = {0};
  Tensor w = pattern(Element::F32, 4 * 23, 1), y(Element::F32, 23);
  Call call({1});
  call.params = {{w.data(), 4}};
  call.in = {{ids, 1}};
  call.out = {{y.data(), 1}};
  enter(call, 3, 0); // parts of 4 rows
  std::string text = shardText(embeddingText, Element::F32, 4);
  EXPECT_EQ(run(text, call), DYNA_OK);
  enter(call, 2, 0); // of 6
  EXPECT_EQ(run(text, call), DYNA_INVALID_ARGUMENT);
  enter(call, 3, 0);
  call.context.group_count = 1;
  EXPECT_EQ(run(text, call), DYNA_INVALID_ARGUMENT);
}

/// What the exchange functions are told: whole sizes, wherever the part is.
TEST_F(RankTest, Collectives) {
  std::string text =
      "dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, %x: "
      "tensor<?x12x$T> in <input>, %h: tensor<?x12x$T> in <input, index = 1>) "
      "-> (tensor<?x12x$T> in <output>, tensor<?x24x$T> in <output, index = 1>,"
      " tensor<?x6x$T> in <output, index = 2>, tensor<?x12x$T> in <output, "
      "index = 3>, tensor<?x12x$T> in <output, index = 4>, tensor<?x12x$T> in "
      "<output, index = 5>, tensor<?x24x$T> in <output, index = 6>, "
      "tensor<?x12x$T> in <output, index = 7>) attributes {dist.arguments = "
      "[unit, $R, $P]} {\n"
      "  %0 = dist.all_reduce %x over $X {places = [#dyna.place<output>]} : "
      "tensor<?x12x$T>\n"
      "  %1 = dist.all_gather %x dim 1 over $X {places = [#dyna.place<output, "
      "index = 1>]} : tensor<?x12x$T> -> tensor<?x24x$T>\n"
      "  %2 = dist.slice %x dim 1 over $X {places = [#dyna.place<output, index "
      "="
      " 2>]} : tensor<?x12x$T> -> tensor<?x6x$T>\n"
      "  %3 = dist.reduce_scatter %x dim 0 over $X {places = "
      "[#dyna.place<output, index = 3>]} : tensor<?x12x$T> -> "
      "tensor<?x12x$T>\n"
      "  %4 = dist.all_gather %h dim 0 over $X {places = [#dyna.place<output, "
      "index = 4>]} : tensor<?x12x$T> -> tensor<?x12x$T>\n"
      "  %5 = dist.all_reduce %3 max over $X {places = [#dyna.place<output, "
      "index = 5>]} : tensor<?x12x$T>\n"
      "  %6 = dist.all_to_all %x dim 1 to 0 over $X {places = "
      "[#dyna.place<output, index = 6>]} : tensor<?x12x$T> -> "
      "tensor<?x24x$T>\n"
      "  %7 = dist.all_to_all %6 dim 0 to 1 over $X {places = "
      "[#dyna.place<output, index = 7>]} : tensor<?x24x$T> -> "
      "tensor<?x12x$T>\n"
      "  dyna.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<?x12x$T>, "
      "tensor<?x24x$T>, tensor<?x6x$T>, tensor<?x12x$T>, tensor<?x12x$T>, "
      "tensor<?x12x$T>, tensor<?x24x$T>, tensor<?x12x$T>\n}\n";
  text = replaceAll(text, "$X", "<1 [tp] on <tp=2>>");
  text = replaceAll(text, "$R", "#dist.layout<[[], []] on <tp=2>>");
  text = replaceAll(text, "$P", "#dist.layout<[[tp], []] on <tp=2>>");
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    kernelLog() = KernelLog();
    char in[2], out[8];
    Call call({5, 40});
    enter(call, 2, 1); // tokens 23 to 44
    call.in = {{in, 45}, {in + 1, 22}};
    for (char &at : out)
      call.out.push_back({&at, 0});
    ASSERT_EQ(run(replaceAll(text, "$T", nameOf(e)), call), DYNA_OK);
    struct Expected {
      const char *name;
      int64_t outer, split, inner;
      int32_t reduction;
      void *from, *to;
    } expected[] = {
        {"all_reduce", 1, 45, 12, DYNA_REDUCE_SUM, in, out},
        {"all_gather", 45, 24, 1, 0, in, out + 1},
        {"slice", 45, 12, 1, 0, in, out + 2},
        {"reduce_scatter", 1, 45, 12, DYNA_REDUCE_SUM, in, out + 3},
        {"all_gather", 1, 45, 12, 0, in + 1, out + 4},
        {"all_reduce", 1, 22, 12, DYNA_REDUCE_MAX, out + 3, out + 5},
    };
    auto &seen = kernelLog().collectives;
    ASSERT_EQ(seen.size(), std::size(expected));
    for (size_t i = 0; i < seen.size(); ++i) {
      SCOPED_TRACE(i);
      const dyna_collective &fields = seen[i].second;
      EXPECT_EQ(seen[i].first, expected[i].name);
      EXPECT_EQ(fields.outer, expected[i].outer);
      EXPECT_EQ(fields.split, expected[i].split);
      EXPECT_EQ(fields.inner, expected[i].inner);
      EXPECT_EQ(fields.reduction, expected[i].reduction);
      EXPECT_EQ(fields.in, expected[i].from);
      EXPECT_EQ(fields.out, expected[i].to);
      EXPECT_EQ(fields.group, 1);
      EXPECT_EQ(fields.element, e == Element::F64   ? DYNA_ELEMENT_F64
                                : e == Element::F32 ? DYNA_ELEMENT_F32
                                                    : DYNA_ELEMENT_BF16);
    }
    ASSERT_EQ(kernelLog().transpositions.size(), 2u);
    for (int i = 0; i < 2; ++i) {
      const dyna_transposition &fields = kernelLog().transpositions[i];
      EXPECT_EQ(fields.outer, 1);
      EXPECT_EQ(fields.first, 45) << "all tokens";
      EXPECT_EQ(fields.middle, 1);
      EXPECT_EQ(fields.second, 24) << "all features";
      EXPECT_EQ(fields.inner, 1);
      EXPECT_EQ(fields.second_to_first, i == 0);
    }
  }
}

/// Collectives of one exchange become one call, each with its own sizes and
/// places.
TEST_F(RankTest, CollectivesAsOne) {
  std::string text =
      "dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, %x: "
      "tensor<?x12x$T> in <input>, %h: tensor<?x12x$T> in <input, index = 1>, "
      "%p: tensor<?x12x$T> in <input, index = 2>) -> (tensor<?x12x$T> in "
      "<output>, tensor<?x6x$T> in <output, index = 1>, tensor<?x24x$T> in "
      "<output, index = 2>, tensor<?x12x$T> in <output, index = 3>) attributes "
      "{dist.arguments = [unit, $R, $P, $R]} {\n"
      "  %0:4 = dist.exchange : tensor<?x12x$T>, tensor<?x6x$T>, "
      "tensor<?x24x$T>, tensor<?x12x$T> {\n"
      "    %a = dist.all_gather %h dim 0 over $X : tensor<?x12x$T> -> "
      "tensor<?x12x$T>\n"
      "    %b = dist.reduce_scatter %x dim 1 over $X : tensor<?x12x$T> -> "
      "tensor<?x6x$T>\n"
      "    %c = dist.all_to_all %x dim 1 to 0 over $X : tensor<?x12x$T> -> "
      "tensor<?x24x$T>\n"
      "    %d = dist.all_reduce %p max over $X : tensor<?x12x$T>\n"
      "    dist.yield %a, %b, %c, %d : tensor<?x12x$T>, tensor<?x6x$T>, "
      "tensor<?x24x$T>, tensor<?x12x$T>\n"
      "  } {places = [#dyna.place<output>, #dyna.place<output, index = 1>, "
      "#dyna.place<output, index = 2>, #dyna.place<output, index = 3>]}\n"
      "  dyna.return %0#0, %0#1, %0#2, %0#3 : tensor<?x12x$T>, "
      "tensor<?x6x$T>, tensor<?x24x$T>, tensor<?x12x$T>\n}\n";
  text = replaceAll(text, "$X", "<1 [tp] on <tp=2>>");
  text = replaceAll(text, "$R", "#dist.layout<[[], []] on <tp=2>>");
  text = replaceAll(text, "$P", "#dist.layout<[[tp], []] on <tp=2>>");
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    kernelLog() = KernelLog();
    char in[3], out[4];
    Call call({5, 40});
    enter(call, 2, 1);
    for (char &at : in)
      call.in.push_back({&at, 0});
    for (char &at : out)
      call.out.push_back({&at, 0});
    ASSERT_EQ(run(replaceAll(text, "$T", nameOf(e)), call), DYNA_OK);
    EXPECT_TRUE(kernelLog().collectives.empty());
    EXPECT_TRUE(kernelLog().transpositions.empty());
    ASSERT_EQ(kernelLog().exchanges.size(), 1u);
    const std::vector<dyna_exchange> &seen = kernelLog().exchanges.front();
    ASSERT_EQ(seen.size(), 4u);
    int32_t element = e == Element::F64   ? DYNA_ELEMENT_F64
                      : e == Element::F32 ? DYNA_ELEMENT_F32
                                          : DYNA_ELEMENT_BF16;
    struct Expected {
      int32_t kind;
      int64_t outer, split, inner;
      int32_t reduction;
      void *from;
    } expected[] = {
        {DYNA_EXCHANGE_ALL_GATHER, 1, 45, 12, 0, in + 1},
        {DYNA_EXCHANGE_REDUCE_SCATTER, 45, 12, 1, DYNA_REDUCE_SUM, in},
        {DYNA_EXCHANGE_ALL_TO_ALL, 0, 0, 0, 0, in},
        {DYNA_EXCHANGE_ALL_REDUCE, 1, 45, 12, DYNA_REDUCE_MAX, in + 2}};
    for (size_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(seen[i].kind, expected[i].kind);
      if (i == 2)
        continue;
      const dyna_collective &fields = seen[i].collective;
      EXPECT_EQ(fields.outer, expected[i].outer);
      EXPECT_EQ(fields.split, expected[i].split);
      EXPECT_EQ(fields.inner, expected[i].inner);
      EXPECT_EQ(fields.reduction, expected[i].reduction);
      EXPECT_EQ(fields.in, expected[i].from);
      EXPECT_EQ(fields.out, out + i);
      EXPECT_EQ(fields.group, 1);
      EXPECT_EQ(fields.element, element);
    }
    const dyna_transposition &turn = seen[2].transposition;
    EXPECT_EQ(turn.in, in);
    EXPECT_EQ(turn.out, out + 2);
    EXPECT_EQ(turn.outer * turn.middle * turn.inner, 1);
    EXPECT_EQ(turn.first, 45);
    EXPECT_EQ(turn.second, 24);
    EXPECT_EQ(turn.second_to_first, 1);
    EXPECT_EQ(turn.group, 1);
    EXPECT_EQ(turn.element, element);
  }
}

/// Each rank drops what one rank with the whole row drops, bit by bit.
TEST_F(RankTest, DropsByFeaturesOfTheWholeRow) {
  const char *text =
      "dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, "
      "%x: tensor<?x$Wx$T> in <input>) -> (tensor<?x$Wx$T> in <output>) "
      "$A{\n"
      "  %r = dyna.rows : tensor<?x$Wx$T> {\n"
      "    %y = dyna.dropout %x, %s {$Ginstance = 3 : i64, probability = "
      "2.5e-1 : f64} : tensor<?x$Wx$T>\n"
      "    dyna.yield %y : tensor<?x$Wx$T>\n"
      "  } {places = [#dyna.place<output>]}\n"
      "  dyna.return %r : tensor<?x$Wx$T>\n}\n";
  auto textOf = [&](Element e, int64_t width, const char *arguments,
                    const char *group) {
    std::string result = replaceAll(text, "$T", nameOf(e));
    result = replaceAll(result, "$W", std::to_string(width));
    return replaceAll(replaceAll(result, "$A", arguments), "$G", group);
  };
  for (Element e : {Element::F32, Element::F64, Element::BF16})
    for (int64_t width : {1, 7, 16, 33}) {
      const int64_t all = 3 * width;
      Call one({5, 40, 1});
      Tensor x = pattern(e, one.tokens() * all, 3), wanted(e, x.count());
      one.in = {{x.data(), one.tokens()}};
      one.out = {{wanted.data(), one.tokens()}};
      ASSERT_EQ(run(textOf(e, all, "", ""), one), DYNA_OK);
      int64_t dropped = 0;
      for (int32_t index = 0; index < 3; ++index) {
        Call call({5, 40, 1});
        enter(call, 3, index);
        Tensor part(e, call.tokens() * width), y(e, part.count());
        for (int64_t t = 0; t < call.tokens(); ++t)
          for (int64_t c = 0; c < width; ++c)
            part.set(t * width + c, x.get(t * all + index * width + c));
        call.in = {{part.data(), call.tokens()}};
        call.out = {{y.data(), call.tokens()}};
        ASSERT_EQ(run(textOf(e, width,
                             "attributes {dist.arguments = [unit, "
                             "#dist.layout<[[], [tp]] on <tp=3>>]} ",
                             "dist.features = #dist.group<1 [tp] on <tp=3>>, "),
                      call),
                  DYNA_OK);
        for (int64_t t = 0; t < call.tokens(); ++t)
          for (int64_t c = 0; c < width; ++c) {
            const double value = y.get(t * width + c);
            ASSERT_EQ(value, wanted.get(t * all + index * width + c))
                << nameOf(e) << " rank " << index << ", row " << t;
            dropped += value == 0;
          }
      }
      EXPECT_GT(dropped, 0);
      EXPECT_LT(dropped, one.tokens() * all / 2);
    }
}

/// The third of three ranks works on its own tokens, at their own positions.
TEST_F(RankTest, SweepsOverItsTokens) {
  const char *text =
      "dyna.function @f of @l as forward(%w: tensor<60x8x$T> in <parameter>, "
      "%m: tensor<10x8x$T> in <parameter, index = 1>, %s: !dyna.segments in "
      "<segments>, %x: tensor<?x8x$T> in <input>) -> (tensor<?x8x$T> in "
      "<output>, tensor<?x10x$T> in <output, index = 1>) attributes "
      "{dist.arguments = [$R, $R, unit, #dist.layout<[[tp], []] on "
      "<tp=3>>]} {\n"
      "  %r = dyna.rows : tensor<?x8x$T> {\n"
      "    %0 = dyna.positions %w, %s {dist.tokens = #dist.group<1 [tp] on "
      "<tp=3>>} : tensor<60x8x$T>\n"
      "    %1 = dyna.add %x, %0 : tensor<?x8x$T>\n"
      "    dyna.yield %1 : tensor<?x8x$T>\n"
      "  } {places = [#dyna.place<output>]}\n"
      "  %y = dyna.linear %r, %m {places = [#dyna.place<output, index = 1>]} : "
      "tensor<?x8x$T>, tensor<10x8x$T>\n"
      "  dyna.return %r, %y : tensor<?x8x$T>, tensor<?x10x$T>\n}\n";
  for (Element e : {Element::F32, Element::F64, Element::BF16})
    for (int32_t index = 0; index < 3; ++index) {
      kernelLog() = KernelLog();
      Call call({5, 40, 1}); // 46 tokens: parts of 16, 16 and 14
      enter(call, 3, index);
      int64_t begin = dyna_part_begin(46, 3, index);
      int64_t rows = dyna_part_size(46, 3, index);
      Tensor w = pattern(e, 60 * 8, 1), m = pattern(e, 80, 2);
      Tensor x = pattern(e, rows * 8, 3), r(e, rows * 8), y(e, rows * 10);
      call.params = {{w.data(), 60}, {m.data(), 10}};
      call.in = {{x.data(), rows}};
      call.out = {{r.data(), rows}, {y.data(), rows}};
      std::string whole = "#dist.layout<[[], []] on <tp=3>>";
      ASSERT_EQ(
          run(replaceAll(replaceAll(text, "$T", nameOf(e)), "$R", whole), call),
          DYNA_OK);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < 8; ++c)
          ASSERT_EQ(r.get(i * 8 + c),
                    x.get(i * 8 + c) +
                        w.get(call.rowPosition[begin + i] * 8 + c));
        for (int64_t n = 0; n < 10; ++n) {
          double sum = 0;
          for (int64_t c = 0; c < 8; ++c)
            sum += r.get(i * 8 + c) * m.get(n * 8 + c);
          ASSERT_NEAR(y.get(i * 10 + n), sum,
                      (e == Element::BF16 ? 1e-2 : 1e-6) * (1 + std::abs(sum)));
        }
      }
      EXPECT_TRUE(r.guardIntact() && y.guardIntact());
    }
}

TEST_F(RankTest, HeadIsToldOfItsPart) {
  const char *text =
      "dyna.function @f of @l as evaluate(%w: tensor<6x16x$T> in <parameter>, "
      "%x: tensor<?x16x$T> in <saved_input>, %t: tensor<?xi32> in <input, "
      "index = 1>) -> (tensor<1xf64> in <output>) {\n"
      "  %loss = dyna.linear_cross_entropy %x, %w, %t shard<group = 1, rows = "
      "11> {places = [#dyna.place<output>, #dyna.place<workspace>]} : "
      "tensor<?x16x$T>, tensor<6x16x$T>, tensor<?xi32>\n"
      "  dyna.return %loss : tensor<1xf64>\n}\n";
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    kernelLog() = KernelLog();
    Tensor w(e, 6 * 16), x(e, 5 * 16);
    int32_t targets[5] = {};
    double loss;
    Call call({5});
    call.params = {{w.data(), 6}};
    call.saved.input = x.data();
    call.in = {{nullptr, 0}, {targets, 5}};
    call.out = {{&loss, 1}};
    ASSERT_EQ(run(shardText(text, e, 6), call), DYNA_OK);
    ASSERT_EQ(kernelLog().head.size(), 1u);
    EXPECT_EQ(kernelLog().head[0].vocab, 6);
    EXPECT_EQ(kernelLog().head[0].whole_vocab, 11);
    EXPECT_EQ(kernelLog().head[0].group, 1);
  }
}

} // namespace
