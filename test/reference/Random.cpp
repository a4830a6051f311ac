//===- Random.cpp - Random numbers of the reference evaluator -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Written again from the published mixers rather than included from
// runtime/abi/Random.h, so that a slip there does not agree with itself.
//
//===----------------------------------------------------------------------===//

#include "test/reference/Formulas.h"

#include <cmath>
#include <cstring>

namespace mlir::dyna::reference {

/// Output function of SplitMix64 behind one step of its state.
static uint64_t splitMix(uint64_t state) {
  state += 0x9E3779B97F4A7C15ull;
  uint64_t result = state;
  result ^= result >> 30;
  result *= 0xBF58476D1CE4E5B9ull;
  result ^= result >> 27;
  result *= 0x94D049BB133111EBull;
  result ^= result >> 31;
  return result;
}

/// Wellons' two-round 32-bit mixer.
static uint32_t lowBias(uint32_t value) {
  value ^= value >> 16;
  value *= 0x7FEB352Du;
  value ^= value >> 15;
  value *= 0x846CA68Bu;
  value ^= value >> 16;
  return value;
}

bool isDropped(const Context &context, uint64_t instance, double probability,
               uint64_t sample, uint64_t position, uint64_t feature) {
  uint64_t key = splitMix(splitMix(context.seed) ^ context.step);
  key = splitMix(key ^ ((context.layer << 32) | instance));
  key = splitMix(splitMix(key ^ sample) ^ position);
  uint32_t low = static_cast<uint32_t>(key & 0xFFFFFFFFu);
  uint32_t high = static_cast<uint32_t>(key >> 32);
  uint32_t spread = static_cast<uint32_t>(feature * 0x9E3779B9ull);
  uint32_t bits = lowBias(lowBias(low ^ spread) ^ high);
  double threshold = std::floor(probability * std::pow(2.0, 32));
  return static_cast<double>(bits) < threshold;
}

Tensor initialParameter(const std::string &name, std::vector<int64_t> shape,
                        double constant, double normal, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325ull; // FNV-1a
  for (unsigned char byte : name) {
    hash ^= byte;
    hash *= 0x100000001B3ull;
  }
  uint64_t key = splitMix(splitMix(seed) ^ hash);
  Tensor result(std::move(shape), constant);
  if (normal == 0.0)
    return result;
  const double pi = std::acos(-1.0);
  for (uint64_t i = 0; i < result.values.size(); ++i) {
    double u = (static_cast<double>(splitMix(key ^ (2 * i)) >> 11) + 0.5) /
               std::pow(2.0, 53);
    double v = static_cast<double>(splitMix(key ^ (2 * i + 1)) >> 11) /
               std::pow(2.0, 53);
    result.values[i] +=
        normal * std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * pi * v);
  }
  return result;
}

double uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(splitMix(splitMix(seed) ^ index) >> 11) /
         std::pow(2.0, 53);
}

double roundToFloat(double value) { return static_cast<float>(value); }

double roundToBfloat16(double value) {
  // Rounding twice (to f32 first) is what the compiled code does as well.
  float single = static_cast<float>(value);
  if (std::isnan(single) || std::isinf(single))
    return single;
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  uint32_t rest = bits & 0xFFFFu;
  bits &= 0xFFFF0000u;
  bool up = rest > 0x8000u || (rest == 0x8000u && (bits & 0x10000u));
  if (up)
    bits += 0x10000u;
  std::memcpy(&single, &bits, sizeof(bits));
  return single;
}

} // namespace mlir::dyna::reference
