//===- SparseTest.cpp - Products with sparse weights ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels of all instruction sets that this processor has, against loops over a dense
// weight in f64.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/sparse/Sparse.h"
#include "runtime/device/SparseIndex.h"
#include "runtime/device/host/HostDevice.h"
#include "test/runtime/device/Naive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace dyna;

namespace {

template <typename T> struct Functions;
template <> struct Functions<float> {
  using Sum = float;
  static constexpr double tolerance = 1e-6, rounding = 0;
  static constexpr auto product = host::sparseProductF32;
  static constexpr auto gradient = host::sparseGradientF32;
};
template <> struct Functions<double> {
  using Sum = double;
  static constexpr double tolerance = 1e-15, rounding = 0;
  static constexpr auto product = host::sparseProductF64;
  static constexpr auto gradient = host::sparseGradientF64;
};
template <> struct Functions<naive::Bf16> {
  using Sum = float;
  /// Half of a last place of bf16, of the result itself.
  static constexpr double tolerance = 1e-6, rounding = 1.0 / 256;
  static constexpr auto product = host::sparseProductBf16;
  static constexpr auto gradient = host::sparseGradientBf16;
};

struct Shape {
  int64_t rows, columns, tokens;
  double sparsity;
};

/// A weight and activations, in rows with room behind them that is no number.
template <typename T> struct Case {
  using Sum = typename Functions<T>::Sum;
  Shape shape;
  std::vector<uint8_t> mask;
  std::vector<T> weight, values, x, dy;
  int64_t ldx, ldy;
  SparseIndex index;
  dyna_sparse_weight view;

  static std::vector<uint8_t> makeMask(const Shape &s, std::mt19937 &random) {
    std::bernoulli_distribution survives(1 - s.sparsity);
    std::vector<uint8_t> mask(static_cast<size_t>(s.rows * s.columns));
    for (uint8_t &byte : mask)
      byte = survives(random);
    // One row is empty, another one is full.
    if (s.rows > 2 && s.sparsity > 0 && s.sparsity < 1)
      for (int64_t c = 0; c < s.columns; ++c) {
        mask[static_cast<size_t>(c)] = 0;
        mask[static_cast<size_t>(2 * s.columns + c)] = 1;
      }
    return mask;
  }
  static std::vector<T> padded(int64_t rows, int64_t columns, int64_t stride,
                               std::mt19937 &random) {
    auto result = naive::randomElements<T>(rows * stride, random);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = columns; c < stride; ++c)
        naive::fromDouble(NAN, result[static_cast<size_t>(r * stride + c)]);
    return result;
  }

  Case(const Shape &s, std::mt19937 &random)
      : shape(s), mask(makeMask(s, random)),
        weight(naive::randomElements<T>(s.rows * s.columns, random)),
        ldx(s.columns + 5), ldy(s.rows + 3),
        index(std::move(*SparseIndex::build(s.rows, s.columns, mask.data()))),
        view(index.view()) {
    x = padded(s.tokens, s.columns, ldx, random);
    dy = padded(s.tokens, s.rows, ldy, random);
    values.resize(static_cast<size_t>(index.survivors()));
    gatherValues(index, s.columns, weight.data(), s.columns, values.data());
  }
  double weightAt(int64_t row, int64_t column) const {
    const auto at = static_cast<size_t>(row * shape.columns + column);
    return mask[at] ? naive::toDouble(weight[at]) : 0;
  }
  double xAt(int64_t token, int64_t column) const {
    return naive::toDouble(x[static_cast<size_t>(token * ldx + column)]);
  }
  double dyAt(int64_t token, int64_t row) const {
    return naive::toDouble(dy[static_cast<size_t>(token * ldy + row)]);
  }
};

struct Host {
  std::unique_ptr<HostDevice> device;
  dyna_context context = {};
  char message[256] = "";

  explicit Host(int threads, HostIsa isa = HostIsa::Best) {
    HostOptions options;
    options.threads = threads;
    options.isa = isa;
    auto made = HostDevice::create(options);
    if (!made.isOk())
      return;
    device = std::move(*made);
    context.message = message;
    context.message_capacity = sizeof(message);
    device->bind(context);
  }
};

/// A result and its expectation: the sum, and the sum of magnitudes, which roundings are
/// measured by.
struct Expected {
  double sum = 0, magnitude = 0;
  void add(double a, double b) {
    sum += a * b;
    magnitude += std::fabs(a * b);
  }
};

template <typename T>
void expectNear(double got, const Expected &expected, double rounding,
                const char *what, int64_t row, int64_t column) {
  EXPECT_LE(std::fabs(got - expected.sum),
            Functions<T>::tolerance * expected.magnitude +
                rounding * std::fabs(expected.sum) + 1e-30)
      << what << " [" << row << ", " << column << "]: " << got << " instead of "
      << expected.sum;
}

/// Y = X W^T or dX = dY W, in a matrix whose other elements stay as they are.
template <typename T>
std::vector<T> multiply(Host &host, const Case<T> &c, bool byColumn,
                        bool accumulate, const std::vector<T> &before,
                        int64_t stride) {
  std::vector<T> y = before;
  const dyna_sparse_product p = {&c.view,
                                 c.values.data(),
                                 c.shape.tokens,
                                 byColumn ? c.dy.data() : c.x.data(),
                                 byColumn ? c.ldy : c.ldx,
                                 y.data(),
                                 stride,
                                 byColumn,
                                 accumulate};
  EXPECT_EQ(Functions<T>::product(&host.context, &p), DYNA_OK) << host.message;
  return y;
}

template <typename T>
void checkProduct(Host &host, const Case<T> &c, bool byColumn, bool accumulate,
                  std::mt19937 &random) {
  const int64_t width = byColumn ? c.shape.columns : c.shape.rows;
  const int64_t depth = byColumn ? c.shape.rows : c.shape.columns;
  const int64_t stride = width + 2;
  auto before = naive::randomElements<T>(c.shape.tokens * stride, random);
  if (!accumulate)
    for (T &element : before)
      naive::fromDouble(NAN, element);
  const std::vector<T> y =
      multiply(host, c, byColumn, accumulate, before, stride);
  for (int64_t t = 0; t < c.shape.tokens; ++t)
    for (int64_t i = 0; i < stride; ++i) {
      const auto at = static_cast<size_t>(t * stride + i);
      if (i >= width) {
        EXPECT_EQ(std::memcmp(&y[at], &before[at], sizeof(T)), 0);
        continue;
      }
      Expected expected;
      if (accumulate)
        expected.add(naive::toDouble(before[at]), 1);
      for (int64_t j = 0; j < depth; ++j)
        expected.add(byColumn ? c.dyAt(t, j) : c.xAt(t, j),
                     byColumn ? c.weightAt(j, i) : c.weightAt(i, j));
      expectNear<T>(naive::toDouble(y[at]), expected, Functions<T>::rounding,
                    byColumn ? "dx" : "y", t, i);
    }
}

template <typename T>
std::vector<typename Case<T>::Sum>
gradientOf(Host &host, const Case<T> &c, bool accumulate,
           const std::vector<typename Case<T>::Sum> &before) {
  auto gradient = before;
  const dyna_sparse_gradient p = {&c.view,    gradient.data(), c.shape.tokens,
                                  c.x.data(), c.ldx,           c.dy.data(),
                                  c.ldy,      accumulate,      0};
  EXPECT_EQ(Functions<T>::gradient(&host.context, &p), DYNA_OK) << host.message;
  return gradient;
}

template <typename T>
void checkGradient(Host &host, const Case<T> &c, bool accumulate,
                   std::mt19937 &random) {
  using Sum = typename Case<T>::Sum;
  auto before = naive::randomElements<Sum>(c.index.survivors(), random);
  if (!accumulate)
    std::fill(before.begin(), before.end(), Sum(NAN));
  const std::vector<Sum> gradient = gradientOf(host, c, accumulate, before);
  size_t at = 0;
  for (int64_t position : c.index.positions()) {
    const int64_t row = position / c.shape.columns;
    const int64_t column = position % c.shape.columns;
    Expected expected;
    if (accumulate)
      expected.add(static_cast<double>(before[at]), 1);
    for (int64_t t = 0; t < c.shape.tokens; ++t)
      expected.add(c.dyAt(t, row), c.xAt(t, column));
    expectNear<T>(static_cast<double>(gradient[at++]), expected, 0, "dw", row,
                  column);
  }
}

template <typename T> void checkAll(HostIsa isa, const char *name) {
  Host host(2, isa);
  if (!host.device)
    return;
  std::mt19937 random(3);
  // Tiles have 128 lines, panels 16 to 64 tokens.
  const Shape shapes[] = {{1, 1, 1, 0},          {1, 1, 3, 1},
                          {5, 300, 7, 0.5},      {300, 5, 17, 0.5},
                          {128, 128, 64, 0},     {128, 256, 128, 0.9},
                          {131, 259, 33, 0.8},   {140, 150, 81, 0.95},
                          {200, 129, 131, 0.99}, {130, 130, 40, 1}};
  for (const Shape &s : shapes) {
    SCOPED_TRACE(testing::Message()
                 << name << ": " << s.rows << " x " << s.columns << ", "
                 << s.tokens << " tokens, sparsity " << s.sparsity);
    const Case<T> c(s, random);
    for (bool accumulate : {false, true}) {
      checkProduct(host, c, false, accumulate, random);
      checkProduct(host, c, true, accumulate, random);
      checkGradient(host, c, accumulate, random);
    }
    if (testing::Test::HasFailure())
      return;
  }
}

template <typename T> void checkIsas() {
  checkAll<T>(HostIsa::Baseline, "baseline");
  checkAll<T>(HostIsa::Avx2, "avx2");
  checkAll<T>(HostIsa::Avx512, "avx512");
}

} // namespace

TEST(Sparse, F32AgreesWithDenseLoops) { checkIsas<float>(); }
TEST(Sparse, F64AgreesWithDenseLoops) { checkIsas<double>(); }
TEST(Sparse, Bf16AgreesWithDenseLoops) { checkIsas<naive::Bf16>(); }

// Few panels and many tiles, so that tasks are cut in other ways for each team.
TEST(Sparse, ThreadsChangeNoBit) {
  std::mt19937 random(4);
  const Case<float> c({1100, 700, 130, 0.9}, random);
  Host one(1);
  const std::vector<float> y(130 * 1100), dx(130 * 700), dw(c.values.size());
  const auto expectedY = multiply(one, c, false, false, y, 1100);
  const auto expectedDx = multiply(one, c, true, false, dx, 700);
  const auto expectedDw = gradientOf(one, c, false, dw);
  for (int threads : {2, 3, 5, 16}) {
    Host many(threads);
    EXPECT_TRUE(multiply(many, c, false, false, y, 1100) == expectedY);
    EXPECT_TRUE(multiply(many, c, true, false, dx, 700) == expectedDx);
    EXPECT_TRUE(gradientOf(many, c, false, dw) == expectedDw);
  }
}

// What a survivor contributes does not depend on which others there are.
TEST(Sparse, FlopsAreThoseOfSurvivors) {
  std::mt19937 random(5);
  const Case<float> c({200, 300, 10, 0.9}, random);
  Host host(1);
  multiply(host, c, false, false, std::vector<float>(10 * 200), 200);
  EXPECT_EQ(host.context.matrix_flops, 2 * 10 * c.index.survivors());
  gradientOf(host, c, false, c.values);
  EXPECT_EQ(host.context.matrix_flops, 4 * 10 * c.index.survivors());
}

TEST(Sparse, NoTokensClearTheGradient) {
  std::mt19937 random(6);
  Case<float> c({20, 30, 1, 0.5}, random);
  c.shape.tokens = 0;
  Host host(2);
  multiply(host, c, false, false, std::vector<float>(1), 20);
  EXPECT_EQ(gradientOf(host, c, true, c.values), c.values);
  EXPECT_EQ(gradientOf(host, c, false, c.values),
            std::vector<float>(c.values.size()));
}

TEST(Sparse, WhatKernelsCannotWorkWithIsRefused) {
  std::mt19937 random(7);
  const Case<float> c({20, 30, 4, 0.5}, random);
  Host host(1);
  std::vector<float> y(4 * 30);
  const dyna_sparse_product good = {
      &c.view, c.values.data(), 4, c.x.data(), c.ldx, y.data(), 20, 0, 0};
  auto refused = [&](auto change) {
    dyna_sparse_product p = good;
    change(p);
    EXPECT_EQ(host::sparseProductF32(&host.context, &p), DYNA_INVALID_ARGUMENT);
    return std::string(host.message);
  };
  EXPECT_EQ(host::sparseProductF32(&host.context, nullptr),
            DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(host::sparseGradientF32(&host.context, nullptr),
            DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto &p) { p.weight = nullptr; }),
            "sparse_product_f32 without a weight");
  EXPECT_EQ(refused([](auto &p) { p.ldx = 29; }),
            "sparse_product_f32 of 4 tokens, with x in rows 29 elements apart: "
            "expected a matrix with rows of at least 30");
  refused([](auto &p) { p.ldy = 19; });
  refused([](auto &p) { p.tokens = -1; });
  refused([](auto &p) { p.y = nullptr; });
  refused([](auto &p) { p.values = nullptr; });
  // By columns, x has the width of y.
  refused([](auto &p) { p.by_column = 1; });
  dyna_sparse_weight noPlaces = c.view;
  noPlaces.by_column.places = nullptr;
  refused([&](auto &p) { p.weight = &noPlaces; });
  dyna_sparse_gradient gradient = {&c.view,     y.data(), 4, c.x.data(), c.ldx,
                                   c.dy.data(), 19,       0, 0};
  EXPECT_EQ(host::sparseGradientF32(&host.context, &gradient),
            DYNA_INVALID_ARGUMENT);
}
