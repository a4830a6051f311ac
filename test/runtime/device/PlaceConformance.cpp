//===- PlaceConformance.cpp - Rows from one place to another ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

#include <cstring>

using namespace dyna;

namespace {

/// Rows in two buffers, in bytes.
struct Rows {
  int64_t count, bytes, sourceStride, targetStride, sourceBegin, targetBegin;
};

/// Every alignment that whole elements can have, with and without gaps.
std::vector<Rows> casesOf(int64_t one) {
  std::vector<Rows> cases = {{1, 4096 * one, 0, 0, 0, 0},
                             {1, 3 * one, 0, 0, one, 2 * one},
                             {0, 8 * one, 8 * one, 8 * one, 0, 0},
                             {5, 0, one, one, 0, 0},
                             {300, 64, 64, 64, 0, 64},
                             {7, 64, 128, 64, 0, 0},
                             {64, 160, 192, 256, 32, 16}};
  for (int64_t gap : {0, 1, 3})
    for (int64_t begin : {0, 1, 5})
      cases.push_back(
          {9, 11 * one, (11 + gap) * one, 13 * one, begin * one, 3 * one});
  return cases;
}

/// Of two such, sums have more bits than bf16.
template <typename T> std::vector<T> elements(int64_t bytes, int64_t seed) {
  std::vector<T> all(static_cast<size_t>(bytes) / sizeof(T));
  for (size_t i = 0; i < all.size(); ++i)
    naive::fromDouble(
        static_cast<double>((static_cast<int64_t>(i) * 37 + seed) % 251 - 125) /
            8,
        all[i]);
  return all;
}

} // namespace

class PlaceConformance : public DeviceFixture {
protected:
  template <typename T> void expectPlaced(int32_t addedAs) {
    constexpr int64_t one = sizeof(T);
    for (const Rows &rows : casesOf(one)) {
      SCOPED_TRACE(testing::Message()
                   << rows.count << " rows of " << rows.bytes << " bytes, "
                   << one << " each, from " << rows.sourceBegin << " to "
                   << rows.targetBegin);
      const auto from = elements<T>(
          rows.sourceBegin + rows.count * rows.sourceStride + rows.bytes + one,
          3);
      auto wanted = elements<T>(
          rows.targetBegin + rows.count * rows.targetStride + rows.bytes + one,
          88);
      std::unique_ptr<Buffer> source = upload(from), target = upload(wanted);
      for (int64_t row = 0; row < rows.count; ++row)
        for (int64_t i = 0; i < rows.bytes / one; ++i) {
          const T &read =
              from[(rows.sourceBegin + row * rows.sourceStride) / one + i];
          T &written =
              wanted[(rows.targetBegin + row * rows.targetStride) / one + i];
          if (addedAs == DYNA_REPLACES)
            written = read;
          else
            naive::fromDouble(naive::toDouble(written) + naive::toDouble(read),
                              written);
        }
      const dyna_place place = {
          static_cast<const char *>(source->data()) + rows.sourceBegin,
          static_cast<char *>(target->data()) + rows.targetBegin,
          rows.count,
          rows.bytes,
          rows.sourceStride,
          rows.targetStride,
          addedAs,
          /*reserved=*/0};
      ASSERT_EQ(dyna_place_rows(&context, &place), DYNA_OK) << message;
      EXPECT_TRUE(areSame(download<T>(*target), wanted));
      EXPECT_TRUE(areSame(download<T>(*source), from));
    }
  }

private:
  template <typename T>
  static bool areSame(const std::vector<T> &a, const std::vector<T> &b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, PlaceConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

TEST_P(PlaceConformance, RowsReplaceWhatIsThere) {
  expectPlaced<Bf16>(DYNA_REPLACES);
  expectPlaced<float>(DYNA_REPLACES);
  expectPlaced<double>(DYNA_REPLACES);
}

TEST_P(PlaceConformance, ElementsAreAdded) {
  expectPlaced<Bf16>(DYNA_ELEMENT_BF16);
  expectPlaced<float>(DYNA_ELEMENT_F32);
  expectPlaced<double>(DYNA_ELEMENT_F64);
}

TEST_P(PlaceConformance, OnlyRowsArePlaced) {
  std::unique_ptr<Buffer> buffer = upload(std::vector<float>(64));
  char *data = static_cast<char *>(buffer->data());
  const dyna_place good = {data, data + 128,       2, 16, 16,
                           32,   DYNA_ELEMENT_F32, 0};
  EXPECT_EQ(dyna_place_rows(&context, &good), DYNA_OK) << message;
  EXPECT_EQ(dyna_place_rows(&context, nullptr), DYNA_INVALID_ARGUMENT);
  auto isRefused = [&](auto change) {
    dyna_place bad = good;
    change(bad);
    return dyna_place_rows(&context, &bad) == DYNA_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.rows = -1; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.row_bytes = -4; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.source = nullptr; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.target = nullptr; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.source_stride = 12; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.target_stride = 12; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.row_bytes = 14; }));
  EXPECT_TRUE(isRefused([](dyna_place &p) { p.added_as = DYNA_ELEMENT_I32; }));
}
