//===- SparseIndexTest.cpp - The index of sparse weights ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/SparseIndex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<uint8_t> randomMask(int64_t elements, double sparsity,
                                std::mt19937 &random) {
  std::bernoulli_distribution survives(1 - sparsity);
  std::vector<uint8_t> mask(static_cast<size_t>(elements));
  for (uint8_t &byte : mask)
    byte = survives(random);
  return mask;
}

/// A copy of an index whose arrays a test can break.
struct OpenIndex {
  struct Side {
    std::vector<int64_t> starts;
    std::vector<uint8_t> lines, counts, depths;
    std::vector<uint16_t> places;

    Side(const dyna_sparse_side &side, int64_t tiles, int64_t survivors)
        : starts(side.starts, side.starts + tiles + 1),
          lines(side.lines, side.lines + tiles * DYNA_SPARSE_TILE),
          counts(side.counts, side.counts + tiles * DYNA_SPARSE_TILE),
          depths(side.depths, side.depths + survivors) {
      if (side.places)
        places.assign(side.places, side.places + survivors);
    }
    dyna_sparse_side view() const {
      return {starts.data(), lines.data(), counts.data(), depths.data(),
              places.data()};
    }
  };
  dyna_sparse_weight weight;
  Side byRow, byColumn;

  explicit OpenIndex(const dyna_sparse_weight &w)
      : weight(w), byRow(w.by_row, tiles(), w.survivors),
        byColumn(w.by_column, tiles(), w.survivors) {}
  int64_t tiles() const {
    return dyna_sparse_tiles(weight.rows) * dyna_sparse_tiles(weight.columns);
  }
  std::string fault() {
    weight.by_row = byRow.view();
    weight.by_column = byColumn.view();
    return checkSparseIndex(weight).message();
  }
};

} // namespace

TEST(SparseIndex, TheExampleOfItsHeader) {
  const uint8_t mask[] = {0, 1, 0, //
                          1, 0, 1, //
                          0, 0, 0};
  const float weight[] = {0, 7, 0, 4, 0, 5, 0, 0, 0};
  auto index = SparseIndex::build(3, 3, mask);
  ASSERT_TRUE(index.isOk());
  const dyna_sparse_weight w = index->view();
  auto first = [](const auto *data) {
    return std::vector<int>(data, data + 3);
  };
  EXPECT_EQ(w.survivors, 3);
  EXPECT_THAT(first(w.by_row.lines), ElementsAre(1, 0, 2));
  EXPECT_THAT(first(w.by_row.counts), ElementsAre(2, 1, 0));
  EXPECT_THAT(first(w.by_row.depths), ElementsAre(0, 2, 1));
  EXPECT_THAT(first(w.by_column.lines), ElementsAre(0, 1, 2));
  EXPECT_THAT(first(w.by_column.counts), ElementsAre(1, 1, 1));
  EXPECT_THAT(first(w.by_column.depths), ElementsAre(1, 0, 1));
  EXPECT_THAT(first(w.by_column.places), ElementsAre(0, 2, 1));
  float values[3];
  gatherValues(*index, 3, weight, 3, values);
  EXPECT_THAT(values, ElementsAre(4, 5, 7));
}

// Positions are those of the mask, each once, and values come back to their places.
TEST(SparseIndex, PositionsAndValuesOfRandomMasks) {
  std::mt19937 random(1);
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                               {1, 300},
                               {300, 1},
                               {127, 129},
                               {128, 256},
                               {130, 389}})
    for (double sparsity : {0.0, 0.3, 0.9, 0.99, 1.0}) {
      SCOPED_TRACE(testing::Message()
                   << rows << " x " << columns << ", sparsity " << sparsity);
      const auto mask = randomMask(rows * columns, sparsity, random);
      auto index = SparseIndex::build(rows, columns, mask.data());
      ASSERT_TRUE(index.isOk());
      EXPECT_EQ(checkSparseIndex(index->view()).message(), "");
      std::vector<uint8_t> found(mask.size());
      for (int64_t position : index->positions())
        ++found[static_cast<size_t>(position)];
      EXPECT_EQ(found, mask);
      // Bytes as the header says: four for each survivor, and some for each tile.
      const int64_t tiles =
          dyna_sparse_tiles(rows) * dyna_sparse_tiles(columns);
      EXPECT_EQ(index->bytes(), 4 * index->survivors() + 528 * tiles + 16);

      const int64_t stride = columns + 3;
      std::vector<double> dense(static_cast<size_t>(rows * stride));
      std::iota(dense.begin(), dense.end(), 1);
      std::vector<double> values(static_cast<size_t>(index->survivors()));
      gatherValues(*index, columns, dense.data(), stride, values.data());
      std::vector<double> back(dense.size(), -1);
      scatterValues(*index, columns, values.data(), back.data(), stride);
      for (int64_t i = 0; i < rows * stride; ++i) {
        const bool survives =
            i % stride < columns &&
            mask[static_cast<size_t>(i / stride * columns + i % stride)];
        ASSERT_EQ(back[static_cast<size_t>(i)], survives ? i + 1.0 : -1) << i;
      }
    }
}

TEST(SparseIndex, WhatIsNoWeightIsRefused) {
  const uint8_t mask[] = {1};
  EXPECT_EQ(SparseIndex::build(0, 4, mask).status().message(),
            "the index of a sparse weight of 0 x 4: expected at least one row "
            "and column and a mask");
  EXPECT_FALSE(SparseIndex::build(4, -1, mask).isOk());
  EXPECT_THAT(SparseIndex::build(1, 1, nullptr).status().message(),
              HasSubstr("without a mask"));
}

// Each array is broken once, at every place of it that a kernel reads.
TEST(SparseIndex, BrokenArraysAreFound) {
  std::mt19937 random(2);
  const auto mask = randomMask(140 * 150, 0.97, random);
  auto built = SparseIndex::build(140, 150, mask.data());
  ASSERT_TRUE(built.isOk());
  OpenIndex index(built->view());
  ASSERT_EQ(index.fault(), "");
  auto breakAll = [&](auto &array, auto other, const char *what) {
    for (auto &element : array) {
      const auto before = element;
      element = other(before);
      EXPECT_NE(index.fault(), "") << what << " " << &element - array.data();
      element = before;
    }
  };
  for (OpenIndex::Side *side : {&index.byRow, &index.byColumn}) {
    breakAll(side->starts, [](int64_t x) { return x + 1; }, "start");
    breakAll(side->lines, [](uint8_t x) { return uint8_t(x ^ 1); }, "line");
    breakAll(side->lines, [](uint8_t) { return uint8_t(255); }, "line");
    breakAll(side->counts, [](uint8_t x) { return uint8_t(x + 1); }, "count");
    breakAll(side->depths, [](uint8_t x) { return uint8_t(x + 1); }, "depth");
    breakAll(side->depths, [](uint8_t) { return uint8_t(200); }, "depth");
  }
  breakAll(
      index.byColumn.places, [](uint16_t x) { return uint16_t(x + 1); },
      "place");
  EXPECT_EQ(index.fault(), "");
  index.weight.survivors -= 1;
  EXPECT_THAT(index.fault(), HasSubstr("survivors"));
}
