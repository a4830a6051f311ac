//===- Backward.cpp - Gradients and the optimizer as naive loops ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/Formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mlir::dyna::reference {

//===----------------------------------------------------------------------===//
// Tables and matrix products
//===----------------------------------------------------------------------===//

void addEmbeddingGrad(Tensor &accumulator, const Tensor &dy, const Ids &ids) {
  for (int64_t t = 0; t < dy.rows(); ++t)
    for (int64_t j = 0; j < dy.width(); ++j)
      accumulator.at(ids[static_cast<size_t>(t)], j) += dy.at(t, j);
}

void addPositionsGrad(Tensor &accumulator, const Tensor &dy,
                      const Segments &segments) {
  std::vector<int64_t> rows = segments.rowPositions();
  for (int64_t t = 0; t < dy.rows(); ++t)
    for (int64_t j = 0; j < dy.width(); ++j)
      accumulator.at(rows[static_cast<size_t>(t)], j) += dy.at(t, j);
}

Tensor linearGradInput(const Tensor &dy, const Tensor &weight) {
  Tensor result({dy.rows(), weight.width()});
  for (int64_t t = 0; t < dy.rows(); ++t)
    for (int64_t i = 0; i < weight.width(); ++i)
      for (int64_t o = 0; o < weight.rows(); ++o)
        result.at(t, i) += dy.at(t, o) * weight.at(o, i);
  return result;
}

void addLinearGradWeight(Tensor &accumulator, const Tensor &dy,
                         const Tensor &x) {
  for (int64_t t = 0; t < dy.rows(); ++t)
    for (int64_t o = 0; o < dy.width(); ++o)
      for (int64_t i = 0; i < x.width(); ++i)
        accumulator.at(o, i) += dy.at(t, o) * x.at(t, i);
}

void addBiasGrad(Tensor &accumulator, const Tensor &dy) {
  for (int64_t t = 0; t < dy.rows(); ++t)
    for (int64_t j = 0; j < dy.width(); ++j)
      accumulator[j] += dy.at(t, j);
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

/// `dy * slope(x)`.
template <typename Function>
static Tensor chain(const Tensor &x, const Tensor &dy, Function slope) {
  Tensor result(x.shape);
  for (size_t i = 0; i < x.values.size(); ++i)
    result.values[i] = dy.values[i] * slope(x.values[i]);
  return result;
}

Tensor geluGrad(const Tensor &x, const Tensor &dy, bool tanhForm) {
  const double pi = std::acos(-1.0);
  if (!tanhForm)
    return chain(x, dy, [&](double a) {
      double density = std::exp(-a * a / 2) / std::sqrt(2 * pi);
      return (1 + std::erf(a / std::sqrt(2.0))) / 2 + a * density;
    });
  return chain(x, dy, [&](double a) {
    double c = std::sqrt(2 / pi);
    double t = std::tanh(c * (a + 0.044715 * a * a * a));
    double inner = c * (1 + 3 * 0.044715 * a * a);
    return (1 + t) / 2 + a / 2 * (1 - t * t) * inner;
  });
}

Tensor siluGrad(const Tensor &x, const Tensor &dy) {
  return chain(x, dy, [](double a) {
    double sigmoid = 1 / (1 + std::exp(-a));
    return sigmoid + a * sigmoid * (1 - sigmoid);
  });
}

Tensor reluGrad(const Tensor &x, const Tensor &dy) {
  return chain(x, dy, [](double a) { return a > 0 ? 1.0 : 0.0; });
}

namespace {
/// x of one row without mean, divided by its deviation.
struct NormalizedRow {
  std::vector<double> values;
  double inverse = 0.0; ///< 1 / sqrt(variance + epsilon)
};
} // namespace

static NormalizedRow normalizeRow(const Tensor &x, int64_t row, bool centred,
                                  double epsilon) {
  double width = static_cast<double>(x.width()), mean = 0.0, square = 0.0;
  for (int64_t j = 0; centred && j < x.width(); ++j)
    mean += x.at(row, j) / width;
  for (int64_t j = 0; j < x.width(); ++j)
    square += std::pow(x.at(row, j) - mean, 2) / width;
  NormalizedRow result;
  result.inverse = 1 / std::sqrt(square + epsilon);
  for (int64_t j = 0; j < x.width(); ++j)
    result.values.push_back((x.at(row, j) - mean) * result.inverse);
  return result;
}

/// Both norms: with g = dy * weight and n the normalised row,
/// dx = (g - [mean g] - n mean(g n)) / deviation.
static Tensor normGradInput(const Tensor &x, const Tensor &weight,
                            const Tensor &dy, bool centred, double epsilon) {
  Tensor result(x.shape);
  double width = static_cast<double>(x.width());
  for (int64_t t = 0; t < x.rows(); ++t) {
    NormalizedRow row = normalizeRow(x, t, centred, epsilon);
    double mean = 0.0, projection = 0.0;
    for (int64_t j = 0; j < x.width(); ++j) {
      double g = dy.at(t, j) * weight[j];
      mean += centred ? g / width : 0.0;
      projection += g * row.values[static_cast<size_t>(j)] / width;
    }
    for (int64_t j = 0; j < x.width(); ++j)
      result.at(t, j) = (dy.at(t, j) * weight[j] - mean -
                         row.values[static_cast<size_t>(j)] * projection) *
                        row.inverse;
  }
  return result;
}

Tensor layerNormGradInput(const Tensor &x, const Tensor &weight,
                          const Tensor &dy, double epsilon) {
  return normGradInput(x, weight, dy, /*centred=*/true, epsilon);
}

Tensor rmsNormGradInput(const Tensor &x, const Tensor &weight, const Tensor &dy,
                        double epsilon) {
  return normGradInput(x, weight, dy, /*centred=*/false, epsilon);
}

void addLayerNormGradWeight(Tensor &weight, Tensor &bias, const Tensor &x,
                            const Tensor &dy, double epsilon) {
  for (int64_t t = 0; t < x.rows(); ++t) {
    NormalizedRow row = normalizeRow(x, t, /*centred=*/true, epsilon);
    for (int64_t j = 0; j < x.width(); ++j) {
      weight[j] += dy.at(t, j) * row.values[static_cast<size_t>(j)];
      bias[j] += dy.at(t, j);
    }
  }
}

void addRmsNormGradWeight(Tensor &weight, const Tensor &x, const Tensor &dy,
                          double epsilon) {
  for (int64_t t = 0; t < x.rows(); ++t) {
    NormalizedRow row = normalizeRow(x, t, /*centred=*/false, epsilon);
    for (int64_t j = 0; j < x.width(); ++j)
      weight[j] += dy.at(t, j) * row.values[static_cast<size_t>(j)];
  }
}

//===----------------------------------------------------------------------===//
// Attention and loss
//===----------------------------------------------------------------------===//

/// One query row of one head: adds what it contributes to all three.
static void addAttentionRowGrad(AttentionGradients &gradients,
                                const Tensor &query, const Tensor &key,
                                const Tensor &value,
                                const AttentionResult &forward,
                                const Tensor &dResult, const Segment &segment,
                                const AttentionShape &shape, int64_t i,
                                int64_t head) {
  int64_t headDim = query.width() / shape.heads;
  int64_t kvHead = head / (shape.heads / shape.kvHeads);
  int64_t row = segment.queryBegin + i, column = head * headDim;
  int64_t visible = shape.causal
                        ? segment.keyLength - segment.queryLength + i + 1
                        : segment.keyLength;
  double delta = 0.0;
  for (int64_t d = 0; d < headDim; ++d)
    delta += dResult.at(row, column + d) * forward.result.at(row, column + d);
  for (int64_t s = 0; s < visible; ++s) {
    int64_t keyRow = segment.keyBegin + s, keyColumn = kvHead * headDim;
    double dot = 0.0, dProbability = 0.0;
    for (int64_t d = 0; d < headDim; ++d) {
      dot += query.at(row, column + d) * key.at(keyRow, keyColumn + d);
      dProbability +=
          dResult.at(row, column + d) * value.at(keyRow, keyColumn + d);
    }
    double probability =
        std::exp(dot * shape.scale - forward.lse.at(row, head));
    double dDot = probability * (dProbability - delta) * shape.scale;
    for (int64_t d = 0; d < headDim; ++d) {
      gradients.query.at(row, column + d) +=
          dDot * key.at(keyRow, keyColumn + d);
      gradients.key.at(keyRow, keyColumn + d) +=
          dDot * query.at(row, column + d);
      gradients.value.at(keyRow, keyColumn + d) +=
          probability * dResult.at(row, column + d);
    }
  }
}

AttentionGradients
attentionGrad(const Tensor &query, const Tensor &key, const Tensor &value,
              const AttentionResult &forward, const Tensor &dResult,
              const Segments &segments, const AttentionShape &shape) {
  AttentionGradients gradients{Tensor(query.shape), Tensor(key.shape),
                               Tensor(value.shape)};
  for (const Segment &segment : segments.list)
    for (int64_t head = 0; head < shape.heads; ++head)
      for (int64_t i = 0; i < segment.queryLength; ++i)
        addAttentionRowGrad(gradients, query, key, value, forward, dResult,
                            segment, shape, i, head);
  return gradients;
}

Tensor linearCrossEntropyGrad(Tensor &weightAccumulator, const Tensor &x,
                              const Tensor &weight, const Ids &targets,
                              int64_t ignoreIndex, double scale) {
  Tensor dLogits = linear(x, weight, nullptr);
  for (int64_t t = 0; t < x.rows(); ++t) {
    int64_t target = targets[static_cast<size_t>(t)];
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (int64_t c = 0; c < dLogits.width(); ++c)
      largest = std::max(largest, dLogits.at(t, c));
    for (int64_t c = 0; c < dLogits.width(); ++c)
      sum += std::exp(dLogits.at(t, c) - largest);
    for (int64_t c = 0; c < dLogits.width(); ++c) {
      double probability = std::exp(dLogits.at(t, c) - largest) / sum;
      double wanted = c == target ? 1.0 : 0.0;
      dLogits.at(t, c) =
          target == ignoreIndex ? 0.0 : (probability - wanted) * scale;
    }
  }
  addLinearGradWeight(weightAccumulator, dLogits, x);
  return linearGradInput(dLogits, weight);
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

void adamw(Tensor &master, Tensor &gradient, Tensor &m, Tensor &v, bool decay,
           const Optimizer &optimizer) {
  for (size_t i = 0; i < master.values.size(); ++i) {
    double g = gradient.values[i] * optimizer.gradientScale;
    double &first = m.values[i], &second = v.values[i];
    first = optimizer.beta1 * first + (1 - optimizer.beta1) * g;
    second = optimizer.beta2 * second + (1 - optimizer.beta2) * g * g;
    double step =
        (first / optimizer.correction1) /
        (std::sqrt(second / optimizer.correction2) + optimizer.epsilon);
    if (decay)
      step += optimizer.weightDecay * master.values[i];
    master.values[i] -= optimizer.learningRate * step;
    gradient.values[i] = 0.0;
  }
}

double sumSquares(const Tensor &x) {
  double sum = 0.0;
  for (double value : x.values)
    sum += value * value;
  return sum;
}

} // namespace mlir::dyna::reference
