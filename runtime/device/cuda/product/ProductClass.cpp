//===- ProductClass.cpp - Groups products that share an algorithm ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/product/ProductClass.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <charconv>

using namespace dyna;
using namespace dyna::cuda;

const char *cuda::nameOf(ProductKind kind) {
  switch (kind) {
  case ProductKind::F32:
    return "matmul_f32";
  case ProductKind::F64:
    return "matmul_f64";
  case ProductKind::Bf16:
    return "matmul_bf16";
  case ProductKind::Bf16F32:
    return "matmul_bf16_f32";
  }
  return "";
}

int64_t cuda::roundTokens(int64_t tokens) {
  int64_t unit = 16;
  while (tokens > 8 * unit)
    unit *= 2;
  return (tokens + unit - 1) / unit * unit;
}

static int64_t alignmentOf(const void *address) {
  auto bits = reinterpret_cast<uint64_t>(address) | DYNA_BLOCK_ALIGNMENT;
  return static_cast<int64_t>(bits & (~bits + 1));
}

ProductClass ProductClass::of(ProductKind kind, const dyna_matmul &p) {
  ProductClass result;
  result.kind = kind;
  result.transposeA = p.transpose_a != 0;
  result.transposeB = p.transpose_b != 0;
  result.accumulate = p.accumulate != 0;
  result.m = p.transpose_a ? p.m : roundTokens(p.m);
  result.n = p.n;
  result.k = p.transpose_a ? roundTokens(p.k) : p.k;
  result.lda = p.lda, result.ldb = p.ldb, result.ldc = p.ldc;
  result.alignA = alignmentOf(p.a);
  result.alignB = alignmentOf(p.b);
  result.alignC = alignmentOf(p.c);
  if (const dyna_epilogue *epilogue = dyna_described_epilogue(&p)) {
    result.epilogue = epilogue->kind;
    if (epilogue->kind != DYNA_EPILOGUE_GELU_GRAD)
      result.alignBias = alignmentOf(epilogue->bias);
    if (epilogue->kind != DYNA_EPILOGUE_BIAS && epilogue->aux) {
      result.auxStride = epilogue->aux_stride;
      result.alignAux = alignmentOf(epilogue->aux);
    }
  }
  return result;
}

/// Numbers of a class without an epilogue, and of one with.
static constexpr size_t kPlainNumbers = 13, kAllNumbers = 17;

std::string ProductClass::text() const {
  std::string text;
  const auto numbers = key();
  const size_t count = epilogue ? kAllNumbers : kPlainNumbers;
  for (size_t i = 0; i < count; ++i)
    text += formatText(i == 0 ? "%d" : " %d", numbers[i]);
  return text;
}

/// Returns true if these numbers can be those of a class.
static bool isValid(const std::array<int64_t, kAllNumbers> &key, size_t count) {
  bool isValid = key[0] >= 0 && key[0] < kProductKinds;
  for (size_t i = 1; i < 4; ++i)
    isValid &= key[i] == 0 || key[i] == 1;
  for (size_t i = 4; i < kPlainNumbers; ++i)
    isValid &= key[i] > 0 && key[i] <= INT32_MAX;
  // Only a class with an epilogue has all numbers.
  if (count == kAllNumbers)
    isValid &= key[13] > DYNA_EPILOGUE_NONE && key[13] < DYNA_EPILOGUE_COUNT;
  for (size_t i = 14; i < count; ++i)
    isValid &= key[i] >= 0 && key[i] <= INT32_MAX;
  return isValid;
}

StatusOr<ProductClass> ProductClass::parse(std::string_view text) {
  std::array<int64_t, kAllNumbers> key = {};
  size_t count = 0;
  const char *at = text.data(), *const end = text.data() + text.size();
  bool isGood = true;
  while (isGood && count < kAllNumbers &&
         (at != end || count < kPlainNumbers)) {
    if (count > 0)
      isGood = at < end && *at++ == ' ';
    auto [rest, error] = std::from_chars(at, end, key[count++]);
    isGood &= error == std::errc();
    at = rest;
  }
  isGood &= count == kPlainNumbers || count == kAllNumbers;
  if (!isGood || at != end || !isValid(key, count))
    return Status::invalidArgument(
        formatText("'%s' describes no product", printable(text)));
  ProductClass result;
  result.kind = static_cast<ProductKind>(key[0]);
  result.transposeA = key[1] != 0, result.transposeB = key[2] != 0;
  result.accumulate = key[3] != 0;
  result.m = key[4], result.n = key[5], result.k = key[6];
  result.lda = key[7], result.ldb = key[8], result.ldc = key[9];
  result.alignA = key[10], result.alignB = key[11], result.alignC = key[12];
  result.epilogue = key[13], result.auxStride = key[14];
  result.alignBias = key[15], result.alignAux = key[16];
  return result;
}
