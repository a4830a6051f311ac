//===- ReductionTest.cpp - Bits of sums and maxima --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/wire/Reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace dyna;

namespace {

uint16_t toBf16(double value) {
  // By search: the nearest, and of two equally near the even one.
  float narrow = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &narrow, 4);
  auto wide = [](uint32_t high) {
    uint32_t all = high << 16;
    float result;
    memcpy(&result, &all, 4);
    return static_cast<double>(result);
  };
  uint32_t down = bits >> 16, up = down + 1;
  double below = std::fabs(value - wide(down)),
         above = std::fabs(wide(up) - value);
  if (below != above)
    return static_cast<uint16_t>(below < above ? down : up);
  return static_cast<uint16_t>(down % 2 ? up : down);
}

float fromBf16(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}

template <typename T>
std::vector<T> reduce(int32_t element, int32_t reduction,
                      const std::vector<std::vector<T>> &sources) {
  std::vector<const void *> in;
  for (const std::vector<T> &source : sources)
    in.push_back(source.data());
  std::vector<T> out(sources[0].size());
  void *targets[] = {out.data()};
  reduceElements(element, reduction, in.data(), static_cast<int>(in.size()),
                 targets, 1, static_cast<int64_t>(out.size()));
  return out;
}

} // namespace

TEST(Reduction, Bf16IsSummedInF32AndRoundedOnce) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<std::vector<uint16_t>> sources(5);
  for (int i = 0; i < 1000; ++i)
    for (auto &source : sources)
      source.push_back(toBf16(std::ldexp(uniform(random), random() % 8)));
  std::vector<uint16_t> out =
      reduce(DYNA_ELEMENT_BF16, DYNA_REDUCE_SUM, sources);
  int roundedTwice = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    uint16_t rounded = sources[0][i];
    for (size_t s = 0; s < sources.size(); ++s) {
      sum += fromBf16(sources[s][i]);
      if (s > 0)
        rounded = toBf16(fromBf16(rounded) + fromBf16(sources[s][i]));
    }
    EXPECT_EQ(out[i], toBf16(sum)) << i;
    roundedTwice += rounded != toBf16(sum);
  }
  EXPECT_GT(roundedTwice, 0) << "the inputs must tell the two apart";
}

TEST(Reduction, Bf16RoundsTiesToEven) {
  // 256 + 1 and 258 + 1 lie half-way between neighbours 2 apart.
  std::vector<std::vector<uint16_t>> sources = {{toBf16(256), toBf16(258)},
                                                {toBf16(1), toBf16(1)}};
  std::vector<uint16_t> out =
      reduce(DYNA_ELEMENT_BF16, DYNA_REDUCE_SUM, sources);
  EXPECT_EQ(fromBf16(out[0]), 256);
  EXPECT_EQ(fromBf16(out[1]), 260);
}

TEST(Reduction, NotANumberAndInfinityStay) {
  const float inf = std::numeric_limits<float>::infinity();
  for (int32_t reduction : {DYNA_REDUCE_SUM, DYNA_REDUCE_MAX})
    for (bool isFirst : {false, true}) {
      std::vector<float> strange = {NAN, inf}, plain = {1, 1};
      auto out = reduce<float>(
          DYNA_ELEMENT_F32, reduction,
          {isFirst ? strange : plain, isFirst ? plain : strange, plain});
      EXPECT_TRUE(std::isnan(out[0]));
      EXPECT_EQ(out[1], inf);
      // The one with all its mantissa bits set would round to an infinity.
      auto narrow = reduce<uint16_t>(DYNA_ELEMENT_BF16, reduction,
                                     {{0x7fff, 0x7f80}, {0x3f80, 0x3f80}});
      EXPECT_TRUE(std::isnan(fromBf16(narrow[0])));
      EXPECT_EQ(fromBf16(narrow[1]), inf);
    }
}

TEST(Reduction, IntegersWrapAround) {
  auto out = reduce<int32_t>(DYNA_ELEMENT_I32, DYNA_REDUCE_SUM,
                             {{INT32_MAX, -5}, {1, 3}});
  EXPECT_EQ(out[0], INT32_MIN);
  EXPECT_EQ(out[1], -2);
}

TEST(Reduction, AllTargetsGetTheResultAndNothingElseIsTouched) {
  for (int64_t n : {0, 1, 63, 64, 65, 1000}) {
    std::vector<double> a(size_t(n) + 1, 2), b(size_t(n) + 1, 3), c = b;
    const void *sources[] = {a.data(), b.data()};
    void *targets[] = {a.data(), c.data()}; // one is a source
    reduceElements(DYNA_ELEMENT_F64, DYNA_REDUCE_SUM, sources, 2, targets, 2,
                   n);
    std::vector<double> expected(size_t(n), 5);
    expected.push_back(2);
    EXPECT_EQ(a, expected);
    expected.back() = 3;
    EXPECT_EQ(c, expected);
  }
}
