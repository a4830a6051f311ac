//===- KernelConformance.cpp - Small kernels --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

#include <cmath>
#include <limits>

using namespace dyna;

class KernelConformance : public DeviceFixture {};
INSTANTIATE_TEST_SUITE_P(Backends, KernelConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

TEST_P(KernelConformance, RowsOfTablesAreChecked) {
  std::vector<int32_t> ids(1000, 256);
  std::unique_ptr<Buffer> good = upload(ids);
  ids[700] = 257, ids[701] = -5;
  std::unique_ptr<Buffer> bad = upload(ids);
  auto check = [&](const Buffer &buffer, int64_t count, int64_t rows) {
    return dyna_check_ids(&context, static_cast<const int32_t *>(buffer.data()),
                          count, rows);
  };
  EXPECT_EQ(check(*good, 1000, 257), DYNA_OK) << message;
  EXPECT_EQ(check(*bad, 700, 257), DYNA_OK) << message;
  EXPECT_EQ(check(*bad, 1000, 257), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "token id 257 in row 700 of the micro-batch: the table "
                        "has 257 rows");
  EXPECT_EQ(check(*bad, 1000, 258), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "token id -5 in row 701 of the micro-batch: the table "
                        "has 258 rows");
  EXPECT_EQ(check(*good, 1000, 0), DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(check(*good, -1, 257), DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(dyna_check_ids(&context, nullptr, 1, 257), DYNA_INVALID_ARGUMENT);

  std::vector<int64_t> positions = {0, 63, int64_t(1) << 40};
  std::unique_ptr<Buffer> rows = upload(positions);
  auto *data = static_cast<const int64_t *>(rows->data());
  EXPECT_EQ(dyna_check_positions(&context, data, 2, 64), DYNA_OK) << message;
  EXPECT_EQ(dyna_check_positions(&context, data, 3, 64), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "position 1099511627776 in row 2 of the micro-batch: "
                        "the table has 64 rows");
}

//===----------------------------------------------------------------------===//
// Clipping
//===----------------------------------------------------------------------===//

namespace {
/// Where a backend is to read and write.
double *at(const Buffer &buffer, int64_t index) {
  return static_cast<double *>(buffer.data()) + index;
}
} // namespace

TEST_P(KernelConformance, LossesThatAreNotFiniteAreNoted) {
  const double inf = std::numeric_limits<double>::infinity();
  // The norm, then losses.
  for (double bad : {inf, -inf, std::nan("")})
    for (int64_t where : {1, 2, 99}) {
      std::vector<double> values(100, 0.5);
      values[static_cast<size_t>(where)] = bad;
      std::unique_ptr<Buffer> buffer = upload(values);
      ASSERT_EQ(
          dyna_note_losses(&context, at(*buffer, 1), where - 1, at(*buffer, 0)),
          DYNA_OK)
          << message;
      EXPECT_EQ(download<double>(*buffer)[0], 0.5) << "before " << where;
      ASSERT_EQ(
          dyna_note_losses(&context, at(*buffer, 1), where, at(*buffer, 0)),
          DYNA_OK);
      values[0] = download<double>(*buffer)[0];
      EXPECT_TRUE(std::isnan(values[0])) << where;
    }
  EXPECT_EQ(dyna_note_losses(&context, nullptr, -1, nullptr),
            DYNA_INVALID_ARGUMENT);
}

TEST_P(KernelConformance, NormsAreClipped) {
  const double inf = std::numeric_limits<double>::infinity();
  struct Case {
    std::vector<double> squares;
    double limit, norm, scale;
  } cases[] = {
      {{9, 16}, 0, 5, 1},
      {{9, 16}, 5, 5, 1},
      {{9, 0, 16}, 2, 5, 0.4},
      {{}, 1, 0, 1},
      // Not from the back, and not in pairs: 1 + 2^53 is 2^53.
      {{1, 9007199254740992, -9007199254740992}, 0.5, 0, 1},
      {{1, inf}, 1, inf, std::nan("")},
      {{std::nan(""), 4}, 0, std::nan(""), std::nan("")},
  };
  for (const Case &test : cases) {
    std::vector<double> values = {-1, -1};
    values.insert(values.end(), test.squares.begin(), test.squares.end());
    std::unique_ptr<Buffer> buffer = upload(values);
    const dyna_clip clip = {at(*buffer, 2),
                            static_cast<int64_t>(test.squares.size()),
                            test.limit, at(*buffer, 0), at(*buffer, 1)};
    ASSERT_EQ(dyna_clip_norm(&context, &clip), DYNA_OK) << message;
    std::vector<double> got = download<double>(*buffer);
    const double wanted[] = {test.norm, test.scale};
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(got[i] == wanted[i] ||
                  (std::isnan(got[i]) && std::isnan(wanted[i])))
          << got[i] << " instead of " << wanted[i] << " of "
          << test.squares.size() << " with " << test.limit;
  }
  EXPECT_EQ(dyna_clip_norm(&context, nullptr), DYNA_INVALID_ARGUMENT);
}
