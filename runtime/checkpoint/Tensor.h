//===- Tensor.h - Describes named tensors in host memory --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checkpoints exchange these tensors with their callers: named, dense,
// row-major tensors in host memory, with the element types of the safetensors
// format.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_TENSOR_H
#define DYNA_RUNTIME_CHECKPOINT_TENSOR_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dyna {

/// Types in the order of safetensors writers: widest last.
enum class DType {
  Bool,
  U8,
  I8,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64
};

/// Returns the name in files, such as "F32".
const char *dtypeName(DType type);
/// Parses a name; returns nothing for types that are not supported.
std::optional<DType> parseDType(std::string_view name);
int64_t dtypeBytes(DType type);
bool isFloat(DType type);

/// Returns "[2, 3]", for messages.
std::string shapeText(const std::vector<int64_t> &shape);

/// Returns the bytes of a tensor; nothing if a dimension is negative or the
/// product does not fit into 64 bits.
std::optional<int64_t> tensorBytes(DType type,
                                   const std::vector<int64_t> &shape);

/// A tensor whose memory belongs to someone else.
struct TensorView {
  std::string name;
  DType type = DType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr; ///< maybe unaligned; maybe null if empty
};

/// Copies `count` elements and converts them; both types must be floats (F64,
/// F32, F16, BF16) or equal. Neither side needs alignment.
void convertElements(DType from, const void *source, DType to, void *target,
                     int64_t count);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_TENSOR_H
