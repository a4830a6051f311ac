//===- RowsLoweringTest.cpp - Numbers of compiled row-wise ops -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every row-wise op, compiled and run on ragged rows of several widths (with
// every kind of remainder) and types, against loops in f64.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "test/codegen/cpu/CompiledFunction.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <tuple>

using namespace dyna::test;

namespace {

using Row = std::vector<double>;

struct Setting {
  Element element;
  int64_t width;
  const char *options = "";
};

void PrintTo(const Setting &setting, std::ostream *out) {
  *out << nameOf(setting.element) << " x " << setting.width << " "
       << setting.options;
}

/// Replaces A (activation), V (vector parameter), M (50-row table), G (vector
/// accumulator) by types.
std::string typed(std::string text, const Setting &setting) {
  std::string width = std::to_string(setting.width);
  std::string type = nameOf(setting.element) + ">";
  std::vector<std::pair<std::string, std::string>> names = {
      {"$A", "tensor<?x" + width + "x" + type},
      {"$V", "tensor<" + width + "x" + type},
      {"$M", "tensor<50x" + width + "x" + type},
      {"$G", "tensor<" + width + "x" + accumulatorOf(setting.element) + ">"}};
  for (auto &[name, replacement] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), replacement);
  return text;
}

class RowsTest : public testing::TestWithParam<Setting> {
protected:
  const Setting &setting() const { return GetParam(); }
  int64_t width() const { return setting().width; }
  Element element() const { return setting().element; }
  Element accumulator() const {
    return element() == Element::F64 ? Element::F64 : Element::F32;
  }
  /// Relative to the larger of the value and `scale`.
  double tolerance() const {
    return element() == Element::F64   ? 1e-12
           : element() == Element::F32 ? 2e-6
                                       : 5e-3;
  }

  Tensor random(size_t count, Element element, double scale = 2.0) {
    Tensor tensor(element, count);
    for (size_t i = 0; i < count; ++i) {
      state = dyna_mix64(state);
      tensor.set(i, scale * (2.0 * (state >> 11) * 0x1p-53 - 1.0));
    }
    return tensor;
  }
  void addInput(double scale = 2.0) {
    inputs.push_back(random(call.tokens() * width(), element(), scale));
  }
  void addParameter(size_t rows = 1) {
    params.push_back(random(rows * width(), element()));
  }
  void addGradient() { grads.push_back(random(width(), accumulator())); }
  void addOutput() { outputs.emplace_back(element(), call.tokens() * width()); }

  /// Compiles `text` (a dyna.function @f) and runs it on the tensors.
  void run(const std::string &text) {
    CompiledModule compiled(
        typed("dyna.layer @l(%x: $A) -> $A { dyna.return %x : $A }\n" + text,
              setting()),
        setting().options);
    ASSERT_TRUE(compiled.ok());
    auto list = [](std::vector<Tensor> &tensors) {
      std::vector<dyna_tensor> result;
      for (Tensor &tensor : tensors)
        result.push_back({tensor.data(), 0});
      return result;
    };
    std::vector<unsigned char> workspace(1 << 22);
    uintptr_t address = reinterpret_cast<uintptr_t>(workspace.data());
    call.workspace = reinterpret_cast<void *>((address + 63) / 64 * 64);
    call.params = list(params);
    call.grads = list(grads);
    call.in = list(inputs);
    call.out = list(outputs);
    ASSERT_EQ(call.run(compiled.find("f")), DYNA_OK);
    for (auto *tensors : {&params, &grads, &inputs, &outputs})
      for (Tensor &tensor : *tensors)
        EXPECT_TRUE(tensor.guardIntact());
  }

  Row row(Tensor &tensor, int64_t index) {
    Row result(width());
    for (int64_t i = 0; i < width(); ++i)
      result[i] = tensor.get(index * width() + i);
    return result;
  }
  void expectRow(Tensor &tensor, int64_t index, const Row &expected,
                 double scale = 1.0) {
    for (int64_t i = 0; i < width(); ++i) {
      double got = tensor.get(index * width() + i);
      ASSERT_NEAR(got, expected[i],
                  tolerance() * std::max(std::abs(expected[i]), scale))
          << "row " << index << ", column " << i;
    }
  }
  /// Checks output 0 row by row.
  void expectRows(const std::function<Row(int64_t)> &reference,
                  double scale = 1.0) {
    for (int64_t i = 0; i < call.tokens(); ++i)
      expectRow(outputs[0], i, reference(i), scale);
  }

  uint64_t state = 1;
  Call call{{1, 7, 33, 0, 2, 100}};
  std::vector<Tensor> params, grads, inputs, outputs;
};

double geluTanh(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double geluErf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
/// Central difference: good to 1e-9 here.
double derivative(double (*f)(double), double x) {
  double h = 1e-5;
  return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h);
}

struct Norm {
  double mean = 0, scale = 0;
};
Norm layerNorm(const Row &x, double epsilon) {
  Norm norm;
  for (double value : x)
    norm.mean += value / x.size();
  double variance = 0;
  for (double value : x)
    variance += (value - norm.mean) * (value - norm.mean) / x.size();
  norm.scale = 1 / std::sqrt(variance + epsilon);
  return norm;
}
Norm rmsNorm(const Row &x, double epsilon) {
  double square = 0;
  for (double value : x)
    square += value * value / x.size();
  return {0.0, 1 / std::sqrt(square + epsilon)};
}

/// The gradient of sum(dy * w * normalise(x)) with respect to x, written as the
/// textbook has it.
Row normGradient(const Row &x, const Row &w, const Row &dy, Norm norm,
                 bool centered) {
  size_t n = x.size();
  double sum = 0, dot = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += w[i] * dy[i] / n;
    dot += w[i] * dy[i] * (x[i] - norm.mean) * norm.scale / n;
  }
  Row result(n);
  for (size_t i = 0; i < n; ++i)
    result[i] = norm.scale * (w[i] * dy[i] - (centered ? sum : 0) -
                              (x[i] - norm.mean) * norm.scale * dot);
  return result;
}

std::string unary(const std::string &op) {
  return "dyna.function @f of @l as forward(%x: $A in <input>) -> ($A in "
         "<output>) {\n"
         "  %r = dyna.rows : $A {\n    %y = " +
         op +
         "\n    dyna.yield %y : $A\n"
         "  } {places = [#dyna.place<output>]}\n  dyna.return %r : $A\n}\n";
}

std::string binary(const std::string &op) {
  return "dyna.function @f of @l as forward(%x: $A in <input>, %z: $A in "
         "<input, index = 1>) -> ($A in <output>) {\n"
         "  %r = dyna.rows : $A {\n    %y = " +
         op +
         "\n    dyna.yield %y : $A\n"
         "  } {places = [#dyna.place<output>]}\n  dyna.return %r : $A\n}\n";
}

TEST_P(RowsTest, Unary) {
  struct Case {
    const char *op;
    double (*f)(double);
  } cases[] = {
      {"dyna.gelu %x tanh : $A", geluTanh},
      {"dyna.gelu %x erf : $A", geluErf},
      {"dyna.silu %x : $A", silu},
      {"dyna.scale %x {factor = 0.5 : f64} : $A",
       [](double x) { return 0.5 * x; }},
      {"dyna.relu %x : $A", [](double x) { return std::max(x, 0.0); }}};
  for (const Case &test : cases) {
    SCOPED_TRACE(test.op);
    inputs.clear(), outputs.clear();
    addInput(12.0);
    addOutput();
    run(unary(test.op));
    expectRows([&](int64_t i) {
      Row x = row(inputs[0], i);
      for (double &value : x)
        value = test.f(value);
      return x;
    });
  }
}

TEST_P(RowsTest, Binary) {
  struct Case {
    const char *op;
    std::function<double(double, double)> f;
  } cases[] = {
      {"dyna.add %x, %z : $A", [](double x, double z) { return x + z; }},
      {"dyna.mul %x, %z : $A", [](double x, double z) { return x * z; }},
      {"dyna.gelu_grad %x, %z tanh : $A",
       [](double x, double z) { return z * derivative(geluTanh, x); }},
      {"dyna.gelu_grad %x, %z erf : $A",
       [](double x, double z) { return z * derivative(geluErf, x); }},
      {"dyna.silu_grad %x, %z : $A",
       [](double x, double z) { return z * derivative(silu, x); }},
      {"dyna.relu_grad %x, %z : $A",
       [](double x, double z) { return x > 0 ? z : 0.0; }}};
  for (const Case &test : cases) {
    SCOPED_TRACE(test.op);
    inputs.clear(), outputs.clear();
    addInput(6.0);
    addInput();
    addOutput();
    run(binary(test.op));
    // The differences are no better than 1e-9.
    double scale = element() == Element::F64 ? 1e3 : 1.0;
    expectRows(
        [&](int64_t i) {
          Row x = row(inputs[0], i), z = row(inputs[1], i);
          for (int64_t c = 0; c < width(); ++c)
            x[c] = test.f(x[c], z[c]);
          return x;
        },
        scale);
  }
}

TEST_P(RowsTest, Norms) {
  for (bool centered : {true, false}) {
    SCOPED_TRACE(centered);
    inputs.clear(), outputs.clear(), params.clear();
    addInput();
    addOutput();
    addParameter();
    addParameter();
    std::string op =
        centered
            ? "dyna.layer_norm %x, %w, %b {epsilon = 1.0e-5 : f64} : $A, $V"
            : "dyna.rms_norm %x, %w {epsilon = 1.0e-5 : f64} : $A, $V";
    run("dyna.function @f of @l as forward(%w: $V in <parameter>, %b: $V in "
        "<parameter, index = 1>, %x: $A in <input>) -> ($A in <output>) {\n"
        "  %r = dyna.rows : $A {\n    %y = " +
        op +
        "\n    dyna.yield %y : $A\n  } {places = [#dyna.place<output>]}\n"
        "  dyna.return %r : $A\n}\n");
    expectRows([&](int64_t i) {
      Row x = row(inputs[0], i);
      Norm norm = centered ? layerNorm(x, 1e-5) : rmsNorm(x, 1e-5);
      for (int64_t c = 0; c < width(); ++c)
        x[c] = (x[c] - norm.mean) * norm.scale * params[0].get(c) +
               (centered ? params[1].get(c) : 0.0);
      return x;
    });
  }
}

TEST_P(RowsTest, NormGradients) {
  for (bool centered : {true, false}) {
    SCOPED_TRACE(centered);
    inputs.clear(), outputs.clear(), params.clear(), grads.clear();
    addInput();
    addInput();
    addOutput();
    addParameter();
    addGradient();
    addGradient();
    std::vector<double> before0 = grads[0].values(),
                        before1 = grads[1].values();
    std::string ops =
        centered
            ? "    %d = dyna.layer_norm_grad_input %x, %w, %z {epsilon = "
              "1.0e-5 "
              ": f64} : $A, $V\n    %g, %h = dyna.layer_norm_grad_weight %x, "
              "%z, %g0, %h0 {epsilon = 1.0e-5 : f64} : $A, $G\n"
            : "    %d = dyna.rms_norm_grad_input %x, %w, %z {epsilon = 1.0e-5 "
              ": "
              "f64} : $A, $V\n    %g = dyna.rms_norm_grad_weight %x, %z, %g0 "
              "{epsilon = 1.0e-5 : f64} : $A, $G\n    %h = dyna.bias_grad %z, "
              "%h0 : $A, $G\n";
    run("dyna.function @f of @l as backward(%w: $V in <parameter>, %g0: $G in "
        "<gradient>, %h0: $G in <gradient, index = 1>, %x: $A in <input>, %z: "
        "$A in <input, index = 1>) -> ($A in <output>, $G in <gradient>, $G in "
        "<gradient, index = 1>) {\n  %r:3 = dyna.rows : $A, $G, $G {\n" +
        ops +
        "    dyna.yield %d, %g, %h : $A, $G, $G\n"
        "  } {places = [#dyna.place<output>, #dyna.place<gradient>, "
        "#dyna.place<gradient, index = 1>, #dyna.place<workspace, constant = "
        "64>]}\n  dyna.return %r#0, %r#1, %r#2 : $A, $G, $G\n}\n");
    Row weight = row(params[0], 0), sumW = before0, sumB = before1;
    expectRows(
        [&](int64_t i) {
          Row x = row(inputs[0], i), dy = row(inputs[1], i);
          Norm norm = centered ? layerNorm(x, 1e-5) : rmsNorm(x, 1e-5);
          for (int64_t c = 0; c < width(); ++c) {
            sumW[c] += dy[c] * (x[c] - norm.mean) * norm.scale;
            sumB[c] += dy[c];
          }
          return normGradient(x, weight, dy, norm, centered);
        },
        // One column: the variance is 0 and the terms cancel at
        // 1/sqrt(epsilon).
        width() == 1 ? 1e3 : 10.0);
    double scale = element() == Element::BF16 ? 0.1 : 30.0;
    expectRow(grads[0], 0, sumW, scale);
    expectRow(grads[1], 0, sumB, scale);
  }
}

TEST_P(RowsTest, Dropout) {
  addInput();
  addOutput();
  run("dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, %x: "
      "$A in <input>) -> ($A in <output>) {\n  %r = dyna.rows : $A {\n"
      "    %y = dyna.dropout %x, %s {instance = 3 : i64, probability = 2.5e-1 "
      ": "
      "f64} : $A\n    dyna.yield %y : $A\n  } {places = "
      "[#dyna.place<output>]}\n  dyna.return %r : $A\n}\n");
  uint64_t key = dyna_random_op_key(42, 5, 2, 3);
  expectRows([&](int64_t i) {
    Row x = row(inputs[0], i);
    uint64_t rowKey =
        dyna_random_row_key(key, call.rowSample[i], call.rowPosition[i]);
    for (int64_t c = 0; c < width(); ++c)
      x[c] = dyna_random_element(rowKey, c) < dyna_dropout_threshold(0.25)
                 ? 0.0
                 : x[c] / 0.75;
    return x;
  });
}

TEST_P(RowsTest, PositionsBiasAndSecondUse) {
  addInput();
  addOutput();
  addOutput();
  call = Call({1, 7, 33, 0, 2, 50});
  addParameter(50);
  addParameter();
  run("dyna.function @f of @l as forward(%t: $M in <parameter>, %b: $V in "
      "<parameter, index = 1>, %s: !dyna.segments in <segments>, %x: $A in "
      "<input>) -> ($A in <output>, $A in <output, index = 1>) {\n"
      "  %r:2 = dyna.rows : $A, $A {\n"
      "    %p = dyna.positions %t, %s : $M\n"
      "    %h = dyna.add %x, %p : $A\n"
      "    %y = dyna.bias %h, %b : $A, $V\n"
      "    dyna.yield %h, %y : $A, $A\n  } {places = [#dyna.place<output>, "
      "#dyna.place<output, index = 1>]}\n"
      "  dyna.return %r#0, %r#1 : $A, $A\n}\n");
  for (int64_t i = 0; i < call.tokens(); ++i) {
    Row h = row(inputs[0], i), p = row(params[0], call.rowPosition[i]);
    for (int64_t c = 0; c < width(); ++c)
      h[c] += p[c];
    expectRow(outputs[0], i, h);
    for (int64_t c = 0; c < width(); ++c)
      h[c] += params[1].get(c);
    expectRow(outputs[1], i, h);
  }
}

/// x + z, its norm, and a product of the norm with a value of the first pass
/// that nobody yields: read back from its place, and from the stack.
TEST_P(RowsTest, SeveralPasses) {
  addInput();
  addInput();
  addOutput();
  addOutput();
  addParameter();
  run("dyna.function @f of @l as forward(%w: $V in <parameter>, %x: $A in "
      "<input>, %z: $A in <input, index = 1>) -> ($A in <output>, $A in "
      "<output, index = 1>) {\n"
      "  %r:2 = dyna.rows : $A, $A {\n"
      "    %h = dyna.add %x, %z : $A\n"
      "    %k = dyna.mul %x, %z : $A\n"
      "    %n = dyna.rms_norm %h, %w {epsilon = 1.0e-5 : f64} : $A, $V\n"
      "    %m = dyna.rms_norm %n, %w {epsilon = 1.0e-5 : f64} : $A, $V\n"
      "    %y = dyna.mul %m, %k : $A\n"
      "    dyna.yield %h, %y : $A, $A\n  } {places = [#dyna.place<output>, "
      "#dyna.place<output, index = 1>]}\n"
      "  dyna.return %r#0, %r#1 : $A, $A\n}\n");
  for (int64_t i = 0; i < call.tokens(); ++i) {
    Row h = row(inputs[0], i), z = row(inputs[1], i), k = h;
    for (int64_t c = 0; c < width(); ++c) {
      h[c] += z[c];
      k[c] *= z[c];
    }
    expectRow(outputs[0], i, h);
    if (element() == Element::BF16)
      h = row(outputs[0], i); // later passes see what was stored
    for (int round = 0; round < 2; ++round) {
      Norm norm = rmsNorm(h, 1e-5);
      for (int64_t c = 0; c < width(); ++c)
        h[c] *= norm.scale * params[0].get(c);
    }
    for (int64_t c = 0; c < width(); ++c)
      h[c] *= k[c];
    expectRow(outputs[1], i, h);
  }
}

/// The factor by which a scaling changes a frequency; of llama3 as transformers has
/// it, by wavelengths.
static double rotaryFactor(int scaling, double frequency) {
  constexpr double factor = 4, low = 1, high = 5, positions = 300;
  if (scaling == 0)
    return 1;
  if (scaling == 1)
    return 1 / factor;
  const double wavelength = 2 * std::acos(-1.0) / frequency;
  if (wavelength < positions / high)
    return 1;
  if (wavelength > positions / low)
    return 1 / factor;
  const double smooth = (positions / wavelength - low) / (high - low);
  return (1 - smooth) / factor + smooth;
}

TEST_P(RowsTest, Rotary) {
  if (width() % 2 != 0)
    GTEST_SKIP() << "heads have an even size";
  const char *scalings[] = {
      "", ", scaling = #dyna.rope_scaling<factor = 4.0>",
      ", scaling = #dyna.rope_scaling<factor = 4.0, low_freq_factor = 1.0, "
      "high_freq_factor = 5.0, original_positions = 300>"};
  for (auto [heads, inverse, scaling] : {std::tuple(1, false, 0),
                                         {2, false, 0},
                                         {4, false, 0},
                                         {1, true, 0},
                                         {2, true, 0},
                                         {4, true, 0},
                                         {1, false, 1},
                                         {2, true, 1},
                                         {1, false, 2},
                                         {1, true, 2},
                                         {2, false, 2}}) {
    if (width() % (2 * heads) != 0)
      continue;
    SCOPED_TRACE(testing::Message() << heads << " heads" << scalings[scaling]);
    int64_t headDim = width() / heads;
    inputs.clear(), outputs.clear();
    addInput();
    addOutput();
    run("dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, "
        "%x: $A in <input>) -> ($A in <output>) {\n  %r = dyna.rows : $A {\n"
        "    %y = dyna.rotary %x, %s {head_dim = " +
        std::to_string(headDim) + " : i64, theta = 1.0e4 : f64" +
        (inverse ? ", inverse" : "") + scalings[scaling] +
        "} : $A\n    %q = dyna.add %y, %y : $A\n    dyna.yield %q : $A\n"
        "  } {places = [#dyna.place<output>]}\n  dyna.return %r : $A\n}\n");
    expectRows([&, inverse = inverse, scaling = scaling](int64_t i) {
      Row x = row(inputs[0], i), y = x;
      for (int64_t c = 0; c < width(); ++c) {
        int64_t j = c % headDim, half = headDim / 2;
        const double frequency = std::pow(1e4, -2.0 * (j % half) / headDim);
        double angle =
            call.rowPosition[i] * frequency * rotaryFactor(scaling, frequency);
        double sine = std::sin(angle) * (inverse ? -1 : 1);
        y[c] = j < half ? x[c] * std::cos(angle) - x[c + half] * sine
                        : x[c] * std::cos(angle) + x[c - half] * sine;
        y[c] *= 2;
      }
      return y;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Widths, RowsTest,
    testing::Values(Setting{Element::F64, 24}, Setting{Element::F64, 7},
                    Setting{Element::F32, 1}, Setting{Element::F32, 16},
                    Setting{Element::F32, 47}, Setting{Element::F32, 100},
                    Setting{Element::F32, 384}, Setting{Element::BF16, 40},
                    Setting{Element::BF16, 128},
                    Setting{Element::F32, 128, "streaming-bytes=0"},
                    Setting{Element::BF16, 160, "streaming-bytes=0"},
                    Setting{Element::F32, 100, "vector-bits=256"}));

} // namespace
