//===- JoinedProductsTest.cpp - Products that run as one ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Products by neighbouring matrices, with rows side by side: how many calls they
// are, and that the numbers are the same.
//
//===----------------------------------------------------------------------===//

#include "test/codegen/cpu/FunctionTest.h"

using namespace dyna::test;

namespace {

/// Two matrices, neighbours in memory or not, and what a step does with them.
struct TwoMatrices {
  TwoMatrices(bool neighbours, int seed)
      : first(pattern(Element::F32, 48 * 8, seed)),
        second(pattern(Element::F32, 32 * 8, seed + 1)) {
    for (size_t i = 0; i < 32 * 8; ++i)
      first.set(16 * 8 + i, second.get(i));
    char *behind = static_cast<char *>(first.data()) + 16 * 8 * 4;
    tensors = {{first.data(), 16},
               {neighbours ? static_cast<void *>(behind) : second.data(), 32}};
  }
  std::vector<double> values(bool neighbours) const {
    std::vector<double> all = first.values();
    if (!neighbours)
      for (size_t i = 0; i < 32 * 8; ++i)
        all[16 * 8 + i] = second.get(i);
    return all;
  }
  Tensor first, second;
  std::vector<dyna_tensor> tensors;
};

TEST_F(FunctionTest, NeighboursAreOneProduct) {
  std::string text =
      "dyna.function @f of @l as forward(%q: tensor<16x8xf32> in <parameter>, "
      "%k: tensor<32x8xf32> in <parameter, index = 1>, %x: tensor<?x8xf32> in "
      "<input>) -> (tensor<?x16xf32> in <products, stride = 192>, "
      "tensor<?x32xf32> in <products, column = 64, stride = 192>) {\n"
      "  %a = dyna.linear %x, %q {places = [#dyna.place<products, stride = "
      "192>]} : tensor<?x8xf32>, tensor<16x8xf32>\n"
      "  %b = dyna.linear %x, %k {places = [#dyna.place<products, column = 64, "
      "stride = 192>]} : tensor<?x8xf32>, tensor<32x8xf32>\n"
      "  %c = dyna.rows : tensor<?x32xf32> {\n"
      "    %0 = dyna.relu %b : tensor<?x32xf32>\n"
      "    dyna.yield %0 : tensor<?x32xf32>\n"
      "  } {places = [#dyna.place<products, column = 64, stride = 192>]}\n"
      "  dyna.return %a, %c : tensor<?x16xf32>, tensor<?x32xf32>\n}\n";
  std::vector<std::vector<double>> results;
  for (bool neighbours : {true, false}) {
    Call call({5, 40});
    TwoMatrices w(neighbours, 1);
    Tensor x = pattern(Element::F32, call.tokens() * 8, 3),
           products(Element::F32, 64 * 48);
    call.params = w.tensors;
    call.saved.products = products.data();
    call.in = {{x.data(), 0}};
    kernelLog() = KernelLog();
    ASSERT_EQ(run(text, call), DYNA_OK);
    ASSERT_EQ(kernelLog().matmul.size(), neighbours ? 1u : 2u);
    EXPECT_EQ(kernelLog().matmul[0].n, neighbours ? 48 : 16);
    EXPECT_EQ(kernelLog().matmul[0].ldc, 48);
    EXPECT_NE(kernelLog().matmul.back().epilogue, nullptr);
    results.push_back(products.values());
    for (int64_t row = 0; row < call.tokens(); ++row)
      for (int64_t i = 0; i < 48; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < 8; ++c)
          sum += x.get(row * 8 + c) * w.first.get(i * 8 + c);
        ASSERT_NEAR(products.get(row * 48 + i),
                    i < 16 ? sum : std::max(sum, 0.0), 1e-5);
      }
  }
  EXPECT_EQ(results[0], results[1]);
}

/// Rows side by side in another order than the weights are no product of both:
/// one call would write each in the other's columns.
TEST_F(FunctionTest, NeighboursInAnotherOrderStayApart) {
  std::string text =
      "dyna.function @f of @l as forward(%q: tensor<16x8xf32> in <parameter>, "
      "%k: tensor<32x8xf32> in <parameter, index = 1>, %x: tensor<?x8xf32> in "
      "<input>) -> (tensor<?x16xf32> in <products, column = 128, stride = "
      "192>, tensor<?x32xf32> in <products, stride = 192>) {\n"
      "  %a = dyna.linear %x, %q {places = [#dyna.place<products, column = "
      "128, stride = 192>]} : tensor<?x8xf32>, tensor<16x8xf32>\n"
      "  %b = dyna.linear %x, %k {places = [#dyna.place<products, stride = "
      "192>]} : tensor<?x8xf32>, tensor<32x8xf32>\n"
      "  dyna.return %a, %b : tensor<?x16xf32>, tensor<?x32xf32>\n}\n";
  Call call({5, 40});
  TwoMatrices w(/*neighbours=*/true, 1);
  Tensor x = pattern(Element::F32, call.tokens() * 8, 3),
         products(Element::F32, 64 * 48);
  call.params = w.tensors;
  call.saved.products = products.data();
  call.in = {{x.data(), 0}};
  kernelLog() = KernelLog();
  ASSERT_EQ(run(text, call), DYNA_OK);
  EXPECT_EQ(kernelLog().matmul.size(), 2u);
  for (int64_t row = 0; row < call.tokens(); ++row)
    for (int64_t i = 0; i < 48; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < 8; ++c)
        sum += x.get(row * 8 + c) * w.first.get(i * 8 + c);
      int64_t column = i < 16 ? 32 + i : i - 16;
      ASSERT_NEAR(products.get(row * 48 + column), sum, 1e-5);
    }
}

TEST_F(FunctionTest, GradientsOfNeighboursAreOneProduct) {
  std::string text =
      "dyna.function @f of @l as backward(%q: tensor<16x8xf32> in "
      "<parameter>, %k: tensor<32x8xf32> in <parameter, index = 1>, %gq: "
      "tensor<16x8xf32> in <gradient>, %gk: tensor<32x8xf32> in <gradient, "
      "index = 1>, %x: tensor<?x8xf32> in <saved_input>, %dq: "
      "tensor<?x16xf32> in <deferred, stride = 192>, %dk: tensor<?x32xf32> in "
      "<deferred, column = 64, stride = 192>) -> (tensor<?x8xf32> in <output>, "
      "tensor<16x8xf32> in <gradient>, tensor<32x8xf32> in <gradient, index = "
      "1>) {\n"
      "  %0 = dyna.linear_grad_weight %dk, %x, %gk {places = "
      "[#dyna.place<gradient, index = 1>]} : tensor<?x32xf32>, "
      "tensor<?x8xf32>, tensor<32x8xf32>\n"
      "  %1 = dyna.linear_grad_weight %dq, %x, %gq {places = "
      "[#dyna.place<gradient>]} : tensor<?x16xf32>, tensor<?x8xf32>, "
      "tensor<16x8xf32>\n"
      "  %2 = dyna.linear_grad_input %dk, %k {places = "
      "[#dyna.place<output>]} : tensor<?x32xf32>, tensor<32x8xf32>\n"
      "  %3 = dyna.linear_grad_input %dq, %q add %2 {places = "
      "[#dyna.place<output>]} : tensor<?x16xf32>, tensor<16x8xf32>, "
      "tensor<?x8xf32>\n"
      "  dyna.return %3, %1, %0 : tensor<?x8xf32>, tensor<16x8xf32>, "
      "tensor<32x8xf32>\n}\n";
  // Weights and gradients are neighbours, or not, each for themselves.
  for (bool weights : {true, false})
    for (bool gradients : {true, false}) {
      Call call({5, 40});
      TwoMatrices w(weights, 1), g(gradients, 5);
      std::vector<double> expected = g.values(gradients);
      Tensor x = pattern(Element::F32, call.tokens() * 8, 3),
             dy = pattern(Element::F32, 64 * 48, 4),
             dx(Element::F32, call.tokens() * 8);
      call.params = w.tensors;
      call.grads = g.tensors;
      call.saved.input = x.data();
      call.saved.deferred = dy.data();
      call.out = {{dx.data(), 0}};
      kernelLog() = KernelLog();
      ASSERT_EQ(run(text, call), DYNA_OK);
      EXPECT_EQ(kernelLog().matmul.size(),
                (weights ? 1u : 2u) + (gradients ? 1u : 2u));
      for (int64_t row = 0; row < call.tokens(); ++row)
        for (int64_t c = 0; c < 8; ++c) {
          double sum = 0;
          for (int64_t i = 0; i < 48; ++i) {
            sum += dy.get(row * 48 + i) * w.first.get(i * 8 + c);
            expected[i * 8 + c] += dy.get(row * 48 + i) * x.get(row * 8 + c);
          }
          ASSERT_NEAR(dx.get(row * 8 + c), sum, 1e-4);
        }
      std::vector<double> sums = g.values(gradients);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(sums[i], expected[i], 1e-4) << i;
      EXPECT_TRUE(dx.guardIntact());
    }
}

} // namespace
