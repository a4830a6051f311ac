//===- MatmulTest.cpp - Generated matrix products -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The generated product, got hold of as the head's `matmul`, in every transpose
// and at sizes around those of its tiles and blocks.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "test/codegen/cpu/CompiledFunction.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace dyna::test;

namespace {

struct Setting {
  Element element;
  int vectorBits;
};

void PrintTo(const Setting &setting, std::ostream *out) {
  *out << nameOf(setting.element) << " in " << setting.vectorBits << " bits";
}

/// A module whose only function hands the product to the head.
std::string moduleText(Element element) {
  std::string type = nameOf(element);
  std::string x = "tensor<?x16x" + type + ">", w = "tensor<20x16x" + type + ">";
  return "dyna.layer @l(%x: " + x + ") -> " + x + " { dyna.return %x : " + x +
         " }\ndyna.function @f of @l as evaluate(%w: " + w +
         " in <parameter>, %x: " + x +
         " in <input>, %t: tensor<?xi32> in <input, index = 1>) -> "
         "(tensor<1xf64> in <output>) {\n"
         "  %loss = dyna.linear_cross_entropy %x, %w, %t {places = "
         "[#dyna.place<output>, #dyna.place<workspace, constant = 128>]} : " +
         x + ", " + w +
         ", tensor<?xi32>\n  dyna.return %loss : tensor<1xf64>\n}\n";
}

class MatmulTest : public testing::TestWithParam<Setting> {
protected:
  void SetUp() override {
    Element element = GetParam().element;
    module = std::make_unique<CompiledModule>(
        moduleText(element), "matmul=generated vector-bits=" +
                                 std::to_string(GetParam().vectorBits));
    ASSERT_TRUE(module->ok());
    kernelLog() = KernelLog();
    Call call({3});
    call.params = {{nullptr, 0}};
    call.in = {{nullptr, 3}, {nullptr, 3}};
    call.out = {{nullptr, 1}};
    ASSERT_EQ(call.run(module->find("f")), DYNA_OK);
    ASSERT_EQ(kernelLog().head.size(), 1u);
    matmul = kernelLog().head[0].matmul;
  }

  Tensor random(size_t count) {
    Tensor tensor(GetParam().element, count);
    for (size_t i = 0; i < count; ++i) {
      state = dyna_mix64(state);
      tensor.set(i, 2.0 * (state >> 11) * 0x1p-53 - 1.0);
    }
    return tensor;
  }

  void check(int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB,
             bool accumulate, int64_t epilogueRows = 0);

  uint64_t state = 1;
  std::unique_ptr<CompiledModule> module;
  dyna_matmul_function matmul;
};

/// What an epilogue was called for.
struct Rows {
  int64_t begin, end, chunk;
};
std::vector<Rows> epilogueRows;
void recordEpilogue(const void *args, int64_t begin, int64_t end,
                    int64_t chunk) {
  EXPECT_EQ(args, &epilogueRows);
  epilogueRows.push_back({begin, end, chunk});
}

void MatmulTest::check(int64_t m, int64_t n, int64_t k, bool transposeA,
                       bool transposeB, bool accumulate, int64_t minRows) {
  SCOPED_TRACE(testing::Message()
               << m << " x " << n << " x " << k << (transposeA ? " A^T" : "")
               << (transposeB ? " B^T" : "") << (accumulate ? " +=" : " ="));
  int64_t lda = (transposeA ? m : k) + 3, ldb = (transposeB ? k : n) + 5;
  int64_t ldc = n + 1;
  Tensor a = random((transposeA ? k : m) * lda);
  Tensor b = random((transposeB ? n : k) * ldb);
  Tensor c = random(m * ldc);
  if (!accumulate)
    for (size_t i = 0; i < c.count(); ++i)
      c.set(i, NAN);
  std::vector<double> before = c.values();
  dyna_matmul p = {};
  p.m = m, p.n = n, p.k = k;
  p.a = a.data(), p.lda = lda;
  p.b = b.data(), p.ldb = ldb;
  p.c = c.data(), p.ldc = ldc;
  p.transpose_a = transposeA, p.transpose_b = transposeB;
  p.accumulate = accumulate;
  epilogueRows.clear();
  if (minRows > 0) {
    p.epilogue = recordEpilogue;
    p.epilogue_args = &epilogueRows;
    p.epilogue_min_rows = minRows;
  }
  dyna_context context = {};
  ASSERT_EQ(matmul(&context, &p), DYNA_OK);
  double tolerance = GetParam().element == Element::F64 ? 1e-13 : 1e-5;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = accumulate ? before[i * ldc + j] : 0.0;
      for (int64_t l = 0; l < k; ++l)
        sum += a.get(transposeA ? l * lda + i : i * lda + l) *
               b.get(transposeB ? j * ldb + l : l * ldb + j);
      ASSERT_NEAR(c.get(i * ldc + j), sum, tolerance * std::sqrt(k + 1.0))
          << "row " << i << ", column " << j;
    }
    double after = c.get(i * ldc + n);
    ASSERT_TRUE(after == before[i * ldc + n] ||
                std::isnan(before[i * ldc + n]) && std::isnan(after))
        << "wrote behind row " << i;
  }
  EXPECT_TRUE(c.guardIntact());
  if (minRows == 0)
    return;
  int64_t size = dyna_chunk_rows(m, minRows);
  ASSERT_EQ(int64_t(epilogueRows.size()), dyna_chunk_count(m, minRows));
  for (const Rows &rows : epilogueRows) {
    EXPECT_EQ(rows.begin, rows.chunk * size);
    EXPECT_EQ(rows.end, std::min(m, (rows.chunk + 1) * size));
  }
}

TEST_P(MatmulTest, Transposes) {
  for (int flags = 0; flags < 8; ++flags)
    check(37, 61, 29, flags & 1, flags & 2, flags & 4);
}

TEST_P(MatmulTest, Sizes) {
  int64_t sizes[][3] = {{1, 1, 1},    {8, 48, 8},    {8, 24, 256},
                        {9, 49, 257}, {193, 50, 13}, {97, 25, 300},
                        {1, 200, 3},  {64, 300, 20}, {40, 1000, 5}};
  for (auto &[m, n, k] : sizes)
    for (int flags = 0; flags < 4; ++flags)
      check(m, n, k, flags & 1, flags & 2, false);
}

TEST_P(MatmulTest, Empty) {
  check(0, 5, 4, false, true, false);
  check(5, 0, 4, false, true, false);
  check(5, 4, 0, false, true, false);
  check(5, 4, 0, false, true, true);
}

TEST_P(MatmulTest, Epilogue) {
  check(100, 30, 16, false, true, false, 32);
  check(5, 30, 16, false, true, false, 32);
  check(2000, 3, 4, false, false, true, 32);
  check(0, 30, 16, false, true, false, 32);
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest,
                         testing::Values(Setting{Element::F64, 512},
                                         Setting{Element::F64, 256},
                                         Setting{Element::F32, 512},
                                         Setting{Element::F32, 256},
                                         Setting{Element::F32, 128}));

} // namespace
