//===- SparseMatmulTest.cpp - Products as layer functions call them -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// SparseTest compares kernels with dense loops. Here the functions of the kernel table
// are compared with those kernels: where survivors lie in the dense weight, epilogues,
// types, and what is refused.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/SparseIndex.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/sparse/Sparse.h"
#include "test/runtime/device/Naive.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace dyna;

namespace {

constexpr int64_t kRows = 150, kColumns = 270, kTokens = 37;
constexpr int64_t kStride = kColumns + 6; ///< of the dense weight

template <typename T> struct Functions;
template <> struct Functions<float> {
  using Sum = float;
  static constexpr auto matmul = dyna_sparse_matmul_f32;
  static constexpr auto product = host::sparseProductF32;
  static constexpr auto gradient = host::sparseGradientF32;
};
template <> struct Functions<double> {
  using Sum = double;
  static constexpr auto matmul = dyna_sparse_matmul_f64;
  static constexpr auto product = host::sparseProductF64;
  static constexpr auto gradient = host::sparseGradientF64;
};
template <> struct Functions<naive::Bf16> {
  using Sum = float;
  static constexpr auto matmul = dyna_sparse_matmul_bf16;
  static constexpr auto product = host::sparseProductBf16;
  static constexpr auto gradient = host::sparseGradientBf16;
};

struct Host {
  std::unique_ptr<HostDevice> device;
  dyna_context context = {};
  char message[256] = "";

  Host() {
    device = std::move(*HostDevice::create(2));
    context.message = message;
    context.message_capacity = sizeof(message);
    device->bind(context);
  }
};

/// A weight of which a tenth survives, in rows with room behind them.
template <typename T> struct Weight {
  std::vector<uint8_t> mask;
  std::vector<T> dense, values, x, dy;
  SparseIndex index;
  dyna_sparse_form form;

  explicit Weight(Host &host, unsigned seed = 1)
      : mask(makeMask(seed)),
        index(std::move(*SparseIndex::build(kRows, kColumns, mask.data()))) {
    std::mt19937 random(seed);
    dense = naive::randomElements<T>(kRows * kStride, random);
    x = naive::randomElements<T>(kTokens * kColumns, random);
    dy = naive::randomElements<T>(kTokens * kRows, random);
    values.resize(static_cast<size_t>(index.survivors()));
    form = {index.view(), values.data()};
    const dyna_sparse_values take = {&form, dense.data(), kStride, sizeof(T)};
    EXPECT_EQ(dyna_take_sparse_values(&host.context, &take), DYNA_OK);
  }
  static std::vector<uint8_t> makeMask(unsigned seed) {
    std::mt19937 random(seed);
    std::bernoulli_distribution survives(0.1);
    std::vector<uint8_t> mask(kRows * kColumns);
    for (uint8_t &byte : mask)
      byte = survives(random);
    return mask;
  }
  dyna_sparse_matmul forward(T *y, int64_t ldy) const {
    dyna_sparse_matmul p = {};
    p.form = &form;
    p.product = {kTokens, kRows,   kColumns, x.data(), kColumns, nullptr,
                 kStride, y,       ldy,      0,        1,        0,
                 0,       nullptr, nullptr,  0,        0};
    p.product.b = dense.data();
    return p;
  }
  dyna_sparse_matmul backward(T *dx, int64_t lddx) const {
    dyna_sparse_matmul p = forward(dx, lddx);
    p.product.n = kColumns;
    p.product.k = kRows;
    p.product.a = dy.data();
    p.product.lda = kRows;
    p.product.transpose_b = 0;
    return p;
  }
  dyna_sparse_matmul gradient(void *dw) const {
    dyna_sparse_matmul p = {};
    p.form = &form;
    p.product.m = kRows;
    p.product.n = kColumns;
    p.product.k = kTokens;
    p.product.a = dy.data();
    p.product.lda = kRows;
    p.product.b = x.data();
    p.product.ldb = kColumns;
    p.product.c = dw;
    p.product.ldc = kStride;
    p.product.transpose_a = 1;
    return p;
  }
};

template <typename T>
bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <typename T> void checkProducts() {
  Host host;
  const Weight<T> w(host);
  std::vector<T> gathered(w.values.size());
  gatherValues(w.index, kColumns, w.dense.data(), kStride, gathered.data());
  EXPECT_TRUE(same(gathered, w.values));
  std::mt19937 random(2);
  for (const bool byColumn : {false, true})
    for (const bool accumulate : {false, true}) {
      const int64_t width = byColumn ? kColumns : kRows;
      const auto before = naive::randomElements<T>(kTokens * width, random);
      std::vector<T> expected = before, got = before;
      const dyna_sparse_product kernel = {&w.form.weight,
                                          w.values.data(),
                                          kTokens,
                                          byColumn ? w.dy.data() : w.x.data(),
                                          byColumn ? kRows : kColumns,
                                          expected.data(),
                                          width,
                                          byColumn,
                                          accumulate};
      ASSERT_EQ(Functions<T>::product(&host.context, &kernel), DYNA_OK);
      dyna_sparse_matmul p = byColumn ? w.backward(got.data(), width)
                                      : w.forward(got.data(), width);
      p.product.accumulate = accumulate;
      host.context.matrix_flops = 0;
      ASSERT_EQ(Functions<T>::matmul(&host.context, &p), DYNA_OK)
          << host.message;
      EXPECT_EQ(host.context.matrix_flops, 2 * kTokens * w.index.survivors());
      EXPECT_TRUE(same(got, expected)) << byColumn << accumulate;
    }
}

/// Stored: the type of the gradient.
template <typename T, typename Stored>
void checkGradient(dyna_sparse_matmul_function matmul) {
  using Sum = typename Functions<T>::Sum;
  Host host;
  const Weight<T> w(host);
  std::vector<Sum> sums(w.values.size());
  const dyna_sparse_gradient kernel = {&w.form.weight, sums.data(), kTokens,
                                       w.x.data(),     kColumns,    w.dy.data(),
                                       kRows,          0,           0};
  ASSERT_EQ(Functions<T>::gradient(&host.context, &kernel), DYNA_OK);
  std::mt19937 random(3);
  for (const bool accumulate : {false, true}) {
    const auto before = naive::randomElements<Stored>(kRows * kStride, random);
    std::vector<Stored> expected = before, got = before;
    for (int64_t row = 0; row < kRows && !accumulate; ++row)
      for (int64_t column = 0; column < kColumns; ++column)
        naive::fromDouble(
            0, expected[static_cast<size_t>(row * kStride + column)]);
    size_t at = 0;
    for (int64_t position : w.index.positions()) {
      Stored &to = expected[static_cast<size_t>(position / kColumns * kStride +
                                                position % kColumns)];
      const Sum old = static_cast<Sum>(naive::toDouble(to));
      naive::fromDouble(static_cast<double>(old + sums[at++]), to);
    }
    dyna_sparse_matmul p = w.gradient(got.data());
    p.product.accumulate = accumulate;
    ASSERT_EQ(matmul(&host.context, &p), DYNA_OK) << host.message;
    EXPECT_TRUE(same(got, expected)) << accumulate;
  }
}

} // namespace

TEST(SparseMatmul, ProductsAreThoseOfTheKernels) {
  checkProducts<float>();
  checkProducts<double>();
  checkProducts<naive::Bf16>();
}

TEST(SparseMatmul, GradientsLieAtSurvivorsOfTheDenseWeight) {
  checkGradient<float, float>(dyna_sparse_matmul_f32);
  checkGradient<double, double>(dyna_sparse_matmul_f64);
  checkGradient<naive::Bf16, naive::Bf16>(dyna_sparse_matmul_bf16);
  checkGradient<naive::Bf16, float>(dyna_sparse_matmul_bf16_f32);
}

TEST(SparseMatmul, EpilogueSeesEveryRowOnceBehindTheProduct) {
  Host host;
  const Weight<float> w(host);
  std::vector<float> y(kTokens * kRows, NAN), plain = y;
  dyna_sparse_matmul p = w.forward(plain.data(), kRows);
  ASSERT_EQ(dyna_sparse_matmul_f32(&host.context, &p), DYNA_OK);
  p.product.c = y.data();
  float *rows = y.data();
  p.product.epilogue = [](const void *args, int64_t begin, int64_t end,
                          int64_t) {
    float *y = *static_cast<float *const *>(args);
    for (int64_t i = begin * kRows; i < end * kRows; ++i)
      y[i] += 1;
  };
  p.product.epilogue_args = &rows;
  p.product.epilogue_args_bytes = sizeof(rows);
  p.product.epilogue_min_rows = 1;
  ASSERT_EQ(dyna_sparse_matmul_f32(&host.context, &p), DYNA_OK);
  for (float &element : plain)
    element += 1;
  EXPECT_TRUE(same(y, plain));
}

TEST(SparseMatmul, WhatDoesNotFitIsRefused) {
  Host host;
  const Weight<float> w(host);
  std::vector<float> y(kTokens * kRows), dw(kRows * kStride);
  auto refused = [&](dyna_sparse_matmul p, auto change) {
    change(p);
    EXPECT_EQ(dyna_sparse_matmul_f32(&host.context, &p), DYNA_INVALID_ARGUMENT);
    return std::string(host.message);
  };
  const dyna_sparse_matmul forward = w.forward(y.data(), kRows);
  EXPECT_EQ(refused(forward, [](auto &p) { p.form = nullptr; }),
            "sparse_matmul_f32 without a description, or without a form");
  EXPECT_EQ(refused(forward, [](auto &p) { p.product.n = kRows - 1; }),
            "sparse_matmul_f32 with a weight of 149 x 270 and a form of 150 x "
            "270");
  EXPECT_EQ(refused(forward, [](auto &p) { p.product.transpose_b = 0; }),
            "sparse_matmul_f32 with a weight of 270 x 150 and a form of 150 x "
            "270");
  refused(forward, [](auto &p) { p.product.lda = 1; });
  refused(forward, [](auto &p) { p.product.described = 1; });
  const dyna_sparse_matmul gradient = w.gradient(dw.data());
  refused(gradient, [](auto &p) { p.product.m = kRows + 1; });
  refused(gradient, [](auto &p) { p.product.transpose_b = 1; });
  // f32 activations of bf16 operands do not exist.
  const Weight<naive::Bf16> narrow(host);
  std::vector<naive::Bf16> z(kTokens * kRows);
  const dyna_sparse_matmul wide = narrow.forward(z.data(), kRows);
  EXPECT_EQ(dyna_sparse_matmul_bf16_f32(&host.context, &wide),
            DYNA_INVALID_ARGUMENT);
  dyna_sparse_values take = {&w.form, w.dense.data(), kColumns - 1, 4};
  EXPECT_EQ(dyna_take_sparse_values(&host.context, &take),
            DYNA_INVALID_ARGUMENT);
  take = {&w.form, w.dense.data(), kStride, 3};
  EXPECT_EQ(dyna_take_sparse_values(&host.context, &take),
            DYNA_INVALID_ARGUMENT);
}
