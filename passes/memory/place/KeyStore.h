//===- KeyStore.h - Assigns columns of key stores to attentions -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Slices of a sample read the keys and values of earlier slices in a *store*
// (runtime/abi/Abi.h). A row of the store has columns for every attention of a layer,
// in the order of their numbers. All functions of a layer agree on the columns.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PLACE_KEYSTORE_H
#define DYNA_PASSES_MEMORY_PLACE_KEYSTORE_H

#include "dialects/dyna/Dyna.h"

#include <map>

namespace mlir::dyna {

class KeyStore {
public:
  /// First columns of one attention's keys and values, in elements.
  struct Columns {
    int64_t keys = 0, values = 0;
    int64_t keyGradients = 0, valueGradients = 0;
  };

  /// Collects the attentions of all functions of the layer. Fails if two attentions of
  /// a function have one number, or if functions disagree about its sizes.
  static FailureOr<KeyStore> create(Operation *module, StringRef layer);

  /// Returns the columns of an attention of the layer.
  Columns columnsOf(int64_t number) const { return columns.at(number).first; }
  /// Elements of a row of keys and values, and of a row of their gradients.
  int64_t getStride() const { return stride; }
  int64_t getGradientStride() const { return gradientStride; }
  /// Bytes of these rows; 0 without attention.
  int64_t getRowBytes() const;
  int64_t getGradientRowBytes() const;

private:
  struct Shape {
    int64_t kvHeads = 0, headDim = 0;
    Type element;

    bool operator==(const Shape &other) const {
      return kvHeads == other.kvHeads && headDim == other.headDim &&
             element == other.element;
    }
  };
  LogicalResult addFunction(FunctionOp function);
  LogicalResult add(Operation *op, int64_t number, const Shape &shape);
  void place();

  /// By the attention's number.
  std::map<int64_t, std::pair<Columns, Shape>> columns;
  int64_t stride = 0, gradientStride = 0;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PLACE_KEYSTORE_H
