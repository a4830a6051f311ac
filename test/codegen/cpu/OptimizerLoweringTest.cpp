//===- OptimizerLoweringTest.cpp - Numbers of compiled updates -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The optimizer, the squares of gradients and casts, over all rows of a
// parameter and over a rank's.
//
//===----------------------------------------------------------------------===//

#include "test/codegen/cpu/FunctionTest.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace dyna::test;

namespace {

using OptimizerTest = FunctionTest;

/// With `narrow` the gradient is bf16.
std::string adamwText(Element e, const std::string &shape, bool decay,
                      bool narrow = false) {
  std::string text =
      "dyna.function @f of @l as update(%g: tensor<$Sx$H> in <gradient>, %p: "
      "tensor<$Sx$G> in <input>, %m: tensor<$Sx$G> in <input, index = 1>, %v: "
      "tensor<$Sx$G> in <input, index = 2>) -> (tensor<$Sx$H> in <gradient>, "
      "tensor<$Sx$G> in <input>, tensor<$Sx$G> in <input, index = 1>, "
      "tensor<$Sx$G> in <input, index = 2>$R) {\n"
      "  %p1, %g1, %m1, %v1 = dyna.adamw %p, %g, %m, %v {$Dplaces = "
      "[#dyna.place<input>, #dyna.place<gradient>, #dyna.place<input, index = "
      "1>, #dyna.place<input, index = 2>]} : tensor<$Sx$G>, tensor<$Sx$H>\n$C"
      "  dyna.return %g1, %p1, %m1, %v1$V : tensor<$Sx$H>, tensor<$Sx$G>, "
      "tensor<$Sx$G>, tensor<$Sx$G>$Y\n}\n";
  bool copy = e == Element::BF16;
  text = replaceAll(text, "$D", decay ? "decay, " : "");
  text = replaceAll(text, "$R", copy ? ", tensor<$Sxbf16> in <parameter>" : "");
  text = replaceAll(text, "$C",
                    copy ? "  %c = dyna.cast %p1 {places = "
                           "[#dyna.place<parameter>]} : tensor<$Sx$G> -> "
                           "tensor<$Sxbf16>\n"
                         : "");
  text = replaceAll(text, "$V", copy ? ", %c" : "");
  text = replaceAll(text, "$Y", copy ? ", tensor<$Sxbf16>" : "");
  text = replaceAll(text, "$H", narrow ? "bf16" : "$G");
  text = replaceAll(text, "$G", accumulatorOf(e));
  return replaceAll(text, "$S", shape);
}

const double kScale = 0.5;

dyna_optimizer optimizer(const double *scale = &kScale) {
  dyna_optimizer step = {};
  step.learning_rate = 1e-2;
  step.beta1 = 0.9;
  step.beta2 = 0.95;
  step.epsilon = 1e-8;
  step.weight_decay = 0.1;
  step.gradient_scale = scale;
  step.correction1 = 1 - std::pow(0.9, 3);
  step.correction2 = 1 - std::pow(0.95, 3);
  return step;
}

TEST_F(OptimizerTest, Adamw) {
  struct Case {
    Element element;
    const char *shape;
    size_t count;
    bool decay;
    bool narrow = false;
  } cases[] = {{Element::F32, "7x300", 2100, true},
               {Element::F64, "7x300", 2100, false},
               {Element::F32, "2048", 2048, false},
               {Element::F32, "5", 5, true},
               {Element::BF16, "40x1111", 44440, true},
               {Element::BF16, "40x1111", 44440, true, /*narrow=*/true},
               {Element::BF16, "5", 5, false, /*narrow=*/true}};
  for (const Case &test : cases) {
    SCOPED_TRACE(nameOf(test.element) + " " + test.shape);
    kernelLog() = KernelLog();
    Element acc = test.element == Element::F64 ? Element::F64 : Element::F32;
    Tensor p = pattern(acc, test.count, 1);
    Tensor g = pattern(test.narrow ? Element::BF16 : acc, test.count, 2);
    Tensor m = pattern(acc, test.count, 3), v = pattern(acc, test.count, 4);
    Tensor copy(Element::BF16, test.count);
    for (size_t i = 0; i < test.count; ++i)
      v.set(i, v.get(i) * v.get(i));
    std::vector<double> p0 = p.values(), g0 = g.values(), m0 = m.values(),
                        v0 = v.values();
    Call call({});
    call.context.optimizer = optimizer();
    int64_t rows = std::stoll(test.shape); // what stands before the x
    call.params = {{copy.data(), rows}};
    call.grads = {{g.data(), rows}};
    call.in = {{p.data(), rows}, {m.data(), rows}, {v.data(), rows}};
    ASSERT_EQ(
        run(adamwText(test.element, test.shape, test.decay, test.narrow), call),
        DYNA_OK);
    EXPECT_EQ(kernelLog().launches, 1) << "one sweep does all";
    dyna_optimizer o = optimizer();
    double tolerance = acc == Element::F64 ? 1e-14 : 3e-6;
    for (size_t i = 0; i < test.count; ++i) {
      double gradient = g0[i] * 0.5;
      double mi = 0.9 * m0[i] + 0.1 * gradient;
      double vi = 0.95 * v0[i] + 0.05 * gradient * gradient;
      double decayed = p0[i] * (test.decay ? 1 - 1e-2 * 0.1 : 1.0);
      double pi =
          decayed - 1e-2 / o.correction1 * mi /
                        (std::sqrt(vi) / std::sqrt(o.correction2) + 1e-8);
      ASSERT_NEAR(m.get(i), mi, tolerance);
      ASSERT_NEAR(v.get(i), vi, tolerance * (1 + vi));
      ASSERT_NEAR(p.get(i), pi, tolerance * (1 + std::abs(pi)));
      ASSERT_EQ(g.get(i), 0.0);
      if (test.element == Element::BF16)
        ASSERT_EQ(copy.get(i),
                  Tensor(Element::BF16, std::vector<double>{p.get(i)}).get(0));
    }
    for (Tensor *tensor : {&p, &g, &m, &v})
      EXPECT_TRUE(tensor->guardIntact());
  }
}

/// Where a loss or the norm is not finite nothing is updated, and the next step
/// starts from cleared gradients.
TEST_F(OptimizerTest, AdamwOfNoNumberClearsGradientsAlone) {
  const double none = std::nan("");
  for (bool narrow : {false, true})
    for (Element e : {Element::F32, Element::F64, Element::BF16}) {
      if (narrow && e != Element::BF16)
        continue;
      SCOPED_TRACE(nameOf(e) + (narrow ? " narrow" : ""));
      // A whole block, whole vectors and single elements.
      constexpr size_t kCount = 2100;
      Element acc = e == Element::F64 ? Element::F64 : Element::F32;
      Tensor p = pattern(acc, kCount, 1), m = pattern(acc, kCount, 3),
             v = pattern(acc, kCount, 4);
      Tensor g = pattern(narrow ? Element::BF16 : acc, kCount, 2);
      Tensor copy = pattern(Element::BF16, kCount, 5);
      g.set(3, INFINITY);
      g.set(kCount - 1, std::nan(""));
      const std::vector<double> before[] = {p.values(), m.values(), v.values(),
                                            copy.values()};
      Call call({});
      call.context.optimizer = optimizer(&none);
      call.params = {{copy.data(), 7}};
      call.grads = {{g.data(), 7}};
      call.in = {{p.data(), 7}, {m.data(), 7}, {v.data(), 7}};
      ASSERT_EQ(run(adamwText(e, "7x300", true, narrow), call), DYNA_OK);
      EXPECT_EQ(g.values(), std::vector<double>(kCount, 0.0));
      EXPECT_EQ(p.values(), before[0]);
      EXPECT_EQ(m.values(), before[1]);
      EXPECT_EQ(v.values(), before[2]);
      EXPECT_EQ(copy.values(), before[3]);
      for (Tensor *tensor : {&p, &g, &m, &v, &copy})
        EXPECT_TRUE(tensor->guardIntact());
    }
}

/// A tied parameter is updated elsewhere: its tensors are null here.
TEST_F(OptimizerTest, AdamwLeavesOutAbsentTensors) {
  Call call({});
  call.grads = {{nullptr, 0}};
  call.in = {{nullptr, 0}, {nullptr, 0}, {nullptr, 0}};
  ASSERT_EQ(run(adamwText(Element::F32, "300", true), call), DYNA_OK);
  EXPECT_EQ(kernelLog().launches, 0);
}

TEST_F(OptimizerTest, SumSquares) {
  for (Element e : {Element::F32, Element::F64, Element::BF16}) {
    std::string text = replaceAll(
        "dyna.function @f of @l as grad_norm(%a: tensor<300x301x$T> in "
        "<gradient>, %b: tensor<5x$T> in <gradient, index = 1>, %c: "
        "tensor<9x$T> in <gradient, index = 2>, %s: tensor<1xf64> in <output>) "
        "-> (tensor<1xf64> in <output>) {\n"
        "  %0 = dyna.sum_squares %a, %s {places = [#dyna.place<output>, "
        "#dyna.place<workspace>]} : tensor<300x301x$T>\n"
        "  %1 = dyna.sum_squares %b, %0 {places = [#dyna.place<output>, "
        "#dyna.place<workspace>]} : tensor<5x$T>\n"
        "  %2 = dyna.sum_squares %c, %1 {places = [#dyna.place<output>, "
        "#dyna.place<workspace>]} : tensor<9x$T>\n"
        "  dyna.return %2 : tensor<1xf64>\n}\n",
        "$T", nameOf(e));
    Tensor a = pattern(e, 300 * 301, 1), c = pattern(e, 9, 2);
    Tensor sum(Element::F64, std::vector<double>{2.0});
    Call call({});
    call.grads = {{a.data(), 300}, {nullptr, 0}, {c.data(), 9}};
    call.out = {{sum.data(), 1}};
    ASSERT_EQ(run(text, call), DYNA_OK);
    double expected = 2.0;
    for (Tensor *tensor : {&a, &c})
      for (double value : tensor->values())
        expected += value * value;
    EXPECT_DOUBLE_EQ(sum.get(0), expected); // multiples of 1/16: exact
  }
}

TEST_F(OptimizerTest, CastRoundsToNearestEven) {
  std::vector<std::pair<uint32_t, uint16_t>> cases = {
      {0x3F800000, 0x3F80}, // 1
      {0x3F808000, 0x3F80}, // half way, down to even
      {0x3F818000, 0x3F82}, // half way, up to even
      {0x3F808001, 0x3F81}, // above half way
      {0x7F7FFFFF, 0x7F80}, // overflows to infinity
      {0xFF800000, 0xFF80}, // -infinity
      {0x00000001, 0x0000}, // denormal
      {0x7F800001, 0x7FC0}, // NaN whose low bits are lost
      {0xFFFFFFFF, 0xFFFF}, // NaN that rounding would carry over
  };
  std::vector<uint32_t> from;
  for (auto &[bits, expected] : cases)
    from.push_back(bits);
  Tensor x(Element::F32, from.size()), y(Element::BF16, from.size());
  std::memcpy(x.data(), from.data(), 4 * from.size());
  Call call({});
  call.in = {{x.data(), 9}};
  call.params = {{y.data(), 9}};
  ASSERT_EQ(run("dyna.function @f of @l as cast(%x: tensor<9xf32> in <input>) "
                "-> (tensor<9xbf16> in <parameter>) {\n  %y = dyna.cast %x "
                "{places = [#dyna.place<parameter>]} : tensor<9xf32> -> "
                "tensor<9xbf16>\n  dyna.return %y : tensor<9xbf16>\n}\n",
                call),
            DYNA_OK);
  for (size_t i = 0; i < cases.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, static_cast<char *>(y.data()) + 2 * i, 2);
    EXPECT_EQ(bits, cases[i].second) << std::hex << cases[i].first;
  }
}

//===----------------------------------------------------------------------===//
// A rank's rows
//===----------------------------------------------------------------------===//

/// Rows [first, first + rows) of a parameter of `all` rows of `width` elements.
struct Rows {
  int64_t all, width, first, rows;
  std::string shape() const {
    return std::to_string(all) +
           (width == 1 ? "" : "x" + std::to_string(width));
  }
  bool holds(size_t element) const {
    auto row = static_cast<int64_t>(element) / width;
    return row >= first && row < first + rows;
  }
  dyna_tensor of(Tensor &tensor, Element element) const {
    auto *data = static_cast<char *>(tensor.data());
    return {data + first * width * bytesOf(element), rows};
  }
};

/// None, one, some and all rows; starts that are aligned to nothing; a run of
/// several blocks; a vector, whose rows are its elements.
const Rows rowCases[] = {{7, 300, 0, 0},  {7, 300, 7, 0},     {7, 300, 0, 7},
                         {7, 300, 3, 1},  {7, 301, 2, 5},     {40, 1111, 1, 38},
                         {2100, 1, 0, 9}, {2100, 1, 13, 2087}};

std::ostream &operator<<(std::ostream &out, const Rows &rows) {
  return out << rows.shape() << " from " << rows.first << ": " << rows.rows;
}

TEST_F(OptimizerTest, UpdatesTheRowsGivenAndNoOthers) {
  for (Element e : {Element::F32, Element::F64, Element::BF16})
    for (const Rows &rows : rowCases) {
      SCOPED_TRACE(testing::Message() << nameOf(e) << " " << rows);
      Element acc = e == Element::F64 ? Element::F64 : Element::F32;
      size_t count = rows.all * rows.width;
      // What a call over all rows makes of the same numbers.
      std::vector<Tensor> whole, part;
      for (std::vector<Tensor> *tensors : {&whole, &part}) {
        for (int seed = 0; seed < 4; ++seed)
          tensors->push_back(pattern(acc, count, seed));
        for (size_t i = 0; i < count; ++i)
          (*tensors)[3].set(i, std::abs((*tensors)[3].get(i)));
        tensors->push_back(pattern(Element::BF16, count, 4));
      }
      std::vector<std::vector<double>> before;
      for (Tensor &tensor : part)
        before.push_back(tensor.values());
      Rows all = {rows.all, rows.width, 0, rows.all};
      for (auto &[tensors, given] :
           {std::pair(&whole, all), std::pair(&part, rows)}) {
        Call call({});
        call.context.optimizer = optimizer();
        std::vector<Tensor> &t = *tensors;
        call.grads = {given.of(t[0], acc)};
        call.in = {given.of(t[1], acc), given.of(t[2], acc),
                   given.of(t[3], acc)};
        call.params = {given.of(t[4], Element::BF16)};
        ASSERT_EQ(run(adamwText(e, rows.shape(), true), call), DYNA_OK);
      }
      for (size_t t = 0; t < (e == Element::BF16 ? 5 : 4); ++t)
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(part[t].get(i),
                    rows.holds(i) ? whole[t].get(i) : before[t][i])
              << "tensor " << t << ", element " << i;
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(part[0].get(i), rows.holds(i) ? 0.0 : before[0][i]);
    }
}

TEST_F(OptimizerTest, SquaresOfTheRowsGiven) {
  for (Element e : {Element::F32, Element::F64, Element::BF16})
    for (const Rows &rows : rowCases) {
      SCOPED_TRACE(testing::Message() << nameOf(e) << " " << rows);
      std::string text = replaceAll(
          "dyna.function @f of @l as grad_norm(%a: tensor<$Sx$T> in "
          "<gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in "
          "<output>) {\n  %0 = dyna.sum_squares %a, %s {places = "
          "[#dyna.place<output>, #dyna.place<workspace>]} : tensor<$Sx$T>\n"
          "  dyna.return %0 : tensor<1xf64>\n}\n",
          "$T", nameOf(e));
      Tensor a = pattern(e, rows.all * rows.width, 1);
      Tensor sum(Element::F64, std::vector<double>{2.0});
      // What an earlier call left there must not be added.
      for (int chunk = 0; chunk < DYNA_MAX_CHUNKS; ++chunk)
        workspace.set(chunk, 1e6);
      Call call({});
      call.grads = {rows.of(a, e)};
      call.out = {{sum.data(), 1}};
      ASSERT_EQ(run(replaceAll(text, "$S", rows.shape()), call), DYNA_OK);
      double expected = 2.0;
      for (size_t i = 0; i < a.count(); ++i)
        if (rows.holds(i))
          expected += a.get(i) * a.get(i);
      EXPECT_DOUBLE_EQ(sum.get(0), expected); // multiples of 1/16: exact
    }
}

TEST_F(OptimizerTest, CastsTheRowsGivenAndNoOthers) {
  for (const Rows &rows : rowCases) {
    SCOPED_TRACE(testing::Message() << rows);
    Tensor x = pattern(Element::F32, rows.all * rows.width, 1);
    Tensor y = pattern(Element::BF16, x.count(), 2);
    std::vector<double> before = y.values();
    Call call({});
    call.in = {rows.of(x, Element::F32)};
    call.params = {rows.of(y, Element::BF16)};
    ASSERT_EQ(run(replaceAll("dyna.function @f of @l as cast(%x: tensor<$Sxf32>"
                             " in <input>) -> (tensor<$Sxbf16> in <parameter>)"
                             " {\n  %y = dyna.cast %x {places = "
                             "[#dyna.place<parameter>]} : tensor<$Sxf32> -> "
                             "tensor<$Sxbf16>\n"
                             "  dyna.return %y : tensor<$Sxbf16>\n}\n",
                             "$S", rows.shape()),
                  call),
              DYNA_OK);
    for (size_t i = 0; i < x.count(); ++i)
      ASSERT_EQ(y.get(i), rows.holds(i) ? x.get(i) : before[i]) << i;
  }
}

/// More rows than there are, or not the same of all tensors: nothing is done.
TEST_F(OptimizerTest, RefusesRowsThatCannotBe) {
  Tensor t[4] = {pattern(Element::F32, 2100, 0), pattern(Element::F32, 2100, 1),
                 pattern(Element::F32, 2100, 2),
                 pattern(Element::F32, 2100, 3)};
  std::vector<double> before = t[1].values();
  int64_t cases[][4] = {
      {8, 8, 8, 8}, {-1, -1, -1, -1}, {7, 7, 7, 6}, {6, 7, 7, 7}};
  for (auto &rows : cases) {
    Call call({});
    call.context.optimizer = optimizer();
    call.grads = {{t[0].data(), rows[0]}};
    call.in = {
        {t[1].data(), rows[1]}, {t[2].data(), rows[2]}, {t[3].data(), rows[3]}};
    EXPECT_EQ(run(adamwText(Element::F32, "7x300", true), call),
              DYNA_INVALID_ARGUMENT);
    EXPECT_EQ(kernelLog().launches, 0);
    EXPECT_EQ(t[1].values(), before);
  }
}

} // namespace
