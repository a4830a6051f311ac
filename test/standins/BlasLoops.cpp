//===- BlasLoops.cpp - Products of cuBLASLt's stand-in ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/BlasLoops.h"

#include <cmath>
#include <cstring>
#include <vector>

using namespace dyna::standins;

namespace {

struct Bf16 {
  uint16_t bits;
};

double widen(double value) { return value; }
float widen(float value) { return value; }
float widen(Bf16 value) {
  uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}
void narrow(double value, double &to) { to = value; }
void narrow(float value, float &to) { to = value; }
void narrow(float value, Bf16 &to) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits =
      std::isnan(value) ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1);
  to.bits = static_cast<uint16_t>(bits >> 16);
}

double round10(double value) { return value; }
/// To the nearest with 10 bits of mantissa.
float round10(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = (bits + 0xfff + ((bits >> 13) & 1)) & ~0x1fffu;
  memcpy(&value, &bits, 4);
  return value;
}

/// Rows [0, rows) of a matrix, elements [begin, end) of each, side by side;
/// element (row, i) lies at `matrix[row * rowStride + i * stride]`.
template <typename Sum, typename T>
std::vector<Sum> gather(const T *matrix, int64_t rows, int64_t rowStride,
                        int64_t begin, int64_t end, int64_t stride,
                        bool isTf32) {
  std::vector<Sum> result;
  result.reserve(static_cast<size_t>(rows * (end - begin)));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = begin; i < end; ++i) {
      Sum value = widen(matrix[row * rowStride + i * stride]);
      result.push_back(isTf32 ? round10(value) : value);
    }
  return result;
}

template <typename Sum> Sum dot(const Sum *a, const Sum *b, int64_t count) {
  constexpr int64_t kLanes = 16;
  Sum lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += a[i + lane] * b[i + lane];
  Sum sum = 0;
  for (Sum lane : lanes)
    sum += lane;
  for (; i < count; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Sums of op(A) op(B) over [begin, end) of k, column-major.
template <typename AB, typename Sum>
std::vector<Sum> sums(const BlasWork &work, int64_t begin, int64_t end) {
  auto a = gather<Sum>(static_cast<const AB *>(work.a), work.m,
                       work.transposeA ? work.lda : 1, begin, end,
                       work.transposeA ? 1 : work.lda, work.isTf32);
  auto b = gather<Sum>(static_cast<const AB *>(work.b), work.n,
                       work.transposeB ? 1 : work.ldb, begin, end,
                       work.transposeB ? work.ldb : 1, work.isTf32);
  const int64_t depth = end - begin;
  std::vector<Sum> result(static_cast<size_t>(work.m * work.n));
  for (int64_t j = 0; j < work.n; ++j)
    for (int64_t i = 0; i < work.m; ++i)
      result[static_cast<size_t>(j * work.m + i)] =
          dot(a.data() + i * depth, b.data() + j * depth, depth);
  return result;
}

template <typename Sum> constexpr Sum kGeluCubic = Sum(0.044715);
template <typename Sum>
const Sum kGeluScale = std::sqrt(Sum(2) / std::acos(Sum(-1)));

/// By tanh.
template <typename Sum> Sum gelu(Sum x) {
  Sum t = std::tanh(kGeluScale<Sum> * (x + kGeluCubic<Sum> * x * x * x));
  return x / 2 * (1 + t);
}
template <typename Sum> Sum geluGrad(Sum x) {
  Sum t = std::tanh(kGeluScale<Sum> * (x + kGeluCubic<Sum> * x * x * x));
  Sum slope = kGeluScale<Sum> * (1 + 3 * kGeluCubic<Sum> * x * x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * slope;
}

/// What becomes of element (i, j) before it is rounded.
template <typename C, typename Sum>
Sum applyEpilogue(const BlasWork &work, Sum value, int64_t i, int64_t j) {
  auto *aux = static_cast<C *>(work.aux);
  if (work.epilogue == BlasEpilogue::None)
    return value;
  if (work.epilogue == BlasEpilogue::GeluGrad)
    return value * geluGrad(static_cast<Sum>(widen(aux[j * work.ldAux + i])));
  value += widen(static_cast<const C *>(work.bias)[i]);
  if (work.epilogue == BlasEpilogue::Bias)
    return value;
  if (aux)
    narrow(value, aux[j * work.ldAux + i]);
  return gelu(value);
}

template <typename C, typename Sum>
void write(const BlasWork &work, const std::vector<Sum> &sums) {
  const auto *c = static_cast<const C *>(work.c);
  auto *d = static_cast<C *>(work.d);
  for (int64_t j = 0; j < work.n; ++j)
    for (int64_t i = 0; i < work.m; ++i) {
      Sum value = static_cast<Sum>(work.alpha) *
                  sums[static_cast<size_t>(j * work.m + i)];
      // C is not read where it does not count: it may hold anything.
      if (work.beta != 0)
        value += static_cast<Sum>(work.beta) * widen(c[j * work.ldc + i]);
      narrow(applyEpilogue<C>(work, value, i, j), d[j * work.ldd + i]);
    }
}

template <typename AB, typename C, typename Sum>
void run(const BlasWork &work) {
  const int64_t half = work.k / 2;
  switch (work.stage) {
  case BlasStage::Whole:
    write<C>(work, sums<AB, Sum>(work, 0, work.k));
    break;
  case BlasStage::Rounding: {
    std::vector<Sum> first = sums<AB, Sum>(work, 0, half);
    std::vector<Sum> second = sums<AB, Sum>(work, half, work.k);
    for (size_t i = 0; i < first.size(); ++i) {
      C rounded[2];
      narrow(first[i], rounded[0]);
      narrow(second[i], rounded[1]);
      first[i] = widen(rounded[0]) + widen(rounded[1]);
    }
    write<C>(work, first);
    break;
  }
  case BlasStage::Parts: {
    std::vector<Sum> first = sums<AB, Sum>(work, 0, half);
    memcpy(work.workspace, first.data(), first.size() * sizeof(Sum));
    break;
  }
  case BlasStage::Sum: {
    std::vector<Sum> second = sums<AB, Sum>(work, half, work.k);
    const auto *first = static_cast<const Sum *>(work.workspace);
    for (size_t i = 0; i < second.size(); ++i)
      second[i] += first[i];
    write<C>(work, second);
    break;
  }
  }
}

void product(const void *arguments) {
  const auto &work = *static_cast<const BlasWork *>(arguments);
  if (work.isOutside)
    dyna_emulated_trap("a product of memory that is not the device's");
  switch (work.types) {
  case BlasTypes::F64:
    return run<double, double, double>(work);
  case BlasTypes::F32:
    return run<float, float, float>(work);
  case BlasTypes::Bf16:
    return run<Bf16, Bf16, float>(work);
  case BlasTypes::Bf16F32:
    return run<Bf16, float, float>(work);
  }
}

const dyna_emulated_entry kEntries[] = {
    {"standin_product", product, sizeof(BlasWork)}};

} // namespace

const dyna_emulated_image &dyna::standins::blasImage() {
  static const dyna_emulated_image image = {DYNA_EMULATED_MAGIC, sizeof(image),
                                            1, kEntries, dyna_emulated_run};
  return image;
}
