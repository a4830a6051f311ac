//===- CollectiveCases.h - Inputs of exchanges and what they give ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shapes, values by rank, and what a collective must make of them, written with
// none of the code under test.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_TRANSPORT_COLLECTIVECASES_H
#define DYNA_TEST_RUNTIME_TRANSPORT_COLLECTIVECASES_H

#include "test/runtime/transport/TransportConformance.h"

namespace dyna {

struct Bf16 {
  uint16_t bits;
  bool operator==(Bf16 other) const { return bits == other.bits; }
};

template <typename T> struct Element;
template <> struct Element<double> {
  static constexpr int32_t type = DYNA_ELEMENT_F64;
  static double from(double value) { return value; }
};
template <> struct Element<float> {
  static constexpr int32_t type = DYNA_ELEMENT_F32;
  static float from(double value) { return static_cast<float>(value); }
};
template <> struct Element<int32_t> {
  static constexpr int32_t type = DYNA_ELEMENT_I32;
  static int32_t from(double value) { return static_cast<int32_t>(value); }
};
template <> struct Element<Bf16> {
  static constexpr int32_t type = DYNA_ELEMENT_BF16;
  static Bf16 from(double value) { // exact for what the tests put in
    float narrow = static_cast<float>(value);
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    return {static_cast<uint16_t>(bits >> 16)};
  }
};

/// Runs `body` with a value of each element type.
template <typename Body> Status forEachType(Body &&body) {
  DYNA_RETURN_IF_ERROR(body(double()));
  DYNA_RETURN_IF_ERROR(body(float()));
  DYNA_RETURN_IF_ERROR(body(int32_t()));
  return body(Bf16());
}

/// A tensor [outer, split, inner], or all of [outer, first, middle, second,
/// inner].
struct Shape {
  int64_t outer, first, middle, second, inner;
  int64_t elements() const { return outer * first * middle * second * inner; }
};

/// The elements of `whole` whose place along a split dimension is in part
/// `index`, in order; by one walk over all, with none of the code under test.
template <typename T>
std::vector<T> partOf(const std::vector<T> &whole, const Shape &s, int ranks,
                      int index, bool ofSecond) {
  int64_t extent = ofSecond ? s.second : s.first;
  int64_t share = (extent + ranks - 1) / ranks;
  std::vector<T> part;
  for (size_t i = 0; i < whole.size(); ++i) {
    int64_t at = static_cast<int64_t>(i) / s.inner;
    int64_t second = at % s.second, first = at / s.second / s.middle % s.first;
    if ((ofSecond ? second : first) / std::max<int64_t>(share, 1) == index)
      part.push_back(whole[i]);
  }
  return part;
}

template <typename T>
std::vector<T> valuesOf(int rank, const Shape &shape, int salt) {
  std::vector<T> values;
  for (int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(Element<T>::from(valueAt(rank, i, salt)));
  return values;
}

/// Element by element over the given ranks.
template <typename T>
std::vector<T> reduced(const std::vector<int> &ranks, const Shape &shape,
                       int salt, int32_t reduction) {
  std::vector<T> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    int result = valueAt(ranks[0], i, salt);
    for (size_t r = 1; r < ranks.size(); ++r) {
      int value = valueAt(ranks[r], i, salt);
      result = reduction == DYNA_REDUCE_MAX ? std::max(result, value)
                                            : result + value;
    }
    values.push_back(Element<T>::from(result));
  }
  return values;
}

inline dyna_collective describe(const Shape &shape, int32_t element,
                                int32_t reduction, const void *in, void *out) {
  dyna_collective c = {};
  c.in = in, c.out = out;
  c.outer = shape.outer, c.split = shape.first, c.inner = shape.inner;
  c.element = element, c.reduction = reduction;
  return c;
}

inline const Shape kSplitShapes[] = {
    {1, 0, 1, 1, 5},  {0, 3, 1, 1, 1},    {1, 1, 1, 1, 1},
    {1, 2, 1, 1, 3},  {2, 5, 1, 1, 3},    {3, 7, 1, 1, 1},
    {1, 17, 1, 1, 4}, {5, 1000, 1, 1, 7}, {1, 200003, 1, 1, 1},
};

inline const Shape kTransposedShapes[] = {
    {1, 1, 1, 1, 1}, {1, 0, 2, 3, 1}, {2, 3, 1, 0, 2},    {1, 4, 1, 8, 1},
    {2, 5, 3, 7, 2}, {3, 9, 2, 5, 1}, {1, 130, 3, 70, 8},
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_TRANSPORT_COLLECTIVECASES_H
