//===- Naive.h - Plain loops that kernels are held against ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Everything in f64, straight from the definitions in runtime/abi/Kernels.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_DEVICE_NAIVE_H
#define DYNA_TEST_RUNTIME_DEVICE_NAIVE_H

#include "runtime/abi/Kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace naive {

using Matrix = std::vector<double>;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

struct Bf16 {
  uint16_t bits;
};

inline double toDouble(float value) { return value; }
inline double toDouble(double value) { return value; }
inline double toDouble(Bf16 value) {
  uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}
inline void fromDouble(double value, float &result) {
  result = static_cast<float>(value);
}
inline void fromDouble(double value, double &result) { result = value; }
inline void fromDouble(double value, Bf16 &result) {
  float single = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (!std::isnan(single))
    bits += 0x7fff + ((bits >> 16) & 1);
  result.bits = static_cast<uint16_t>(bits >> 16);
}

/// Random values that the element type holds exactly.
template <typename T>
std::vector<T> randomElements(int64_t n, std::mt19937 &random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> result(static_cast<size_t>(n));
  for (T &element : result)
    fromDouble(uniform(random), element);
  return result;
}

template <typename T> Matrix toDoubles(const std::vector<T> &values) {
  Matrix result;
  for (const T &value : values)
    result.push_back(toDouble(value));
  return result;
}

//===----------------------------------------------------------------------===//
// Matrix product
//===----------------------------------------------------------------------===//

/// C of `p`, whose operands are given as f64 with the same strides.
inline void matmul(const dyna_matmul &p, const Matrix &a, const Matrix &b,
                   Matrix &c) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.accumulate ? c[i * p.ldc + j] : 0;
      for (int64_t l = 0; l < p.k; ++l)
        sum += (p.transpose_a ? a[l * p.lda + i] : a[i * p.lda + l]) *
               (p.transpose_b ? b[j * p.ldb + l] : b[l * p.ldb + j]);
      c[i * p.ldc + j] = sum;
    }
}

/// By tanh.
inline double gelu(double x) {
  double scale = std::sqrt(2 / std::acos(-1.0));
  return x / 2 * (1 + std::tanh(scale * (x + 0.044715 * x * x * x)));
}
inline double geluGrad(double x) {
  double scale = std::sqrt(2 / std::acos(-1.0));
  double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

/// What the description makes of the product in `c`, and of `aux`.
inline void epilogue(const dyna_matmul &p, const dyna_epilogue &described,
                     const Matrix &bias, Matrix &c, Matrix &aux) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double &value = c[i * p.ldc + j];
      double *saved =
          aux.empty() ? nullptr : &aux[i * described.aux_stride + j];
      if (described.kind == DYNA_EPILOGUE_GELU_GRAD) {
        value *= geluGrad(*saved);
        continue;
      }
      value += bias[j];
      if (described.kind == DYNA_EPILOGUE_BIAS)
        continue;
      if (saved)
        *saved = value;
      value = gelu(value);
    }
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct Attention {
  std::vector<dyna_segment> segments;
  int64_t tq, tkv, heads, kvHeads, headDim;
  double scale;
  bool causal;
  int64_t qStride, kStride, vStride, outStride;
};

/// Weights of the keys for one query and head.
inline Matrix weightsOf(const Attention &p, const dyna_segment &s,
                        int64_t query, int64_t head, const Matrix &q,
                        const Matrix &k, double &lse) {
  int64_t seen = p.causal ? s.kv_len - s.q_len + query + 1 : s.kv_len;
  seen = seen < 0 ? 0 : seen;
  int64_t kvHead = head / (p.heads / p.kvHeads);
  Matrix weights;
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (int64_t d = 0; d < p.headDim; ++d)
      score += q[(s.q_begin + query) * p.qStride + head * p.headDim + d] *
               k[(s.kv_begin + j) * p.kStride + kvHead * p.headDim + d];
    weights.push_back(score * p.scale);
    most = std::fmax(most, weights.back());
  }
  double sum = 0;
  for (double &weight : weights)
    sum += weight = std::exp(weight - most);
  for (double &weight : weights)
    weight /= sum;
  lse = most + std::log(sum);
  return weights;
}

/// Calls body(segment, query, head) for all.
template <typename Body> void forQueries(const Attention &p, Body body) {
  for (const dyna_segment &s : p.segments)
    for (int64_t query = 0; query < s.q_len; ++query)
      for (int64_t head = 0; head < p.heads; ++head)
        body(s, query, head);
}

inline void attention(const Attention &p, const Matrix &q, const Matrix &k,
                      const Matrix &v, Matrix &out, Matrix &lse) {
  forQueries(p, [&](const dyna_segment &s, int64_t query, int64_t head) {
    int64_t row = s.q_begin + query, kvHead = head / (p.heads / p.kvHeads);
    Matrix weights =
        weightsOf(p, s, query, head, q, k, lse[row * p.heads + head]);
    for (int64_t d = 0; d < p.headDim; ++d) {
      double sum = 0;
      for (size_t j = 0; j < weights.size(); ++j)
        sum +=
            weights[j] * v[(s.kv_begin + static_cast<int64_t>(j)) * p.vStride +
                           kvHead * p.headDim + d];
      out[row * p.outStride + head * p.headDim + d] = sum;
    }
  });
}

/// dq, dk, dv come in as zeros.
inline void attentionGrad(const Attention &p, const Matrix &q, const Matrix &k,
                          const Matrix &v, const Matrix &dout, Matrix &dq,
                          Matrix &dk, Matrix &dv) {
  forQueries(p, [&](const dyna_segment &s, int64_t query, int64_t head) {
    int64_t kvHead = head / (p.heads / p.kvHeads);
    const double *gradient =
        &dout[(s.q_begin + query) * p.outStride + head * p.headDim];
    double lse, mean = 0;
    Matrix weights = weightsOf(p, s, query, head, q, k, lse);
    Matrix dWeights(weights.size());
    for (size_t j = 0; j < weights.size(); ++j) {
      int64_t row = s.kv_begin + static_cast<int64_t>(j);
      for (int64_t d = 0; d < p.headDim; ++d) {
        dWeights[j] +=
            gradient[d] * v[row * p.vStride + kvHead * p.headDim + d];
        dv[row * p.vStride + kvHead * p.headDim + d] +=
            weights[j] * gradient[d];
      }
      mean += weights[j] * dWeights[j];
    }
    for (size_t j = 0; j < weights.size(); ++j) {
      int64_t row = s.kv_begin + static_cast<int64_t>(j);
      double dScore = weights[j] * (dWeights[j] - mean) * p.scale;
      for (int64_t d = 0; d < p.headDim; ++d) {
        int64_t at = (s.q_begin + query) * p.qStride + head * p.headDim + d;
        int64_t keyAt = row * p.kStride + kvHead * p.headDim + d;
        dq[at] += dScore * k[keyAt];
        dk[keyAt] += dScore * q[at];
      }
    }
  });
}

//===----------------------------------------------------------------------===//
// Head
//===----------------------------------------------------------------------===//

/// Returns the loss; writes dx and adds to dw.
inline double head(const dyna_head &p, const Matrix &x, const Matrix &w,
                   const int32_t *targets, Matrix &dx, Matrix &dw) {
  double loss = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t d = 0; d < p.width; ++d)
      dx[row * p.width + d] = 0;
    if (targets[row] == p.ignore_index)
      continue;
    Matrix logits(static_cast<size_t>(p.vocab));
    double most = -1e300, sum = 0;
    for (int64_t t = 0; t < p.vocab; ++t) {
      for (int64_t d = 0; d < p.width; ++d)
        logits[t] += x[row * p.width + d] * w[t * p.width + d];
      if (p.narrow_logits) {
        Bf16 narrow;
        fromDouble(logits[t], narrow);
        logits[t] = toDouble(narrow);
      }
      most = std::fmax(most, logits[t]);
    }
    for (double logit : logits)
      sum += std::exp(logit - most);
    loss += most + std::log(sum) - logits[targets[row]];
    for (int64_t t = 0; t < p.vocab; ++t) {
      double gradient = std::exp(logits[t] - most) / sum - (t == targets[row]);
      gradient *= p.gradient_scale;
      for (int64_t d = 0; d < p.width; ++d) {
        dx[row * p.width + d] += gradient * w[t * p.width + d];
        dw[t * p.width + d] += gradient * x[row * p.width + d];
      }
    }
  }
  return loss;
}

} // namespace naive

#endif // DYNA_TEST_RUNTIME_DEVICE_NAIVE_H
