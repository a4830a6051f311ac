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

  /// One product with a described epilogue; flags 1: B is transposed, 2: rows are
  /// padded, 4: without what is optional.
  template <typename T>
  void checkEpilogue(dyna_matmul_function function, Sizes sizes, int kind,
                     int flags) {
    SCOPED_TRACE(testing::Message()
                 << "m=" << sizes.m << " n=" << sizes.n << " k=" << sizes.k
                 << " epilogue " << kind << " flags " << flags);
    std::mt19937 random(static_cast<uint32_t>(sizes.m * 17 + kind * 8 + flags));
    dyna_matmul p = {};
    p.m = sizes.m, p.n = sizes.n, p.k = sizes.k;
    p.transpose_b = flags & 1;
    const int64_t pad = flags & 2 ? 3 : 0;
    p.lda = p.k + pad, p.ldb = (p.transpose_b ? p.k : p.n) + pad;
    p.ldc = p.n + pad;
    dyna_epilogue epilogue = {};
    epilogue.kind = kind;
    epilogue.aux_stride = p.n + 2 * pad;
    auto a = naive::randomElements<T>(p.lda * p.m, random);
    auto b =
        naive::randomElements<T>(p.ldb * (p.transpose_b ? p.n : p.k), random);
    auto c = naive::randomElements<T>(p.ldc * p.m, random);
    auto bias = naive::randomElements<T>(p.n, random);
    // Both sides of where gelu bends.
    auto aux = naive::randomElements<T>(epilogue.aux_stride * p.m, random);
    for (T &element : aux)
      naive::fromDouble(4 * naive::toDouble(element), element);
    const bool hasAux = kind == DYNA_EPILOGUE_GELU_GRAD ||
                        (kind == DYNA_EPILOGUE_BIAS_GELU && !(flags & 4));
    Matrix expected = naive::toDoubles(c), wantedAux;
    if (hasAux)
      wantedAux = naive::toDoubles(aux);
    naive::matmul(p, naive::toDoubles(a), naive::toDoubles(b), expected);
    naive::epilogue(p, epilogue, naive::toDoubles(bias), expected, wantedAux);

    auto deviceA = upload(a), deviceB = upload(b), deviceC = upload(c);
    auto deviceBias = upload(bias), deviceAux = upload(aux);
    p.a = deviceA->data(), p.b = deviceB->data(), p.c = deviceC->data();
    if (kind != DYNA_EPILOGUE_GELU_GRAD)
      epilogue.bias = deviceBias->data();
    if (hasAux)
      epilogue.aux = deviceAux->data();
    p.described = 1, p.epilogue_args = &epilogue;
    p.epilogue_args_bytes = sizeof(epilogue);
    context.matrix_flops = 1;
    ASSERT_EQ(function(&context, &p), DYNA_OK) << message;
    EXPECT_EQ(context.matrix_flops, 1 + 2 * p.m * p.n * p.k);
    expectNear(download<T>(*deviceC), expected, tolerance<T>(), "c");
    if (kind == DYNA_EPILOGUE_BIAS_GELU && hasAux)
      expectNear(download<T>(*deviceAux), wantedAux, tolerance<T>(), "aux");
  }

  template <typename T> void checkEpilogues(dyna_matmul_function run) {
    if (!GetParam().describesEpilogues)
      GTEST_SKIP() << "epilogues are code here";
    for (Sizes sizes : {Sizes{1, 8, 1},
                        {5, 8, 0},
                        {0, 8, 3},
                        {33, 64, 17},
                        {130, 48, 70},
                        {70, 136, 48},
                        {40, 13, 20}})
      for (int kind = 1; kind < DYNA_EPILOGUE_COUNT; ++kind)
        for (int flags = 0; flags < 8 && !HasFatalFailure(); ++flags)
          checkEpilogue<T>(run, sizes, kind, flags);
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

TEST_P(ProductConformance, EpiloguesF32) {
  checkEpilogues<float>(dyna_matmul_f32);
}
TEST_P(ProductConformance, EpiloguesBf16) {
  checkEpilogues<Bf16>(dyna_matmul_bf16);
}
TEST_P(ProductConformance, EpiloguesF64) {
  checkEpilogues<double>(dyna_matmul_f64);
}

TEST_P(ProductConformance, EpiloguesThatLackSomethingAreRefused) {
  dyna_matmul product = {};
  product.described = 1;
  auto refuse = [&](const char *word) {
    EXPECT_EQ(dyna_matmul_f32(&context, &product), DYNA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(message).find(word), std::string::npos) << message;
  };
  refuse("that there is not");
  dyna_epilogue epilogue = {};
  product.epilogue_args = &epilogue;
  for (int kind : {-1, 0, int(DYNA_EPILOGUE_COUNT)}) {
    epilogue.kind = kind;
    refuse("that there is not");
  }
  for (int kind = 1; kind < DYNA_EPILOGUE_COUNT; ++kind) {
    epilogue.kind = kind;
    refuse("bias or aux is null");
  }
  float element = 0;
  epilogue.kind = DYNA_EPILOGUE_GELU_GRAD;
  product.n = product.ldb = product.ldc = 8;
  epilogue.aux = &element, epilogue.aux_stride = 7;
  refuse("rows of aux are 7 apart");
  product.accumulate = 1;
  refuse("adds to nothing");
  if (GetParam().describesEpilogues)
    return;
  product.accumulate = 0, epilogue.aux_stride = 8;
  refuse("the host's are code");
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
