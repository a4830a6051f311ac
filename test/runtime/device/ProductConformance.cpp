//===- ProductConformance.cpp - Matrix products -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

using namespace dyna;

namespace {

struct Sizes {
  int64_t m, n, k;
};

const Sizes kSizes[] = {{1, 1, 1},      {5, 7, 0},      {0, 4, 3},
                        {4, 0, 3},      {33, 65, 17},   {257, 48, 96},
                        {70, 513, 33},  {130, 300, 70}, {31, 40, 2500},
                        {1100, 64, 48}, {523, 80, 112}, {400, 390, 40}};

} // namespace

class ProductConformance : public DeviceFixture {
protected:
  /// Runs one product, with flags 8 of padded rows, in which nothing may change.
  template <typename AB, typename C>
  void check(dyna_matmul_function function, Sizes sizes, int flags) {
    SCOPED_TRACE(testing::Message() << "m=" << sizes.m << " n=" << sizes.n
                                    << " k=" << sizes.k << " flags " << flags);
    std::mt19937 random(static_cast<uint32_t>(sizes.m * 31 + sizes.k + flags));
    dyna_matmul p = {};
    p.m = sizes.m, p.n = sizes.n, p.k = sizes.k;
    p.transpose_a = flags & 1, p.transpose_b = (flags >> 1) & 1;
    p.accumulate = (flags >> 2) & 1;
    int64_t pad = flags & 8 ? 3 : 0;
    p.lda = (p.transpose_a ? p.m : p.k) + pad;
    p.ldb = (p.transpose_b ? p.k : p.n) + pad;
    p.ldc = p.n + pad;
    auto a =
        naive::randomElements<AB>(p.lda * (p.transpose_a ? p.k : p.m), random);
    auto b =
        naive::randomElements<AB>(p.ldb * (p.transpose_b ? p.n : p.k), random);
    auto c = naive::randomElements<C>(p.ldc * p.m, random);
    Matrix expected = naive::toDoubles(c);
    naive::matmul(p, naive::toDoubles(a), naive::toDoubles(b), expected);

    auto deviceA = upload(a), deviceB = upload(b), deviceC = upload(c);
    p.a = deviceA->data(), p.b = deviceB->data(), p.c = deviceC->data();
    context.matrix_flops = 1;
    ASSERT_EQ(function(&context, &p), DYNA_OK) << message;
    EXPECT_EQ(context.matrix_flops, 1 + 2 * p.m * p.n * p.k);
    // Sums of f32 are near enough for one rounding to bf16.
    double bound = sizeof(C) == 4 ? tolerance<float>() : tolerance<C>();
    expectNear(download<C>(*deviceC), expected, bound, "c");
  }

  template <typename AB, typename C> void checkAll(dyna_matmul_function run) {
    for (Sizes sizes : kSizes)
      for (int flags = 0; flags < 16 && !HasFatalFailure(); ++flags)
        check<AB, C>(run, sizes, flags);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, ProductConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

TEST_P(ProductConformance, MatmulF32) {
  checkAll<float, float>(dyna_matmul_f32);
}
TEST_P(ProductConformance, MatmulBf16) {
  checkAll<Bf16, Bf16>(dyna_matmul_bf16);
}
TEST_P(ProductConformance, MatmulBf16F32) {
  checkAll<Bf16, float>(dyna_matmul_bf16_f32);
}
TEST_P(ProductConformance, MatmulF64) {
  if (GetParam().matmulF64 != dyna_matmul_f64)
    GTEST_SKIP() << "the f64 product is generated code here";
  checkAll<double, double>(dyna_matmul_f64);
}

TEST_P(ProductConformance, ProductsAreWorkOfTheirStream) {
  // c = a b; a is overwritten after; c += a b; then copied: 1 + 1000.
  std::unique_ptr<Buffer> a = upload<float>({1}), b = upload<float>({1});
  std::unique_ptr<Buffer> c = upload<float>({-5}), copied = upload<float>({-5});
  dyna_matmul product = {};
  product.m = product.n = product.k = 1;
  product.lda = product.ldb = product.ldc = 1;
  product.a = a->data(), product.b = b->data(), product.c = c->data();
  float thousand = 1000;
  ASSERT_EQ(dyna_matmul_f32(&context, &product), DYNA_OK) << message;
  ASSERT_TRUE(device->copyToDevice(*stream, *a, 0, &thousand, 4).isOk());
  product.accumulate = 1;
  ASSERT_EQ(dyna_matmul_f32(&context, &product), DYNA_OK) << message;
  ASSERT_TRUE(device->copy(*stream, *copied, 0, *c, 0, 4).isOk());
  ASSERT_TRUE(device->fill(*stream, *c, 0, 4, 0).isOk());
  EXPECT_EQ(download<float>(*copied)[0], 1001);
  EXPECT_EQ(download<float>(*c)[0], 0);
}

/// Products add 3.5 and 3.375 to 256, beside which bf16 has nothing smaller
/// than 2: added in parts, as the deep one might be, they would be lost, and
/// cut off they would be 2.
TEST_P(ProductConformance, MatmulBf16RoundsWhatItAddsOnce) {
  constexpr int64_t m = 70, n = 48;
  struct {
    int64_t k;
    double b;
  } depths[] = {{448, 1.0 / 128}, {9 * 512, 3.0 / 4096}};
  for (auto [k, factor] : depths) {
    SCOPED_TRACE(k);
    auto a = upload(filled<Bf16>(k * m, 1));
    auto b = upload(filled<Bf16>(k * n, factor));
    auto c = upload(filled<Bf16>(m * n, 256));
    dyna_matmul product = {};
    product.m = m, product.n = n, product.k = k;
    product.a = a->data(), product.lda = m, product.transpose_a = 1;
    product.b = b->data(), product.ldb = n;
    product.c = c->data(), product.ldc = n, product.accumulate = 1;
    ASSERT_EQ(dyna_matmul_bf16(&context, &product), DYNA_OK) << message;
    for (double sum : naive::toDoubles(download<Bf16>(*c)))
      ASSERT_EQ(sum, 260);
  }
}

TEST_P(ProductConformance, MatmulRefusesBadArguments) {
  dyna_matmul product = {};
  product.m = -1;
  EXPECT_EQ(dyna_matmul_f32(&context, &product), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("m=-1"), std::string::npos) << message;
  EXPECT_EQ(dyna_matmul_bf16(&context, nullptr), DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(dyna_matmul_f32(nullptr, &product), DYNA_INVALID_ARGUMENT);
  product.m = product.n = product.k = 4;
  product.lda = product.ldb = 4, product.ldc = 3;
  EXPECT_EQ(dyna_matmul_bf16_f32(&context, &product), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("leading"), std::string::npos) << message;
  product.ldc = 4;
  EXPECT_EQ(dyna_matmul_f32(&context, &product), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("null"), std::string::npos) << message;
}
