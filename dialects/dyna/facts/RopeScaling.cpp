//===- RopeScaling.cpp - Computes the frequencies of rotary positions -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/facts/RopeScaling.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <tuple>

using namespace mlir;
using namespace mlir::dyna;

LogicalResult
RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        FloatAttr factor, FloatAttr lowFreqFactor,
                        FloatAttr highFreqFactor, int64_t originalPositions) {
  auto isNumber = [](FloatAttr value) {
    return value.getType().isF64() && value.getValue().isFinite();
  };
  // ROPE1
  if (!isNumber(factor) || factor.getValueAsDouble() < 1)
    return emitError() << "expects 'factor' to be an f64 of at least 1 and "
                          "finite, but got "
                       << factor;
  // ROPE2
  const int given = int(bool(lowFreqFactor)) + int(bool(highFreqFactor)) +
                    int(originalPositions != 0);
  if (given != 0 && given != 3)
    return emitError() << "expects all of 'low_freq_factor', "
                          "'high_freq_factor' and 'original_positions' or "
                          "none, but got "
                       << given;
  if (given == 0)
    return success();
  // ROPE3
  if (!isNumber(lowFreqFactor) || !isNumber(highFreqFactor) ||
      !(lowFreqFactor.getValueAsDouble() > 0) ||
      !(lowFreqFactor.getValueAsDouble() < highFreqFactor.getValueAsDouble()))
    return emitError() << "expects 0 < 'low_freq_factor' < "
                          "'high_freq_factor', f64 and finite, but got "
                       << lowFreqFactor << " and " << highFreqFactor;
  if (originalPositions < 0)
    return emitError() << "expects 'original_positions' to be positive, but "
                          "got "
                       << originalPositions;
  return success();
}

RopeScaling RopeScaling::of(RopeScalingAttr attribute) {
  RopeScaling scaling;
  if (!attribute)
    return scaling;
  scaling.factor = attribute.getFactor().getValueAsDouble();
  scaling.originalPositions = attribute.getOriginalPositions();
  if (scaling.originalPositions > 0) {
    scaling.lowFreqFactor = attribute.getLowFreqFactor().getValueAsDouble();
    scaling.highFreqFactor = attribute.getHighFreqFactor().getValueAsDouble();
  }
  return scaling;
}

RopeScalingAttr RopeScaling::attribute(MLIRContext *context) const {
  if (factor == 0)
    return {};
  auto number = [&](double value) {
    return FloatAttr::get(Float64Type::get(context), value);
  };
  if (originalPositions == 0)
    return RopeScalingAttr::get(context, number(factor), {}, {}, 0);
  return RopeScalingAttr::get(context, number(factor), number(lowFreqFactor),
                              number(highFreqFactor), originalPositions);
}

std::string RopeScaling::text() const {
  if (factor == 0)
    return "default";
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << (originalPositions ? "llama3" : "linear") << ", factor "
         << llvm::format("%.12g", factor);
  if (originalPositions)
    stream << ", low_freq_factor " << llvm::format("%.12g", lowFreqFactor)
           << ", high_freq_factor " << llvm::format("%.12g", highFreqFactor)
           << ", original_max_position_embeddings " << originalPositions;
  return text;
}

bool RopeScaling::operator<(const RopeScaling &other) const {
  auto key = [](const RopeScaling &s) {
    return std::tuple(s.factor, s.lowFreqFactor, s.highFreqFactor,
                      s.originalPositions);
  };
  return key(*this) < key(other);
}

/// Returns the frequency of a pair whose unscaled one is `plain`.
static double scale(double plain, const RopeScaling &scaling) {
  if (scaling.factor == 0)
    return plain;
  const double divided = plain / scaling.factor;
  if (scaling.originalPositions == 0)
    return divided;
  // Turns that a pair makes over the positions of the first training.
  constexpr double pi = 3.14159265358979323846;
  const double turns =
      static_cast<double>(scaling.originalPositions) * plain / (2 * pi);
  if (turns > scaling.highFreqFactor)
    return plain;
  if (turns < scaling.lowFreqFactor)
    return divided;
  const double share = (turns - scaling.lowFreqFactor) /
                       (scaling.highFreqFactor - scaling.lowFreqFactor);
  return (1 - share) * divided + share * plain;
}

SmallVector<double> mlir::dyna::rotaryFrequencies(RotaryOp op) {
  const auto headDim = static_cast<int64_t>(op.getHeadDim());
  const double theta = op.getTheta().convertToDouble();
  const RopeScaling scaling = RopeScaling::of(op.getScalingAttr());
  SmallVector<double> frequencies;
  for (int64_t j = 0; j < headDim / 2; ++j)
    frequencies.push_back(scale(std::pow(theta, -2.0 * j / headDim), scaling));
  return frequencies;
}
