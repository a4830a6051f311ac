//===- RankLoweringTest.cpp - What compiled code does with its rank -*- C++
//-*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables of which each rank holds a part, and the head on such a table.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "test/codegen/cpu/FunctionTest.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace dyna::test;

namespace {

class RankTest : public FunctionTest {
protected:
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
