//===- ClipConformance.cpp - The end of a step ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

#include <cmath>
#include <limits>

using namespace dyna;

class ClipConformance : public DeviceFixture {};
INSTANTIATE_TEST_SUITE_P(Backends, ClipConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

namespace {
/// Where a backend is to read and write.
double *at(const Buffer &buffer, int64_t index) {
  return static_cast<double *>(buffer.data()) + index;
}
} // namespace

TEST_P(ClipConformance, LossesThatAreNotFiniteAreNoted) {
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

TEST_P(ClipConformance, NormsAreClipped) {
  const double inf = std::numeric_limits<double>::infinity();
  struct Case {
    std::vector<double> squares;
    double limit, norm, scale;
    int64_t skips, left; ///< that may still be passed over: before and after
  } cases[] = {
      {{9, 16}, 0, 5, 1, 3, 3},
      {{9, 16}, 5, 5, 1, 0, 0},
      {{9, 0, 16}, 2, 5, 0.4, 0, 0},
      {{}, 1, 0, 1, 0, 0},
      // Not from the back, and not in pairs: 1 + 2^53 is 2^53.
      {{1, 9007199254740992, -9007199254740992}, 0.5, 0, 1, 1, 1},
      {{1, inf}, 1, inf, std::nan(""), 3, 2},
      // Squares of its elements are infinite in f32, unless it is clipped.
      {{0.9e38}, 0, std::sqrt(0.9e38), 1, 1, 1},
      {{1.1e38}, 0, inf, std::nan(""), 1, 0},
      {{1e200}, 0, inf, std::nan(""), 0, -1},
      {{1e40}, 2e19, inf, std::nan(""), 1, 0},
      {{1e40}, 5e18, 1e20, 0.05, 1, 1},
      {{std::nan("")}, 1e30, std::nan(""), std::nan(""), 1, 0},
      {{std::nan(""), 4}, 0, std::nan(""), std::nan(""), 1, 0},
      {{std::nan(""), 4}, 0, std::nan(""), std::nan(""), 0, -1},
      // Behind one too many nothing is updated, whatever comes.
      {{9, 16}, 0, 5, std::nan(""), -1, -1},
      {{9, 16}, 2, 5, std::nan(""), -1, -1},
      {{inf}, 0, inf, std::nan(""), -1, -1},
  };
  for (const Case &test : cases) {
    std::vector<double> values = {-1, -1};
    values.insert(values.end(), test.squares.begin(), test.squares.end());
    std::unique_ptr<Buffer> buffer = upload(values);
    std::unique_ptr<Buffer> skips = upload(std::vector<int64_t>{test.skips});
    const dyna_clip clip = {
        at(*buffer, 2), static_cast<int64_t>(test.squares.size()),
        test.limit,     at(*buffer, 0),
        at(*buffer, 1), static_cast<int64_t *>(skips->data())};
    ASSERT_EQ(dyna_clip_norm(&context, &clip), DYNA_OK) << message;
    std::vector<double> got = download<double>(*buffer);
    const double wanted[] = {test.norm, test.scale};
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(got[i] == wanted[i] ||
                  (std::isnan(got[i]) && std::isnan(wanted[i])))
          << got[i] << " instead of " << wanted[i] << " of "
          << test.squares.size() << " with " << test.limit;
    EXPECT_EQ(download<int64_t>(*skips)[0], test.left);
  }
  EXPECT_EQ(dyna_clip_norm(&context, nullptr), DYNA_INVALID_ARGUMENT);
  std::unique_ptr<Buffer> two = upload(std::vector<double>{0, 0});
  const dyna_clip unlimited = {
      nullptr, 0, 0, at(*two, 0), at(*two, 1), /*skips_left=*/nullptr};
  EXPECT_EQ(dyna_clip_norm(&context, &unlimited), DYNA_INVALID_ARGUMENT);
}
