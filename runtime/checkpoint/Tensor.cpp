//===- Tensor.cpp - Describes named tensors in host memory ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Tensor.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <iterator>

using namespace dyna;

namespace {

struct TypeFacts {
  DType type;
  const char *name;
  int bytes;
};

constexpr TypeFacts typeTable[] = {
    {DType::Bool, "BOOL", 1}, {DType::U8, "U8", 1},   {DType::I8, "I8", 1},
    {DType::I16, "I16", 2},   {DType::U16, "U16", 2}, {DType::F16, "F16", 2},
    {DType::BF16, "BF16", 2}, {DType::I32, "I32", 4}, {DType::U32, "U32", 4},
    {DType::F32, "F32", 4},   {DType::F64, "F64", 8}, {DType::I64, "I64", 8},
    {DType::U64, "U64", 8}};

const TypeFacts &factsOf(DType type) {
  return typeTable[static_cast<size_t>(type)];
}

template <typename T> T loadAs(const unsigned char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value;
  if (exponent == 31)
    value = fraction ? std::nan("") : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(fraction, -24);
  else
    value = std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

/// Rounds to nearest even. `value` rarely needs more than f32 here; a double
/// rounds through f32, which differs from one rounding in ties of ties only.
uint16_t floatToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t doubleToHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double size = std::fabs(value);
  if (std::isnan(size))
    return sign | 0x7E00;
  if (size >= 65520)
    return sign | 0x7C00;
  if (size < 0x1p-14) // subnormal: a multiple of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24));
  int exponent;
  double fraction = std::frexp(size, &exponent); // [0.5, 1)
  auto scaled = static_cast<uint32_t>(std::nearbyint(fraction * 2048));
  // A carry out of the fraction raises the exponent, as the sum does.
  return sign | static_cast<uint16_t>(((exponent + 13) << 10) + scaled);
}

double loadFloat(DType type, const unsigned char *at) {
  switch (type) {
  case DType::F64:
    return loadAs<double>(at);
  case DType::F32:
    return loadAs<float>(at);
  case DType::F16:
    return halfToDouble(loadAs<uint16_t>(at));
  default: {
    uint32_t bits = uint32_t(loadAs<uint16_t>(at)) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  }
}

void storeFloat(DType type, double value, unsigned char *at) {
  float single = static_cast<float>(value);
  uint16_t bits;
  switch (type) {
  case DType::F64:
    std::memcpy(at, &value, sizeof value);
    return;
  case DType::F32:
    std::memcpy(at, &single, sizeof single);
    return;
  case DType::F16:
    bits = doubleToHalf(value);
    break;
  default:
    bits = floatToBf16(single);
  }
  std::memcpy(at, &bits, sizeof bits);
}

} // namespace

const char *dyna::dtypeName(DType type) { return factsOf(type).name; }

std::optional<DType> dyna::parseDType(std::string_view name) {
  for (const TypeFacts &facts : typeTable)
    if (name == facts.name)
      return facts.type;
  return std::nullopt;
}

int64_t dyna::dtypeBytes(DType type) { return factsOf(type).bytes; }

bool dyna::isFloat(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 ||
         type == DType::BF16;
}

std::string dyna::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<int64_t> dyna::tensorBytes(DType type,
                                         const std::vector<int64_t> &shape) {
  int64_t bytes = dtypeBytes(type);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  return bytes;
}

void dyna::convertElements(DType from, const void *source, DType to,
                           void *target, int64_t count) {
  if (count == 0)
    return;
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(count * dtypeBytes(to)));
    return;
  }
  assert(isFloat(from) && isFloat(to) && "only floats are converted");
  auto *in = static_cast<const unsigned char *>(source);
  auto *out = static_cast<unsigned char *>(target);
  int64_t inBytes = dtypeBytes(from), outBytes = dtypeBytes(to);
  for (int64_t i = 0; i < count; ++i)
    storeFloat(to, loadFloat(from, in + i * inBytes), out + i * outBytes);
}
