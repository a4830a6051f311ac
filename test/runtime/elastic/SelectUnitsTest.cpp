//===- SelectUnitsTest.cpp - Surviving units beside a full sort -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/SelectUnits.h"

#include "runtime/elastic/prune/PrunedUnits.h"
#include "test/runtime/elastic/SumOfThreads.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/planner/Draw.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <thread>
#include <tuple>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// A matrix whose rows or columns are units.
struct Matrix {
  int64_t rows, columns;
  int dimension;
  int64_t width, unit;
  std::vector<double> values;
};

/// Two matrices for each of some lists of units, as before and behind channels.
std::vector<Matrix> drawMatrices(Draw &draw, int kind, int64_t &units) {
  std::vector<Matrix> matrices;
  for (int64_t list = 1 + draw.below(3); list > 0; --list) {
    const int64_t count = 1 + draw.below(6);
    for (int dimension : {0, 1}) {
      const int64_t width = 1 + draw.below(3), other = 1 + draw.below(5);
      Matrix one{dimension == 0 ? count * width : other,
                 dimension == 0 ? other : count * width,
                 dimension,
                 width,
                 units,
                 {}};
      for (int64_t i = 0; i < one.rows * one.columns; ++i) {
        const double sign = draw.below(2) ? -1 : 1;
        one.values.push_back(
            sign * (kind == 0   ? static_cast<double>(draw.below(1 << 20))
                    : kind == 1 ? static_cast<double>(draw.below(3))
                    : kind == 2
                        ? 0.0
                        : std::ldexp(static_cast<double>(draw.below(64)),
                                     -int(draw.below(12)))));
      }
      matrices.push_back(std::move(one));
    }
    units += count;
  }
  return matrices;
}

/// Sums of these numbers are exact, in any order.
std::vector<uint8_t> bySorting(const std::vector<Matrix> &matrices,
                               int64_t units, int64_t kept) {
  std::vector<double> sums(static_cast<size_t>(units));
  for (const Matrix &one : matrices)
    for (int64_t r = 0; r < one.rows; ++r)
      for (int64_t c = 0; c < one.columns; ++c)
        sums[static_cast<size_t>(one.unit +
                                 (one.dimension == 0 ? r : c) / one.width)] +=
            std::fabs(one.values[static_cast<size_t>(r * one.columns + c)]);
  std::vector<size_t> order(sums.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-sums[a], a) < std::tuple(-sums[b], b);
  });
  std::vector<uint8_t> survives(sums.size());
  for (int64_t i = 0; i < kept; ++i)
    survives[order[static_cast<size_t>(i)]] = 1;
  return survives;
}

/// Deals boxes of the matrices to ranks, and selects on all of them at one time.
template <typename T>
std::vector<std::vector<uint8_t>> select(const std::vector<Matrix> &matrices,
                                         int64_t units, int64_t kept,
                                         size_t ranks, Draw &draw) {
  std::vector<std::vector<UnitBox<T>>> boxes(ranks);
  std::vector<std::vector<T>> values;
  values.reserve(4 * matrices.size());
  for (const Matrix &one : matrices) {
    const int64_t row = draw.below(one.rows + 1),
                  column = draw.below(one.columns + 1);
    for (auto [top, bottom] : {std::pair(int64_t{0}, row), {row, one.rows}})
      for (auto [left, right] :
           {std::pair(int64_t{0}, column), {column, one.columns}}) {
        std::vector<T> &part = values.emplace_back();
        for (int64_t r = top; r < bottom; ++r)
          for (int64_t c = left; c < right; ++c)
            part.push_back(static_cast<T>(
                one.values[static_cast<size_t>(r * one.columns + c)]));
        UnitBox<T> box;
        box.box.values = part.data();
        box.box.rows = bottom - top;
        box.box.columns = right - left;
        box.dimension = one.dimension;
        box.first = one.dimension == 0 ? top : left;
        box.width = one.width;
        box.unit = one.unit;
        boxes[static_cast<size_t>(draw.below(static_cast<int64_t>(ranks)))]
            .push_back(box);
      }
  }
  SumOfThreads sums(static_cast<int>(ranks));
  std::vector<std::vector<uint8_t>> results(ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto selected = selectUnits<T>(
          boxes[rank], units, kept, 100,
          [&](std::vector<int64_t> &counts) { return sums.sum(counts); });
      if (selected.isOk())
        results[rank] = *selected;
      else
        EXPECT_EQ(selected.status().code(), StatusCode::InvalidArgument);
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

template <typename T> class SelectUnitsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SelectUnitsTest, Types);

TYPED_TEST(SelectUnitsTest, AreThoseOfAFullSort) {
  Draw draw(5);
  for (int round = 0; round < 120; ++round) {
    int64_t units = 0;
    const auto matrices =
        drawMatrices(draw, static_cast<int>(draw.below(4)), units);
    const int64_t kept = draw.below(units + 1);
    const auto expected = bySorting(matrices, units, kept);
    for (const auto &result :
         select<TypeParam>(matrices, units, kept,
                           static_cast<size_t>(1 + draw.below(4)), draw))
      EXPECT_EQ(result, expected);
  }
}

/// Sums of such numbers as doubles would depend on their order.
TYPED_TEST(SelectUnitsTest, DealsDoNotMatter) {
  Draw draw(9);
  for (int round = 0; round < 40; ++round) {
    int64_t units = 0;
    auto matrices = drawMatrices(draw, 0, units);
    // Units of a list have the same weights, in another order.
    for (Matrix &one : matrices)
      for (size_t i = 0; i < one.values.size(); ++i)
        one.values[i] = std::ldexp(1 + 0.1 * static_cast<double>(i % 7),
                                   static_cast<int>(i * i % 19) - 9);
    const int64_t kept = draw.below(units + 1);
    const auto alone = select<TypeParam>(matrices, units, kept, 1, draw);
    EXPECT_EQ(std::accumulate(alone[0].begin(), alone[0].end(), 0), kept);
    for (size_t ranks : {2, 3, 4})
      for (const auto &result :
           select<TypeParam>(matrices, units, kept, ranks, draw))
        EXPECT_EQ(result, alone[0]);
  }
}

/// Units differ by weights that are far below the largest one, and by their sums alone.
TYPED_TEST(SelectUnitsTest, SmallWeightsAddUp) {
  Draw draw(13);
  for (int round = 0; round < 40; ++round) {
    Matrix one{6, 8, 0, 1, 0, {}};
    for (int64_t i = 0; i < one.rows * one.columns; ++i)
      one.values.push_back(
          i % 8 < 2 ? 1.0
                    : std::ldexp(static_cast<double>(draw.below(64)), -35));
    for (int64_t kept = 1; kept < 6; ++kept)
      EXPECT_EQ(select<TypeParam>({one}, 6, kept, 2, draw)[0],
                bySorting({one}, 6, kept));
  }
}

TYPED_TEST(SelectUnitsTest, NumbersThatAreNotFiniteAreRefusedEverywhere) {
  Draw draw(3);
  for (TypeParam bad : {std::numeric_limits<TypeParam>::quiet_NaN(),
                        std::numeric_limits<TypeParam>::infinity()}) {
    int64_t units = 0;
    auto matrices = drawMatrices(draw, 0, units);
    matrices.front().values.back() = static_cast<double>(bad);
    for (const auto &result : select<TypeParam>(matrices, units, 1, 3, draw))
      EXPECT_TRUE(result.empty());
  }
  int64_t units = 0;
  const auto matrices = drawMatrices(draw, 0, units);
  for (int64_t kept : {int64_t{-1}, units + 1})
    EXPECT_TRUE(select<TypeParam>(matrices, units, kept, 1, draw)[0].empty());
}

/// Sums stay exact if a unit has many weights: fewer bits of each are added.
TEST(SelectUnitsTest, LargeUnitsHaveFewerBits) {
  const std::vector<double> values = {3, 1, 2, 0.5};
  UnitBox<double> box;
  box.box.values = values.data();
  box.box.rows = 4;
  box.box.columns = 1;
  auto alone = [](std::vector<int64_t> &counts) {
    for (int64_t count : counts)
      EXPECT_LT(count, int64_t{1} << 53);
    return Status::ok();
  };
  EXPECT_EQ(*selectUnits<double>({box}, 4, 2, int64_t{1} << 40, alone),
            (std::vector<uint8_t>{1, 0, 1, 0}));
}

//===----------------------------------------------------------------------===//
// Units of models
//===----------------------------------------------------------------------===//

TEST(PrunedUnitsTest, LayersThatShareAMatrixShareUnits) {
  TinyOptions tiny;
  tiny.nestedTie = true;
  const Model model = *Model::create(tinyManifest(tiny));
  const auto lists = *prunedUnits(model, PrunedStructure::Channel);
  const int blocks = model.layers() - 2;
  ASSERT_EQ(static_cast<int>(lists.size()), blocks - 1);
  EXPECT_EQ(lists[0].layer, 1);
  EXPECT_EQ(lists[0].parts.size(), 3u);
  EXPECT_EQ(lists[1].layer, 2);
  EXPECT_EQ(lists[1].parts.size(), 2u);
  int64_t weights = 0;
  for (const UnitList &list : lists) {
    EXPECT_EQ(list.count, tiny.hidden);
    weights += list.count * list.weights(model);
    for (const UnitList::Part &part : list.parts)
      EXPECT_EQ(part.width, 1);
  }
  const std::vector<bool> parameters = parametersOf(model, lists);
  int64_t expected = 0;
  for (int p = 0; p < model.parameters(); ++p) {
    EXPECT_EQ(parameters[p], model.parameter(p).shape_size() > 1 && p > 0);
    expected += parameters[p] ? model.elements(p) : 0;
  }
  EXPECT_EQ(weights, expected);
}

TEST(PrunedUnitsTest, OthersAreRefused) {
  auto refusal = [](const plan::Manifest &manifest, PrunedStructure structure) {
    const auto model = Model::create(plan::Manifest(manifest));
    if (!model.isOk())
      return model.status().message();
    const auto lists = prunedUnits(*model, structure);
    return lists.isOk() ? std::string("none") : lists.status().message();
  };
  TinyOptions tiny;
  EXPECT_THAT(refusal(tinyManifest(tiny), PrunedStructure::Head),
              HasSubstr("structure=head: no layer of this program has any"));
  tiny.frozen = {"h.0.w2", "h.1.w2", "h.2.w2"};
  EXPECT_THAT(refusal(tinyManifest(tiny), PrunedStructure::Channel),
              HasSubstr("'h.0.w2' is frozen"));
  // The second block reads the first one's matrix with half as many units.
  tiny.frozen = {};
  tiny.nestedTie = true;
  tiny.hidden = 12;
  plan::Manifest manifest = tinyManifest(tiny);
  *manifest.add_kinds() = manifest.kinds(1);
  const int other = manifest.kinds_size() - 1;
  manifest.mutable_kinds(other)->set_name("other");
  manifest.mutable_kinds(other)->mutable_weight_groups(0)->set_count(
      tiny.hidden / 2);
  manifest.mutable_layers(manifest.layers_size() - 2)->set_kind(other);
  manifest.set_hash(manifestHash(manifest));
  EXPECT_THAT(refusal(manifest, PrunedStructure::Channel),
              HasSubstr("cut it into other units"));
}

} // namespace
