//===- Values.h - What the reference evaluator computes with ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors of doubles, token ids and segments: whatever type the IR names, the
// evaluator keeps f64, so that its results are the exact ones that code of any
// compute type is compared with.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_VALUES_H
#define DYNA_TEST_REFERENCE_VALUES_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mlir::dyna::reference {

/// Row-major; the token dimension, if any, comes first.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  Tensor() = default;
  explicit Tensor(std::vector<int64_t> shape, double value = 0.0)
      : shape(std::move(shape)) {
    values.assign(countElements(this->shape), value);
  }

  static size_t countElements(const std::vector<int64_t> &shape) {
    size_t count = 1;
    for (int64_t size : shape)
      count *= static_cast<size_t>(size);
    return count;
  }

  int64_t rows() const { return shape.front(); }
  int64_t width() const { return shape.back(); }
  double &at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * shape.back() + column)];
  }
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * shape.back() + column)];
  }
  double &operator[](int64_t index) {
    return values[static_cast<size_t>(index)];
  }
  double operator[](int64_t index) const {
    return values[static_cast<size_t>(index)];
  }
};

using Ids = std::vector<int32_t>;

/// Queries [queryBegin, queryBegin + queryLength) of the micro-batch see keys
/// [keyBegin, keyBegin + keyLength); the first query stands at `position` of
/// `sample`.
struct Segment {
  int64_t sample = 0;
  int64_t queryBegin = 0;
  int64_t queryLength = 0;
  int64_t keyBegin = 0;
  int64_t keyLength = 0;
  int64_t position = 0;
};

struct Segments {
  std::vector<Segment> list;

  /// Whole samples with the given lengths laid end to end, numbered from
  /// `firstSample`.
  static Segments ofLengths(const std::vector<int64_t> &lengths,
                            int64_t firstSample = 0);
  int64_t tokens() const;
  /// Sample and position of every row.
  std::vector<int64_t> rowSamples() const;
  std::vector<int64_t> rowPositions() const;
};

/// Any value of the IR.
using Datum = std::variant<Tensor, Ids, Segments>;

/// Tensors by parameter name; ordered, so that tests visit them in one order.
using NamedTensors = std::map<std::string, Tensor>;

struct Optimizer {
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.0;
  double gradientScale = 1.0;
  double correction1 = 1.0;
  double correction2 = 1.0;
};

/// What a layer function knows beyond its tensors.
struct Context {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t layer = 0;
  double inverseTargets = 1.0;
  Optimizer optimizer;
  /// False in evaluation: dropouts of a layer are the identity.
  bool dropout = true;
  /// The number of the first feature of a rank that has a part of them.
  int64_t firstFeature = 0;
};

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_VALUES_H
