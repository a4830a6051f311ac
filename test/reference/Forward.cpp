//===- Forward.cpp - The model ops as naive loops -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/Formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mlir::dyna::reference {

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

Segments Segments::ofLengths(const std::vector<int64_t> &lengths,
                             int64_t firstSample) {
  Segments segments;
  int64_t begin = 0;
  for (int64_t length : lengths) {
    segments.list.push_back({firstSample++, begin, length, begin, length, 0});
    begin += length;
  }
  return segments;
}

int64_t Segments::tokens() const {
  int64_t count = 0;
  for (const Segment &segment : list)
    count += segment.queryLength;
  return count;
}

std::vector<int64_t> Segments::rowSamples() const {
  std::vector<int64_t> result(static_cast<size_t>(tokens()));
  for (const Segment &segment : list)
    for (int64_t i = 0; i < segment.queryLength; ++i)
      result[static_cast<size_t>(segment.queryBegin + i)] = segment.sample;
  return result;
}

std::vector<int64_t> Segments::rowPositions() const {
  std::vector<int64_t> result(static_cast<size_t>(tokens()));
  for (const Segment &segment : list)
    for (int64_t i = 0; i < segment.queryLength; ++i)
      result[static_cast<size_t>(segment.queryBegin + i)] =
          segment.position + i;
  return result;
}

//===----------------------------------------------------------------------===//
// Tables and matrix products
//===----------------------------------------------------------------------===//

Tensor embedding(const Ids &ids, const Tensor &table) {
  int64_t tokens = static_cast<int64_t>(ids.size());
  Tensor result({tokens, table.width()});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < table.width(); ++j)
      result.at(t, j) = table.at(ids[static_cast<size_t>(t)], j);
  return result;
}

Tensor positions(const Tensor &table, const Segments &segments) {
  std::vector<int64_t> rows = segments.rowPositions();
  Tensor result({static_cast<int64_t>(rows.size()), table.width()});
  for (int64_t t = 0; t < result.rows(); ++t)
    for (int64_t j = 0; j < table.width(); ++j)
      result.at(t, j) = table.at(rows[static_cast<size_t>(t)], j);
  return result;
}

Tensor linear(const Tensor &x, const Tensor &weight, const Tensor *bias) {
  Tensor result({x.rows(), weight.rows()});
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t o = 0; o < weight.rows(); ++o) {
      double sum = bias ? (*bias)[o] : 0.0;
      for (int64_t i = 0; i < weight.width(); ++i)
        sum += x.at(t, i) * weight.at(o, i);
      result.at(t, o) = sum;
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

template <typename Function>
static Tensor map(const Tensor &x, Function function) {
  Tensor result(x.shape);
  for (size_t i = 0; i < x.values.size(); ++i)
    result.values[i] = function(x.values[i]);
  return result;
}

Tensor bias(const Tensor &x, const Tensor &bias) {
  Tensor result = x;
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t j = 0; j < x.width(); ++j)
      result.at(t, j) += bias[j];
  return result;
}

Tensor add(const Tensor &x, const Tensor &y) {
  Tensor result = x;
  for (size_t i = 0; i < x.values.size(); ++i)
    result.values[i] += y.values[i];
  return result;
}

Tensor mul(const Tensor &x, const Tensor &y) {
  Tensor result = x;
  for (size_t i = 0; i < x.values.size(); ++i)
    result.values[i] *= y.values[i];
  return result;
}

Tensor layerNorm(const Tensor &x, const Tensor &weight, const Tensor &bias,
                 double epsilon) {
  Tensor result(x.shape);
  double width = static_cast<double>(x.width());
  for (int64_t t = 0; t < x.rows(); ++t) {
    double mean = 0.0, variance = 0.0;
    for (int64_t j = 0; j < x.width(); ++j)
      mean += x.at(t, j) / width;
    for (int64_t j = 0; j < x.width(); ++j)
      variance += std::pow(x.at(t, j) - mean, 2) / width;
    for (int64_t j = 0; j < x.width(); ++j)
      result.at(t, j) =
          (x.at(t, j) - mean) / std::sqrt(variance + epsilon) * weight[j] +
          bias[j];
  }
  return result;
}

Tensor rmsNorm(const Tensor &x, const Tensor &weight, double epsilon) {
  Tensor result(x.shape);
  for (int64_t t = 0; t < x.rows(); ++t) {
    double meanSquare = 0.0;
    for (int64_t j = 0; j < x.width(); ++j)
      meanSquare += x.at(t, j) * x.at(t, j) / static_cast<double>(x.width());
    for (int64_t j = 0; j < x.width(); ++j)
      result.at(t, j) =
          x.at(t, j) / std::sqrt(meanSquare + epsilon) * weight[j];
  }
  return result;
}

double rotaryFrequency(int64_t j, int64_t headDim, double theta,
                       const RotaryScaling &scaling) {
  const double frequency = std::pow(theta, -2.0 * static_cast<double>(j) /
                                               static_cast<double>(headDim));
  if (scaling.factor == 0)
    return frequency;
  if (scaling.positions == 0)
    return frequency / scaling.factor;
  // As transformers has it, by wavelengths.
  const double wavelength = 2 * std::acos(-1.0) / frequency;
  if (wavelength < scaling.positions / scaling.high)
    return frequency;
  if (wavelength > scaling.positions / scaling.low)
    return frequency / scaling.factor;
  const double smooth = (scaling.positions / wavelength - scaling.low) /
                        (scaling.high - scaling.low);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

Tensor rotary(const Tensor &x, const Segments &segments, int64_t headDim,
              double theta, bool inverse, const RotaryScaling &scaling) {
  std::vector<int64_t> rows = segments.rowPositions();
  Tensor result(x.shape);
  int64_t half = headDim / 2;
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t head = 0; head < x.width() / headDim; ++head)
      for (int64_t j = 0; j < half; ++j) {
        double frequency = rotaryFrequency(j, headDim, theta, scaling);
        double angle =
            static_cast<double>(rows[static_cast<size_t>(t)]) * frequency;
        if (inverse)
          angle = -angle;
        int64_t first = head * headDim + j, second = first + half;
        double a = x.at(t, first), b = x.at(t, second);
        result.at(t, first) = a * std::cos(angle) - b * std::sin(angle);
        result.at(t, second) = b * std::cos(angle) + a * std::sin(angle);
      }
  return result;
}

Tensor gelu(const Tensor &x, bool tanhForm) {
  const double pi = std::acos(-1.0);
  return map(x, [&](double a) {
    if (!tanhForm)
      return a / 2 * (1 + std::erf(a / std::sqrt(2.0)));
    return a / 2 *
           (1 + std::tanh(std::sqrt(2 / pi) * (a + 0.044715 * a * a * a)));
  });
}

Tensor silu(const Tensor &x) {
  return map(x, [](double a) { return a / (1 + std::exp(-a)); });
}

Tensor relu(const Tensor &x) {
  return map(x, [](double a) { return a > 0 ? a : 0.0; });
}

Tensor dropout(const Tensor &x, const Segments &segments, double probability,
               uint64_t instance, const Context &context) {
  if (!context.dropout)
    return x;
  std::vector<int64_t> samples = segments.rowSamples();
  std::vector<int64_t> rows = segments.rowPositions();
  Tensor result = x;
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t j = 0; j < x.width(); ++j) {
      size_t row = static_cast<size_t>(t);
      bool dropped = isDropped(context, instance, probability,
                               static_cast<uint64_t>(samples[row]),
                               static_cast<uint64_t>(rows[row]),
                               static_cast<uint64_t>(context.firstFeature + j));
      result.at(t, j) = dropped ? 0.0 : x.at(t, j) / (1 - probability);
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Attention and loss
//===----------------------------------------------------------------------===//

AttentionResult attention(const Tensor &query, const Tensor &key,
                          const Tensor &value, const Segments &segments,
                          const AttentionShape &shape) {
  AttentionResult forward;
  forward.result = Tensor(query.shape);
  forward.lse = Tensor({query.rows(), shape.heads});
  int64_t headDim = query.width() / shape.heads;
  for (const Segment &segment : segments.list)
    for (int64_t head = 0; head < shape.heads; ++head) {
      int64_t kvHead = head / (shape.heads / shape.kvHeads);
      for (int64_t i = 0; i < segment.queryLength; ++i) {
        int64_t row = segment.queryBegin + i;
        int64_t visible = segment.keyLength;
        if (shape.causal)
          visible = segment.keyLength - segment.queryLength + i + 1;
        std::vector<double> scores;
        for (int64_t s = 0; s < visible; ++s) {
          double dot = 0.0;
          for (int64_t d = 0; d < headDim; ++d)
            dot += query.at(row, head * headDim + d) *
                   key.at(segment.keyBegin + s, kvHead * headDim + d);
          scores.push_back(dot * shape.scale);
        }
        double largest = *std::max_element(scores.begin(), scores.end());
        double sum = 0.0;
        for (double score : scores)
          sum += std::exp(score - largest);
        forward.lse.at(row, head) = largest + std::log(sum);
        for (int64_t s = 0; s < visible; ++s)
          for (int64_t d = 0; d < headDim; ++d)
            forward.result.at(row, head * headDim + d) +=
                std::exp(scores[static_cast<size_t>(s)] - largest) / sum *
                value.at(segment.keyBegin + s, kvHead * headDim + d);
      }
    }
  return forward;
}

double linearCrossEntropy(const Tensor &x, const Tensor &weight,
                          const Ids &targets, int64_t ignoreIndex) {
  Tensor logits = linear(x, weight, nullptr);
  double loss = 0.0;
  for (int64_t t = 0; t < x.rows(); ++t) {
    int64_t target = targets[static_cast<size_t>(t)];
    if (target == ignoreIndex)
      continue;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (int64_t c = 0; c < logits.width(); ++c)
      largest = std::max(largest, logits.at(t, c));
    for (int64_t c = 0; c < logits.width(); ++c)
      sum += std::exp(logits.at(t, c) - largest);
    loss += largest + std::log(sum) - logits.at(t, target);
  }
  return loss;
}

} // namespace mlir::dyna::reference
