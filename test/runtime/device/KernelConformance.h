//===- KernelConformance.h - What the suites of kernels share ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_DEVICE_KERNELCONFORMANCE_H
#define DYNA_TEST_RUNTIME_DEVICE_KERNELCONFORMANCE_H

#include "runtime/base/load/LinearBytes.h"
#include "test/runtime/device/DeviceConformance.h"
#include "test/runtime/device/Naive.h"

namespace dyna {

using naive::Bf16;
using naive::Matrix;

/// How far results may lie from the f64 loops, relative to the largest element:
/// rounding of one element for sums in the type, times a factor for the length
/// of sums; bf16 has 8 bits of mantissa and rounds inputs of the backward pass
/// too.
template <typename T> double tolerance();
template <> inline double tolerance<double>() { return 1e-13; }
template <> inline double tolerance<float>() { return 4e-6; }
template <> inline double tolerance<Bf16>() { return 1.0 / 128; }

template <typename T>
void expectNear(const std::vector<T> &actual, const Matrix &expected,
                double tolerance, const std::string &what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1e-3;
  for (double value : expected)
    if (std::isfinite(value))
      largest = std::fmax(largest, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    double value = naive::toDouble(actual[i]);
    if (std::isinf(expected[i]))
      ASSERT_EQ(value, expected[i]) << what << " at " << i;
    else
      ASSERT_NEAR(value, expected[i], tolerance * largest)
          << what << " at " << i;
  }
}

template <typename T> std::vector<T> filled(int64_t n, double value) {
  std::vector<T> result(static_cast<size_t>(n));
  for (T &element : result)
    naive::fromDouble(value, element);
  return result;
}

/// Kernels of one compute type.
template <typename T> struct Functions;
template <> struct Functions<float> {
  using Sum = float;
  static constexpr auto attention = dyna_attention_f32;
  static constexpr auto attentionGrad = dyna_attention_grad_f32;
  static constexpr auto head = dyna_head_f32;
};
template <> struct Functions<double> {
  using Sum = double;
  static constexpr auto attention = dyna_attention_f64;
  static constexpr auto attentionGrad = dyna_attention_grad_f64;
  static constexpr auto head = dyna_head_f64;
};
template <> struct Functions<Bf16> {
  using Sum = float;
  static constexpr auto attention = dyna_attention_bf16;
  static constexpr auto attentionGrad = dyna_attention_grad_bf16;
  static constexpr auto head = dyna_head_bf16;
};

constexpr int64_t kCanaryBytes = 4096;

/// Scratch of a formula's size, full of not-a-numbers, and a canary behind it.
inline std::vector<uint8_t> makeWorkspace(const dyna_linear_bytes &formula,
                                          int64_t tq, int64_t tkv,
                                          int64_t segments) {
  int64_t bytes =
      LinearBytes{formula.tq, formula.tkv, formula.s, formula.constant}.at(
          {tq, tkv, segments});
  return std::vector<uint8_t>(static_cast<size_t>(bytes + kCanaryBytes), 0xff);
}

inline void expectCanary(const std::vector<uint8_t> &workspace) {
  for (size_t i = workspace.size() - kCanaryBytes; i < workspace.size(); ++i)
    ASSERT_EQ(workspace[i], 0xff)
        << "byte " << i + kCanaryBytes - workspace.size()
        << " past the formula";
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_DEVICE_KERNELCONFORMANCE_H
