//===- KernelConformance.cpp - Products and small kernels ------*- C++ -*-===//
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
// Matrix product
//===----------------------------------------------------------------------===//

namespace {

struct Sizes {
  int64_t m, n, k;
};

/// Runs one product with padded rows, in which nothing may change.
template <typename AB, typename C>
void checkMatmul(
    dyna_matmul_function function, dyna_context &context,
    std::function<std::unique_ptr<Buffer>(const void *, int64_t)> put,
    std::function<void(void *, const Buffer &)> get, Sizes sizes, int flags) {
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

  std::unique_ptr<Buffer> deviceA =
      put(a.data(), int64_t(a.size() * sizeof(AB)));
  std::unique_ptr<Buffer> deviceB =
      put(b.data(), int64_t(b.size() * sizeof(AB)));
  std::unique_ptr<Buffer> deviceC =
      put(c.data(), int64_t(c.size() * sizeof(C)));
  p.a = deviceA->data(), p.b = deviceB->data(), p.c = deviceC->data();
  context.matrix_flops = 1;
  ASSERT_EQ(function(&context, &p), DYNA_OK) << context.message;
  EXPECT_EQ(context.matrix_flops, 1 + 2 * p.m * p.n * p.k);
  get(c.data(), *deviceC);
  std::string what = "m=" + std::to_string(p.m) + " n=" + std::to_string(p.n) +
                     " k=" + std::to_string(p.k) + " flags " +
                     std::to_string(flags);
  double bound = sizeof(C) == 2 ? tolerance<Bf16>() : tolerance<float>();
  expectNear(c, expected, bound, what);
}

const Sizes kSizes[] = {{1, 1, 1},      {5, 7, 0},      {0, 4, 3},
                        {4, 0, 3},      {33, 65, 17},   {257, 48, 96},
                        {70, 513, 33},  {130, 300, 70}, {31, 40, 2500},
                        {1100, 64, 48}, {523, 80, 112}, {400, 390, 40}};

} // namespace

#define DYNA_CHECK_MATMUL(AB, C, function)                                     \
  for (Sizes sizes : kSizes)                                                   \
    for (int flags = 0; flags < 16; ++flags)                                   \
  checkMatmul<AB, C>(                                                          \
      function, context,                                                       \
      [&](const void *data, int64_t bytes) {                                   \
        auto buffer = allocate(bytes);                                         \
        EXPECT_TRUE(                                                           \
            device->copyToDevice(*stream, *buffer, 0, data, bytes).isOk());    \
        EXPECT_TRUE(device->synchronize(*stream, soon()).isOk());              \
        return buffer;                                                         \
      },                                                                       \
      [&](void *data, const Buffer &buffer) {                                  \
        EXPECT_TRUE(                                                           \
            device->copyToHost(*stream, data, buffer, 0, buffer.bytes())       \
                .isOk());                                                      \
        EXPECT_TRUE(device->synchronize(*stream, soon()).isOk());              \
      },                                                                       \
      sizes, flags)

TEST_P(KernelConformance, MatmulF32) {
  DYNA_CHECK_MATMUL(float, float, dyna_matmul_f32);
}
TEST_P(KernelConformance, MatmulBf16) {
  DYNA_CHECK_MATMUL(Bf16, Bf16, dyna_matmul_bf16);
}
TEST_P(KernelConformance, MatmulBf16F32) {
  DYNA_CHECK_MATMUL(Bf16, float, dyna_matmul_bf16_f32);
}

/// Products add 3.5 and 3.375 to 256, beside which bf16 has nothing smaller
/// than 2: added in parts, as the deep one might be, they would be lost, and
/// cut off they would be 2.
TEST_P(KernelConformance, ProductsAreWorkOfTheirStream) {
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

TEST_P(KernelConformance, MatmulBf16RoundsWhatItAddsOnce) {
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

TEST_P(KernelConformance, MatmulRefusesBadArguments) {
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
