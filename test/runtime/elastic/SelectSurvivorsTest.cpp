//===- SelectSurvivorsTest.cpp - Survivors beside a full sort -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/SelectSurvivors.h"

#include "test/runtime/elastic/SumOfThreads.h"
#include "test/runtime/planner/Draw.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <thread>
#include <tuple>

using namespace dyna;

namespace {

/// Parameters, one behind the other, and the boxes of each that a rank counts.
template <typename T> struct Dealt {
  struct Part {
    std::vector<T> values;
    WeightBox<T> box;
  };
  std::vector<T> all; ///< by position
  std::vector<std::vector<Part>> ranks;

  void add(int64_t rows, int64_t columns, const std::vector<T> &values,
           Draw &draw) {
    const auto first = static_cast<int64_t>(all.size());
    all.insert(all.end(), values.begin(), values.end());
    // Cut once along rows and once along columns; each box goes to some rank.
    const int64_t row = draw.below(rows + 1), column = draw.below(columns + 1);
    for (auto [top, bottom] : {std::pair(int64_t{0}, row), {row, rows}})
      for (auto [left, right] :
           {std::pair(int64_t{0}, column), {column, columns}}) {
        Part part;
        part.box = {nullptr, bottom - top, right - left,
                    first + top * columns + left, columns};
        for (int64_t r = top; r < bottom; ++r)
          for (int64_t c = left; c < right; ++c)
            part.values.push_back(values[r * columns + c]);
        ranks[draw.below(static_cast<int64_t>(ranks.size()))].push_back(
            std::move(part));
      }
  }

  std::vector<WeightBox<T>> boxesOf(size_t rank) const {
    std::vector<WeightBox<T>> boxes;
    for (const Part &part : ranks[rank]) {
      boxes.push_back(part.box);
      boxes.back().values = part.values.data();
    }
    return boxes;
  }
};

/// Selects on all ranks at one time, and marks what survives by position.
template <typename T>
std::vector<uint8_t> select(const Dealt<T> &dealt, int64_t kept,
                            int64_t *bytes = nullptr) {
  SumOfThreads ranks(static_cast<int>(dealt.ranks.size()));
  std::vector<uint8_t> marked(dealt.all.size(), 2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < dealt.ranks.size(); ++rank)
    threads.emplace_back([&, rank] {
      const std::vector<WeightBox<T>> boxes = dealt.boxesOf(rank);
      auto survivors = selectSurvivors<T>(
          boxes, kept, static_cast<int64_t>(dealt.all.size()),
          [&](std::vector<int64_t> &counts) { return ranks.sum(counts); });
      ASSERT_TRUE(survivors.isOk()) << survivors.status().message();
      EXPECT_EQ(survivors->count, kept);
      for (const WeightBox<T> &box : boxes) {
        std::vector<uint8_t> mask(box.rows * box.columns, 3);
        const int64_t count = markSurvivors(box, *survivors, mask.data());
        EXPECT_EQ(count, std::accumulate(mask.begin(), mask.end(), 0));
        for (int64_t r = 0; r < box.rows; ++r)
          for (int64_t c = 0; c < box.columns; ++c)
            marked[box.position + r * box.rowStride + c] =
                mask[r * box.columns + c];
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  if (bytes)
    *bytes = ranks.bytes();
  return marked;
}

template <typename T>
std::vector<uint8_t> bySorting(const std::vector<T> &all, int64_t kept) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-std::fabs(all[a]), a) <
           std::tuple(-std::fabs(all[b]), b);
  });
  std::vector<uint8_t> marked(all.size(), 0);
  for (int64_t i = 0; i < kept; ++i)
    marked[order[static_cast<size_t>(i)]] = 1;
  return marked;
}

/// Weights of a kind: normal ones, few different ones, denormals, zeros, and all of
/// these.
template <typename T> T drawWeight(int kind, Draw &draw) {
  const T sign = draw.below(2) ? T(-1) : T(1);
  switch (kind) {
  case 0:
    return sign * static_cast<T>(draw.below(1 << 20)) / T(1 << 21);
  case 1:
    return sign * static_cast<T>(draw.below(4));
  case 2:
    return sign * std::numeric_limits<T>::denorm_min() *
           static_cast<T>(draw.below(5));
  case 3:
    return sign * T(0);
  case 4:
    return draw.below(9) == 0 ? sign * std::numeric_limits<T>::infinity()
                              : sign * std::numeric_limits<T>::max();
  default:
    return drawWeight<T>(draw.below(5), draw);
  }
}

template <typename T> class SelectSurvivorsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SelectSurvivorsTest, Types);

/// Only weights with a mark are compared. Those without it may be no numbers.
TYPED_TEST(SelectSurvivorsTest, AreChosenAmongMarkedWeights) {
  Draw draw(11);
  for (int round = 0; round < 60; ++round) {
    const int64_t rows = 1 + draw.below(9), columns = 1 + draw.below(50);
    const uint8_t among = static_cast<uint8_t>(draw.below(2));
    const int kind = draw.below(6);
    std::vector<TypeParam> values;
    std::vector<uint8_t> mask;
    std::vector<size_t> order;
    for (int64_t i = 0; i < rows * columns; ++i) {
      mask.push_back(static_cast<uint8_t>(draw.below(3) == 0));
      const bool isMarked = mask.back() == among;
      values.push_back(isMarked ? drawWeight<TypeParam>(kind, draw)
                                : std::numeric_limits<TypeParam>::quiet_NaN());
      if (isMarked)
        order.push_back(static_cast<size_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::fabs(values[a]) > std::fabs(values[b]);
    });
    const int64_t kept = draw.below(static_cast<int64_t>(order.size()) + 1);
    std::vector<uint8_t> expected(values.size());
    for (int64_t i = 0; i < kept; ++i)
      expected[order[static_cast<size_t>(i)]] = 1;
    const WeightBox<TypeParam> box = {values.data(), rows,        columns, 0,
                                      columns,       mask.data(), among};
    auto alone = [](std::vector<int64_t> &) { return Status::ok(); };
    auto survivors =
        selectSurvivors<TypeParam>({box}, kept, rows * columns, alone);
    ASSERT_TRUE(survivors.isOk()) << survivors.status().message();
    std::vector<uint8_t> marked(values.size(), 3);
    EXPECT_EQ(markSurvivors(box, *survivors, marked.data()), kept);
    EXPECT_EQ(marked, expected);
    EXPECT_FALSE(selectSurvivors<TypeParam>(
                     {box}, static_cast<int64_t>(order.size()) + 1,
                     rows * columns, alone)
                     .isOk());
  }
}

TYPED_TEST(SelectSurvivorsTest, AreThoseOfAFullSort) {
  Draw draw(7);
  for (int round = 0; round < 120; ++round) {
    Dealt<TypeParam> dealt;
    dealt.ranks.resize(1 + draw.below(4));
    for (int64_t p = 1 + draw.below(4); p > 0; --p) {
      const int64_t rows = 1 + draw.below(9), columns = 1 + draw.below(40);
      std::vector<TypeParam> values(rows * columns);
      for (TypeParam &value : values)
        value = drawWeight<TypeParam>(round % 6, draw);
      dealt.add(rows, columns, values, draw);
    }
    const auto weights = static_cast<int64_t>(dealt.all.size());
    for (int64_t kept : {int64_t{0}, int64_t{1}, weights,
                         int64_t{draw.below(static_cast<int>(weights) + 1)}})
      ASSERT_EQ(select(dealt, kept), bySorting(dealt.all, kept))
          << "round " << round << ", " << kept << " of " << weights;
  }
}

// Few weights have the bits of the smallest survivor, and these are copied.
TYPED_TEST(SelectSurvivorsTest, FewCandidatesAreCopied) {
  Draw draw(8);
  Dealt<TypeParam> dealt;
  dealt.ranks.resize(2);
  std::vector<TypeParam> values(256 * 300);
  for (TypeParam &value : values)
    value = static_cast<TypeParam>(std::ldexp(
        static_cast<double>(draw.below(1 << 9)), draw.below(60) - 30));
  dealt.add(256, 300, values, draw);
  int64_t bytes = 0;
  for (int64_t kept : {100, 7000, 60000}) {
    EXPECT_EQ(select(dealt, kept, &bytes), bySorting(dealt.all, kept));
    EXPECT_LE(bytes, sizeof(TypeParam) == 4 ? 96 << 10 : 160 << 10);
  }
}

TYPED_TEST(SelectSurvivorsTest, WhatIsNoNumberIsRefused) {
  Draw draw(9);
  for (bool isNegative : {false, true}) {
    Dealt<TypeParam> dealt;
    dealt.ranks.resize(3);
    std::vector<TypeParam> values(5 * 7, TypeParam(1));
    const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
    values[17] = isNegative ? -nan : nan;
    dealt.add(5, 7, values, draw);
    SumOfThreads ranks(3);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        auto survivors = selectSurvivors<TypeParam>(
            dealt.boxesOf(rank), 3, 35,
            [&](std::vector<int64_t> &counts) { return ranks.sum(counts); });
        ASSERT_FALSE(survivors.isOk());
        EXPECT_EQ(survivors.status().message(),
                  "pruning: a weight is no number (NaN), so magnitudes have no "
                  "order: go on from an earlier checkpoint");
      });
    for (std::thread &thread : threads)
      thread.join();
  }
}

TYPED_TEST(SelectSurvivorsTest, MoreSurvivorsThanWeightsAreRefused) {
  const std::vector<TypeParam> values(6, TypeParam(2));
  for (int64_t kept : {7, -1}) {
    auto survivors = selectSurvivors<TypeParam>(
        {{values.data(), 2, 3, 0, 3}}, kept, 6,
        [](std::vector<int64_t> &) { return Status::ok(); });
    ASSERT_FALSE(survivors.isOk());
    EXPECT_EQ(survivors.status().message(),
              "pruning: " + std::to_string(kept) +
                  " weights are to survive, but there are 6");
  }
}

// A rank whose counts cannot be added up ends the selection.
TYPED_TEST(SelectSurvivorsTest, FailedSumsEndIt) {
  const std::vector<TypeParam> values(6, TypeParam(2));
  for (int failing = 0; failing < 3; ++failing) {
    int calls = 0;
    auto survivors = selectSurvivors<TypeParam>(
        {{values.data(), 2, 3, 0, 3}}, 3, 6, [&](std::vector<int64_t> &) {
          return calls++ == failing ? Status(StatusCode::PeerFailed, "gone")
                                    : Status::ok();
        });
    ASSERT_FALSE(survivors.isOk());
    EXPECT_EQ(survivors.status().code(), StatusCode::PeerFailed);
    EXPECT_EQ(calls, failing + 1);
  }
}

} // namespace
