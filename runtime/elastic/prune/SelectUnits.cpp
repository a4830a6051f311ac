//===- SelectUnits.cpp - Finds a model's largest heads or channels --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/SelectUnits.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace dyna {
namespace {

/// Sums of ranks go through doubles, which hold integers of 53 bits.
constexpr int exactBits = 53, mostBits = 30;
/// Exponents of doubles, denormals included, counted from 0.
constexpr int leastExponent = -1074, exponents = 2100;

template <typename T> class UnitSelection {
public:
  UnitSelection(const std::vector<UnitBox<T>> &boxes, int64_t units,
                int64_t kept, int64_t mostWeights, const SumCounts &sum)
      : boxes_(boxes), units_(units), kept_(kept), sum_(sum), bits_(mostBits) {
    while (bits_ > 1 && (mostWeights >> (exactBits - bits_)) > 0)
      --bits_;
  }

  StatusOr<std::vector<uint8_t>> run() {
    if (kept_ < 0 || kept_ > units_)
      return Status::invalidArgument(formatText(
          "pruning: %d units are to survive, but there are %d", kept_, units_));
    DYNA_RETURN_IF_ERROR(findScale());
    DYNA_RETURN_IF_ERROR(addMagnitudes());
    std::vector<int64_t> order(static_cast<size_t>(units_));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::tuple(-upper_[a], -lower_[a], a) <
             std::tuple(-upper_[b], -lower_[b], b);
    });
    std::vector<uint8_t> survives(order.size(), 0);
    for (int64_t i = 0; i < kept_; ++i)
      survives[static_cast<size_t>(order[static_cast<size_t>(i)])] = 1;
    return survives;
  }

private:
  template <typename Function> void forEach(const Function &function) const {
    for (const UnitBox<T> &one : boxes_)
      for (int64_t row = 0; row < one.box.rows; ++row)
        for (int64_t column = 0; column < one.box.columns; ++column)
          function(static_cast<double>(std::abs(
                       one.box.values[row * one.box.columns + column])),
                   one.unitOf(row, column));
  }

  /// Finds the power of two above the largest magnitude of all ranks.
  Status findScale() {
    std::vector<int64_t> counts(exponents + 1);
    double largest = 0;
    bool isFinite = true;
    forEach([&](double magnitude, int64_t) {
      isFinite &= std::isfinite(magnitude);
      largest = std::max(largest, magnitude);
    });
    int exponent = 0;
    if (isFinite && largest > 0) {
      std::frexp(largest, &exponent); // below 2^exponent
      ++counts[static_cast<size_t>(exponent - leastExponent)];
    }
    counts[exponents] = isFinite ? 0 : 1;
    DYNA_RETURN_IF_ERROR(sum_(counts));
    if (counts[exponents] > 0)
      return Status::invalidArgument(
          "pruning: a weight is infinite or no number (NaN), so units have no "
          "order: go on from an earlier checkpoint");
    int top = exponents - 1;
    while (top > 0 && counts[static_cast<size_t>(top)] == 0)
      --top;
    exponent_ = top + leastExponent;
    return Status::ok();
  }

  Status addMagnitudes() {
    const double half = std::ldexp(1.0, bits_);
    std::vector<int64_t> sums(static_cast<size_t>(2 * units_));
    forEach([&](double magnitude, int64_t unit) {
      // Scaling is exact, except for what is lost below the lowest bit.
      const double scaled = scale(magnitude);
      const double upper = std::floor(scaled);
      sums[static_cast<size_t>(2 * unit)] += static_cast<int64_t>(upper);
      sums[static_cast<size_t>(2 * unit + 1)] +=
          static_cast<int64_t>((scaled - upper) * half);
    });
    DYNA_RETURN_IF_ERROR(sum_(sums));
    for (int64_t unit = 0; unit < units_; ++unit) {
      const int64_t lower = sums[static_cast<size_t>(2 * unit + 1)];
      upper_.push_back(sums[static_cast<size_t>(2 * unit)] + (lower >> bits_));
      lower_.push_back(lower & ((int64_t{1} << bits_) - 1));
    }
    return Status::ok();
  }

  double scale(double magnitude) const {
    return std::ldexp(magnitude, bits_ - exponent_);
  }

  const std::vector<UnitBox<T>> &boxes_;
  const int64_t units_, kept_;
  const SumCounts &sum_;
  int bits_;
  int exponent_ = 0;
  std::vector<int64_t> upper_, lower_;
};

} // namespace

template <typename T>
StatusOr<std::vector<uint8_t>>
selectUnits(const std::vector<UnitBox<T>> &boxes, int64_t units, int64_t kept,
            int64_t mostWeights, const SumCounts &sum) {
  return UnitSelection<T>(boxes, units, kept, mostWeights, sum).run();
}

template StatusOr<std::vector<uint8_t>>
selectUnits<float>(const std::vector<UnitBox<float>> &, int64_t, int64_t,
                   int64_t, const SumCounts &);
template StatusOr<std::vector<uint8_t>>
selectUnits<double>(const std::vector<UnitBox<double>> &, int64_t, int64_t,
                    int64_t, const SumCounts &);

} // namespace dyna
