//===- KernelConformance.cpp - Checks of tables -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

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
