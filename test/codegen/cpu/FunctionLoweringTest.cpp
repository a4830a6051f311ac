//===- FunctionLoweringTest.cpp - Numbers of compiled layer functions -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Everything of a layer function that is not row-wise: products and their
// epilogues, tables, what kernels are told, addresses, failures.
//
//===----------------------------------------------------------------------===//

#include "test/codegen/cpu/FunctionTest.h"
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>

using namespace dyna::test;

namespace {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// y = x w^T; g = relu(y + b), the sweep as epilogue, in library and generated
/// products.
TEST_F(FunctionTest, LinearWithEpilogue) {
  std::string text =
      "dyna.function @f of @l as forward(%w: tensor<40x24x$T> in <parameter>, "
      "%b: tensor<40x$T> in <parameter, index = 1>, %x: tensor<?x24x$T> in "
      "<input>) -> (tensor<?x40x$T> in <output>, tensor<?x40x$T> in <output, "
      "index = 1>) {\n"
      "  %y = dyna.linear %x, %w {places = [#dyna.place<output>]} : "
      "tensor<?x24x$T>, tensor<40x24x$T>\n"
      "  %g = dyna.rows : tensor<?x40x$T> {\n"
      "    %0 = dyna.bias %y, %b : tensor<?x40x$T>, tensor<40x$T>\n"
      "    %1 = dyna.relu %0 : tensor<?x40x$T>\n"
      "    dyna.yield %1 : tensor<?x40x$T>\n"
      "  } {places = [#dyna.place<output, index = 1>]}\n"
      "  dyna.return %y, %g : tensor<?x40x$T>, tensor<?x40x$T>\n}\n";
  struct Case {
    Element element;
    const char *options;
  } cases[] = {{Element::F32, ""},
               {Element::F32, "matmul=generated"},
               {Element::F32, "matmul=generated vector-bits=256"},
               {Element::F64, ""},
               {Element::BF16, ""}};
  for (const Case &test : cases) {
    SCOPED_TRACE(nameOf(test.element) + test.options);
    kernelLog() = KernelLog();
    Element e = test.element;
    Call call({5, 200, 1});
    size_t rows = call.tokens();
    Tensor w = pattern(e, 40 * 24, 1), b = pattern(e, 40, 2);
    Tensor x = pattern(e, rows * 24, 3), y(e, rows * 40), g(e, rows * 40);
    call.params = {{w.data(), 40}, {b.data(), 40}};
    call.in = {{x.data(), 0}};
    call.out = {{y.data(), 0}, {g.data(), 0}};
    ASSERT_EQ(run(replaceAll(text, "$T", nameOf(e)), call, test.options),
              DYNA_OK);
    bool library = e != Element::F64 && !*test.options;
    EXPECT_EQ(kernelLog().matmul.size(), library ? 1u : 0u);
    if (library) {
      EXPECT_NE(kernelLog().matmul[0].epilogue, nullptr);
      EXPECT_EQ(kernelLog().launches, 0) << "the sweep is part of the product";
    }
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < 40; ++j) {
        double sum = 0;
        for (size_t l = 0; l < 24; ++l)
          sum += x.get(i * 24 + l) * w.get(j * 24 + l);
        double relative = e == Element::BF16 ? 1e-2 : 1e-6;
        ASSERT_NEAR(y.get(i * 40 + j), sum, relative * std::abs(sum) + 1e-6);
        double expected = std::max(y.get(i * 40 + j) + b.get(j), 0.0);
        ASSERT_NEAR(g.get(i * 40 + j), expected, relative * expected);
      }
    EXPECT_TRUE(y.guardIntact() && g.guardIntact());
  }
}

/// Backward of a linear: dx added to another gradient, dw and db accumulated.
TEST_F(FunctionTest, LinearGradients) {
  std::string text =
      "dyna.function @f of @l as backward(%w: tensor<40x24x$T> in <parameter>, "
      "%gw: tensor<40x24x$G> in <gradient>, %gb: tensor<40x$G> in <gradient, "
      "index = 1>, %x: tensor<?x24x$T> in <saved_input>, %dy: tensor<?x40x$T> "
      "in <input>, %z: tensor<?x24x$T> in <output>) -> (tensor<?x24x$T> in "
      "<output>, tensor<40x24x$G> in <gradient>, tensor<40x$G> in <gradient, "
      "index = 1>) {\n"
      "  %dw = dyna.linear_grad_weight %dy, %x, %gw {places = "
      "[#dyna.place<gradient>]} : tensor<?x40x$T>, tensor<?x24x$T>, "
      "tensor<40x24x$G>\n"
      "  %db = dyna.rows : tensor<40x$G> {\n"
      "    %0 = dyna.bias_grad %dy, %gb : tensor<?x40x$T>, tensor<40x$G>\n"
      "    dyna.yield %0 : tensor<40x$G>\n"
      "  } {places = [#dyna.place<gradient, index = 1>, #dyna.place<workspace, "
      "tq = 8, constant = 64>]}\n"
      "  %dx = dyna.linear_grad_input %dy, %w add %z {places = "
      "[#dyna.place<output>]} : tensor<?x40x$T>, tensor<40x24x$T>, "
      "tensor<?x24x$T>\n"
      "  dyna.return %dx, %dw, %db : tensor<?x24x$T>, tensor<40x24x$G>, "
      "tensor<40x$G>\n}\n";
  for (auto [e, acc] : gradientTypes) {
    SCOPED_TRACE(nameOf(e) + " into " + nameOf(acc));
    Call call({5, 2000, 1});
    size_t rows = call.tokens();
    Tensor w = pattern(e, 40 * 24, 1), gw = pattern(acc, 40 * 24, 2);
    Tensor gb = pattern(acc, 40, 3), x = pattern(e, rows * 24, 4);
    Tensor dy = pattern(e, rows * 40, 5), dx = pattern(e, rows * 24, 6);
    std::vector<double> gw0 = gw.values(), gb0 = gb.values(), z = dx.values();
    call.params = {{w.data(), 40}};
    call.grads = {{gw.data(), 40}, {gb.data(), 40}};
    call.saved.input = x.data();
    call.in = {{dy.data(), 0}};
    call.out = {{dx.data(), 0}};
    ASSERT_EQ(
        run(replaceAll(replaceAll(text, "$T", nameOf(e)), "$G", nameOf(acc)),
            call),
        DYNA_OK);
    for (size_t j = 0; j < 40; ++j) {
      double sum = gb0[j];
      for (size_t i = 0; i < rows; ++i)
        sum += dy.get(i * 40 + j);
      // Multiples of 1/4: exact, and then rounded once at most.
      EXPECT_EQ(gb.get(j), rounded(acc, sum));
      for (size_t l = 0; l < 24; ++l) {
        sum = gw0[j * 24 + l];
        for (size_t i = 0; i < rows; ++i)
          sum += dy.get(i * 40 + j) * x.get(i * 24 + l);
        ASSERT_EQ(gw.get(j * 24 + l), rounded(acc, sum));
      }
    }
    for (size_t i = 0; i < rows; ++i)
      for (size_t l = 0; l < 24; ++l) {
        double sum = z[i * 24 + l];
        for (size_t j = 0; j < 40; ++j)
          sum += dy.get(i * 40 + j) * w.get(j * 24 + l);
        ASSERT_NEAR(dx.get(i * 24 + l), sum,
                    e == Element::BF16 ? 1e-2 * std::abs(sum) : 1e-9);
      }
  }
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

TEST_F(FunctionTest, Embedding) {
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    std::string text = replaceAll(
        "dyna.function @f of @l as forward(%w: tensor<11x23x$T> in "
        "<parameter>, %ids: tensor<?xi32> in <input>) -> (tensor<?x23x$T> in "
        "<output>) {\n  %y = dyna.embedding %ids, %w {places = "
        "[#dyna.place<output>]} : tensor<?xi32>, tensor<11x23x$T>\n"
        "  dyna.return %y : tensor<?x23x$T>\n}\n",
        "$T", nameOf(e));
    Call call({5, 40});
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < call.tokens(); ++i)
      ids.push_back((i * 5) % 11);
    Tensor w = pattern(e, 11 * 23, 1), y(e, call.tokens() * 23);
    call.params = {{w.data(), 11}};
    call.in = {{ids.data(), 0}};
    call.out = {{y.data(), 0}};
    ASSERT_EQ(run(text, call), DYNA_OK);
    for (int64_t i = 0; i < call.tokens(); ++i)
      for (int64_t c = 0; c < 23; ++c)
        ASSERT_EQ(y.get(i * 23 + c), w.get(ids[i] * 23 + c));
    EXPECT_TRUE(y.guardIntact());
  }
}

/// Whoever indexes a table with ids or positions asks first whether they are
/// among its rows, and leaves the table alone if not.
TEST_F(FunctionTest, RowsBesideTheTableAreRefused) {
  const char *functions[] = {
      "dyna.function @f of @l as forward(%w: tensor<11x8xf32> in <parameter>, "
      "%ids: tensor<?xi32> in <input>, %s: !dyna.segments in <segments>) -> "
      "(tensor<?x8xf32> in <output>) {\n"
      "  %y = dyna.embedding %ids, %w {places = [#dyna.place<output>]} : "
      "tensor<?xi32>, tensor<11x8xf32>\n"
      "  dyna.return %y : tensor<?x8xf32>\n}\n",
      "dyna.function @f of @l as forward(%w: tensor<11x8xf32> in <parameter>, "
      "%ids: tensor<?xi32> in <input>, %s: !dyna.segments in <segments>) -> "
      "(tensor<?x8xf32> in <output>) {\n"
      "  %y = dyna.rows : tensor<?x8xf32> {\n"
      "    %p = dyna.positions %w, %s : tensor<11x8xf32>\n"
      "    dyna.yield %p : tensor<?x8xf32>\n"
      "  } {places = [#dyna.place<output>]}\n"
      "  dyna.return %y : tensor<?x8xf32>\n}\n",
      "dyna.function @f of @l as backward(%g: tensor<11x8xf32> in <gradient>, "
      "%ids: tensor<?xi32> in <saved_input>, %dy: tensor<?x8xf32> in <input>) "
      "-> (tensor<11x8xf32> in <gradient>) {\n"
      "  %0 = dyna.embedding_grad %dy, %ids, %g {places = "
      "[#dyna.place<gradient>]} : tensor<?x8xf32>, tensor<?xi32>, "
      "tensor<11x8xf32>\n"
      "  dyna.return %0 : tensor<11x8xf32>\n}\n",
      "dyna.function @f of @l as backward(%g: tensor<11x8xf32> in <gradient>, "
      "%s: !dyna.segments in <segments>, %dy: tensor<?x8xf32> in <input>) "
      "-> (tensor<11x8xf32> in <gradient>) {\n"
      "  %0 = dyna.positions_grad %dy, %s, %g {places = "
      "[#dyna.place<gradient>]} : tensor<?x8xf32>, tensor<11x8xf32>\n"
      "  dyna.return %0 : tensor<11x8xf32>\n}\n"};
  for (const char *text : functions)
    for (bool isOutside : {false, true}) {
      SCOPED_TRACE(text);
      Call call({11, isOutside ? 12 : 3});
      std::vector<int32_t> ids(call.rowPosition.begin(),
                               call.rowPosition.end());
      Tensor table = pattern(Element::F32, 11 * 8, 1);
      Tensor rows = pattern(Element::F32, call.tokens() * 8, 2);
      Tensor out = pattern(Element::F32, call.tokens() * 8, 3);
      bool isForward = std::string(text).find("forward") != std::string::npos;
      call.params = call.grads = {{table.data(), 11}};
      call.saved.input = ids.data();
      if (isForward)
        call.in = {{ids.data(), 0}};
      else
        call.in = {{rows.data(), 0}};
      call.out = {{out.data(), 0}};
      std::vector<double> before = table.values();
      kernelLog() = KernelLog();
      EXPECT_EQ(run(text, call), isOutside ? DYNA_INVALID_ARGUMENT : DYNA_OK);
      EXPECT_EQ(kernelLog().launches, isOutside ? 0 : 1);
      EXPECT_EQ(table.values() == before, isForward || isOutside);
      EXPECT_TRUE(table.guardIntact() && out.guardIntact());
    }
}

/// Widths on both sides of the blocks of 64 columns. Beside 256 bf16 has
/// nothing smaller than 2: what tokens add must be summed before it is rounded.
TEST_F(FunctionTest, TableGradients) {
  for (auto [e, acc] : gradientTypes)
    for (int64_t width : {23, 64, 150}) {
      SCOPED_TRACE(nameOf(acc) + " " + std::to_string(width));
      std::string text =
          "dyna.function @f of @l as backward(%g: tensor<60x$Wx$G> in "
          "<gradient>, %p: tensor<60x$Wx$G> in <gradient, index = 1>, %ids: "
          "tensor<?xi32> in <saved_input>, %s: !dyna.segments in <segments>, "
          "%dy: tensor<?x$Wx$T> in <input>) -> (tensor<60x$Wx$G> in "
          "<gradient>, tensor<60x$Wx$G> in <gradient, index = 1>) {\n"
          "  %0 = dyna.embedding_grad %dy, %ids, %g {places = "
          "[#dyna.place<gradient>$L]} : tensor<?x$Wx$T>, tensor<?xi32>, "
          "tensor<60x$Wx$G>\n"
          "  %1 = dyna.positions_grad %dy, %s, %p {places = "
          "[#dyna.place<gradient, index = 1>$L]} : tensor<?x$Wx$T>, "
          "tensor<60x$Wx$G>\n"
          "  dyna.return %0, %1 : tensor<60x$Wx$G>, tensor<60x$Wx$G>\n}\n";
      text = replaceAll(text, "$T", nameOf(e));
      text = replaceAll(text, "$G", nameOf(acc));
      // A narrow table has lists of the tokens of each row as scratch.
      text = replaceAll(text, "$L",
                        acc == Element::BF16
                            ? ", #dyna.place<workspace, constant = 64>"
                            : "");
      text = replaceAll(text, "$W", std::to_string(width));
      // Positions and ids that many tokens share.
      Call call({5, 40, 7, 40, 40, 40, 40, 40, 40, 40});
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < call.tokens(); ++i)
        ids.push_back((i * 5) % 11);
      Tensor g = pattern(acc, 60 * width, 1), p = pattern(acc, 60 * width, 2);
      Tensor dy = pattern(e, call.tokens() * width, 3);
      for (int64_t i = 0; i < 60 * width; i += 3)
        g.set(i, 256), p.set(i, 256);
      std::vector<double> byId = g.values(), byPosition = p.values();
      call.grads = {{g.data(), 60}, {p.data(), 60}};
      call.saved.input = ids.data();
      call.in = {{dy.data(), 0}};
      ASSERT_EQ(run(text, call), DYNA_OK);
      for (int64_t i = 0; i < call.tokens(); ++i)
        for (int64_t c = 0; c < width; ++c) {
          byId[ids[i] * width + c] += dy.get(i * width + c);
          byPosition[call.rowPosition[i] * width + c] += dy.get(i * width + c);
        }
      for (std::vector<double> *sums : {&byId, &byPosition})
        for (double &sum : *sums)
          sum = rounded(acc, sum);
      EXPECT_EQ(g.values(), byId);
      EXPECT_EQ(p.values(), byPosition);
    }
}

//===----------------------------------------------------------------------===//
// Attention and head
//===----------------------------------------------------------------------===//

TEST_F(FunctionTest, AttentionFields) {
  std::string text =
      "dyna.function @f of @l as backward(%q: tensor<?x32xf32> in <products>, "
      "%k: tensor<?x16xf32> in <products, tq = 128>, %v: tensor<?x16xf32> in "
      "<products, tq = 192>, %s: !dyna.segments in <segments>, %do: "
      "tensor<?x32xf32> in <input>) -> (tensor<?x32xf32> in <output>, "
      "tensor<?x16xf32> in <output, index = 1>, tensor<?x16xf32> in <output, "
      "index = 2>) {\n"
      "  %o, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 4 : i64, "
      "kv_heads = 2 : i64, scale = 2.5e-1 : f64, places = "
      "[#dyna.place<elementwise>, #dyna.place<deferred, constant = 64>]} : "
      "tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>\n"
      "  %dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s "
      "{heads = 4 : i64, kv_heads = 2 : i64, scale = 2.5e-1 : f64, places = "
      "[#dyna.place<output>, #dyna.place<output, index = 1>, "
      "#dyna.place<output, index = 2>, #dyna.place<workspace, s = 8, constant "
      "= 64>]} : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, "
      "tensor<?x4xf32>\n"
      "  dyna.return %dq, %dk, %dv : tensor<?x32xf32>, tensor<?x16xf32>, "
      "tensor<?x16xf32>\n}\n";
  Call call({5, 40}); // Tq rounded: 64; S rounded: 32
  // As large as the places that are asked about.
  char products[1 << 15], elementwise[1 << 15], deferred[1 << 15];
  char d0[1], d1[1], d2[1], d3[1];
  call.saved.products = products;
  call.saved.elementwise = elementwise;
  call.saved.deferred = deferred;
  call.in = {{d3, 0}};
  call.out = {{d0, 0}, {d1, 0}, {d2, 0}};
  ASSERT_EQ(run(text, call), DYNA_OK);
  ASSERT_EQ(kernelLog().attention.size(), 1u);
  const dyna_attention &forward = kernelLog().attention[0];
  EXPECT_EQ(forward.heads, 4);
  EXPECT_EQ(forward.kv_heads, 2);
  EXPECT_EQ(forward.head_dim, 8);
  EXPECT_EQ(forward.scale, 0.25);
  EXPECT_EQ(forward.causal, 1);
  EXPECT_EQ(forward.q, products);
  EXPECT_EQ(forward.q_stride, 32);
  EXPECT_EQ(forward.k, products + 128 * 64);
  EXPECT_EQ(forward.k_stride, 16);
  EXPECT_EQ(forward.v, products + 192 * 64);
  EXPECT_EQ(forward.v_stride, 16);
  EXPECT_EQ(forward.out, elementwise);
  EXPECT_EQ(forward.out_stride, 32);
  EXPECT_EQ(forward.lse, deferred + 64);
  ASSERT_EQ(kernelLog().attentionGrad.size(), 1u);
  const dyna_attention_grad &grad = kernelLog().attentionGrad[0];
  EXPECT_EQ(grad.forward.causal, 0);
  EXPECT_EQ(grad.forward.out, elementwise);
  EXPECT_EQ(grad.forward.lse, deferred + 64);
  EXPECT_EQ(grad.dout, d3);
  EXPECT_EQ(grad.dq, d0);
  EXPECT_EQ(grad.dk, d1);
  EXPECT_EQ(grad.dv, d2);
  EXPECT_EQ(grad.workspace, static_cast<char *>(call.workspace) + 8 * 32 + 64);
}

TEST_F(FunctionTest, HeadFields) {
  std::string text =
      "dyna.function @f of @l as forward(%w: tensor<20x16x$T> in <parameter>, "
      "%g: tensor<20x16x$G> in <gradient>, %x: tensor<?x16x$T> in <input>, %t: "
      "tensor<?xi32> in <input, index = 1>) -> (tensor<1xf64> in <output>, "
      "tensor<?x16x$T> in <products, constant = 128>, tensor<20x16x$G> in "
      "<gradient>) {\n"
      "  %l, %d, %h = dyna.linear_cross_entropy_train %x, %w, %t, %g "
      "{ignore_index = -7 : i64, places = [#dyna.place<output>, "
      "#dyna.place<products, constant = 128>, #dyna.place<gradient>, "
      "#dyna.place<workspace, constant = 192>]} : tensor<?x16x$T>, "
      "tensor<20x16x$T>, tensor<?xi32>, tensor<20x16x$G>\n"
      "  dyna.return %l, %d, %h : tensor<1xf64>, tensor<?x16x$T>, "
      "tensor<20x16x$G>\n}\n";
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    SCOPED_TRACE(nameOf(e));
    kernelLog() = KernelLog();
    char w[1], g[1], x[1], t[1], loss[1], products[256];
    Call call({3, 4});
    call.params = {{w, 0}};
    call.grads = {{g, 0}};
    call.in = {{x, 0}, {t, 0}};
    call.out = {{loss, 0}};
    call.saved.products = products;
    ASSERT_EQ(run(replaceAll(replaceAll(text, "$T", nameOf(e)), "$G",
                             accumulatorOf(e)),
                  call),
              DYNA_OK);
    ASSERT_EQ(kernelLog().head.size(), 1u);
    const dyna_head &head = kernelLog().head[0];
    EXPECT_EQ(head.rows, 7);
    EXPECT_EQ(head.width, 16);
    EXPECT_EQ(head.vocab, 20);
    EXPECT_EQ(head.target_rows, 7) << "what the segments say";
    EXPECT_EQ(head.whole_vocab, 0) << "w is the whole vocabulary";
    EXPECT_EQ(head.x, x);
    EXPECT_EQ(head.w, w);
    EXPECT_EQ((const void *)head.targets, t);
    EXPECT_EQ(head.ignore_index, -7);
    EXPECT_EQ((void *)head.loss_sum, loss);
    EXPECT_EQ(head.gradient_scale, 0.125);
    EXPECT_EQ(head.dx, products + 128);
    EXPECT_EQ(head.dw, g);
    EXPECT_EQ(head.workspace, static_cast<char *>(call.workspace) + 192);
    auto kernel = [](const char *name) -> void * {
      for (auto &[known, address] : testKernels())
        if (known == name)
          return address;
      return nullptr;
    };
    if (e == Element::F32) {
      EXPECT_EQ((void *)head.matmul, kernel("dyna_matmul_f32"));
      EXPECT_EQ((void *)head.matmul_input, kernel("dyna_matmul_f32"));
      EXPECT_EQ((void *)head.matmul_weight, kernel("dyna_matmul_f32"));
    } else if (e == Element::BF16) {
      EXPECT_EQ((void *)head.matmul, kernel("dyna_matmul_bf16_f32"));
      EXPECT_EQ((void *)head.matmul_input, kernel("dyna_matmul_bf16"));
      EXPECT_EQ((void *)head.matmul_weight, kernel("dyna_matmul_bf16_f32"));
    } else {
      EXPECT_NE(head.matmul, nullptr);
      EXPECT_EQ(head.matmul, head.matmul_input);
      EXPECT_EQ(head.matmul, head.matmul_weight);
    }
  }
}

//===----------------------------------------------------------------------===//
// Failures, copies, imports
//===----------------------------------------------------------------------===//

TEST_F(FunctionTest, ReturnsTheFirstFailure) {
  std::string sweep = " = dyna.rows : tensor<?x8xf32> {\n"
                      "    %0 = dyna.relu %x : tensor<?x8xf32>\n"
                      "    dyna.yield %0 : tensor<?x8xf32>\n"
                      "  } {places = [#dyna.place<output>]}\n";
  std::string text = "dyna.function @f of @l as forward(%x: tensor<?x8xf32> in "
                     "<input>) -> (tensor<?x8xf32> in <output>) {\n  %a" +
                     sweep + "  %b" + sweep + "  %c" + sweep +
                     "  dyna.return %c : tensor<?x8xf32>\n}\n";
  Tensor x = pattern(Element::F32, 40, 1), y(Element::F32, 40);
  Call call({5});
  call.in = {{x.data(), 0}};
  call.out = {{y.data(), 0}};
  ASSERT_EQ(run(text, call), DYNA_OK);
  EXPECT_EQ(kernelLog().launches, 3);
  kernelLog() = KernelLog();
  kernelLog().failingLaunch = 1;
  EXPECT_EQ(run(text, call), DYNA_DEVICE_ERROR);
  EXPECT_EQ(kernelLog().launches, 2) << "nothing runs after the failure";
}

/// The head's backward hands over what forward saved.
TEST_F(FunctionTest, CopiesWhatIsReturnedElsewhere) {
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    Tensor x = pattern(e, 45 * 23, 1), y(e, 45 * 23);
    Call call({5, 40});
    call.saved.products = x.data();
    call.out = {{y.data(), 0}};
    ASSERT_EQ(run(replaceAll("dyna.function @f of @l as backward(%x: "
                             "tensor<?x23x$T> in <products>) -> "
                             "(tensor<?x23x$T> in <output>) {\n"
                             "  dyna.return %x : tensor<?x23x$T>\n}\n",
                             "$T", nameOf(e)),
                  call),
              DYNA_OK);
    EXPECT_EQ(x.values(), y.values());
    EXPECT_TRUE(y.guardIntact());
  }
}

TEST_F(FunctionTest, AllMathIsGeneratedExceptInF64) {
  std::string text =
      "dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, %x: "
      "tensor<?x8x$T> in <input>) -> (tensor<?x8x$T> in <output>) {\n"
      "  %r = dyna.rows : tensor<?x8x$T> {\n"
      "    %0 = dyna.rotary %x, %s {head_dim = 8 : i64, theta = 1.0e4 : f64} : "
      "tensor<?x8x$T>\n"
      "    %1 = dyna.gelu %0 erf : tensor<?x8x$T>\n"
      "    %2 = dyna.gelu %1 tanh : tensor<?x8x$T>\n"
      "    %3 = dyna.silu %2 : tensor<?x8x$T>\n"
      "    dyna.yield %3 : tensor<?x8x$T>\n"
      "  } {places = [#dyna.place<output>]}\n"
      "  dyna.return %r : tensor<?x8x$T>\n}\n";
  for (Element e : {Element::F32, Element::BF16, Element::F64}) {
    CompiledModule compiled(layer + replaceAll(text, "$T", nameOf(e)));
    ASSERT_TRUE(compiled.ok());
    if (e == Element::F64)
      EXPECT_THAT(compiled.imports(),
                  testing::UnorderedElementsAre("dyna_launch", "erfc"));
    else
      EXPECT_THAT(compiled.imports(), testing::ElementsAre("dyna_launch"));
  }
}

} // namespace
