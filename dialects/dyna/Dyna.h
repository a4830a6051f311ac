//===- Dyna.h - Defines the dyna dialect: the logical graph -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The dialect is the logical graph of a transformer: parameters, layers,
// models, and the ops of layers. After the differentiate phase it also has
// layer functions and gradients. Docs: docs/rationale/dyna.md and the generated
// reference.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNA_H
#define DYNA_DIALECTS_DYNA_DYNA_H

#include "dialects/dyna/KnownAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/base/load/LinearBytes.h"

namespace mlir::dyna {

class GradientBuilder;

/// Returns true for `[?, features...]` of the given rank, with all other
/// dimensions static and positive, without encoding.
bool isTokenMajor(Type type, int64_t rank);

/// Returns true for a static tensor without encoding that has at least one
/// element and at most 2^63 - 1 bytes.
bool isSized(Type type);

/// Return true for types Dyna_Activation, Dyna_Ids, Dyna_StaticTensor and
/// Dyna_Scalar of the ODS. For places that ODS cannot check.
bool isActivation(Type type);
bool isIds(Type type);
bool isParameterType(Type type);
bool isLoss(Type type);

namespace check {
/// Verifies (PLACES1) and (PLACES2).
LogicalResult verifyPlaces(Operation *op, ArrayAttr places);
} // namespace check

namespace OpTrait {
/// The op refuses attributes that it does not know.
template <typename ConcreteType>
class OnlyKnownAttributes
    : public ::mlir::OpTrait::TraitBase<ConcreteType, OnlyKnownAttributes> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return check::verifyKnownAttributes(op);
  }
};

// DynaInterfaces.td documents these traits.
template <typename ConcreteType>
class RowWise : public ::mlir::OpTrait::TraitBase<ConcreteType, RowWise> {};
template <typename ConcreteType>
class Elementwise
    : public ::mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};
template <typename ConcreteType>
class PairsFeatures
    : public ::mlir::OpTrait::TraitBase<ConcreteType, PairsFeatures> {};
template <typename ConcreteType>
class CountsTokens
    : public ::mlir::OpTrait::TraitBase<ConcreteType, CountsTokens> {};
template <typename ConcreteType>
class CountsFeatures
    : public ::mlir::OpTrait::TraitBase<ConcreteType, CountsFeatures> {};
template <typename ConcreteType>
class AnyStride : public ::mlir::OpTrait::TraitBase<ConcreteType, AnyStride> {};
} // namespace OpTrait

/// Flops of the matrix products of an op, by the quantity that they grow with.
struct Work {
  int64_t perToken = 0;
  int64_t perTarget = 0;
  /// Per query and key of one sample; under a causal mask half of all pairs.
  int64_t perPair = 0;
  int64_t perCausalPair = 0;

  Work &operator+=(const Work &other) {
    perToken += other.perToken;
    perTarget += other.perTarget;
    perPair += other.perPair;
    perCausalPair += other.perCausalPair;
    return *this;
  }
};

/// An exchange inside an op. It sums `bytesPerRow` bytes of each row over the
/// ranks of a group (`dist.groups`), a chunk of rows at a time.
struct InnerExchange {
  int64_t group = 0;
  int64_t bytesPerRow = 0;
};
using InnerExchanges = SmallVector<InnerExchange, 2>;

/// Tables that the host makes of the rows of a micro-batch. They list the
/// begins of segments, the rows of each token, the rows of each position, and
/// the rows with a target.
enum class BatchTable { Offsets, TokenRuns, PositionRuns, TargetRows };

/// `c = op(a) op(b)`; with an accumulator, `c` is the product plus the
/// accumulator.
struct MatrixProduct {
  Value a = {}, b = {}, c = {};
  bool transposeA = false, transposeB = false;
  Value accumulator = {};

  /// Returns true if row t of c depends on row t of a alone: `b` is a matrix.
  /// If false, the product sums over tokens.
  bool isPerRow() const { return isTokenMajor(c.getType(), 2); }
  /// Returns the weight, `[out, in]`, or the accumulator of its gradient.
  Value matrix() const { return isPerRow() ? b : accumulator; }
  /// Returns the activation with `out` features: c if b is transposed, else a.
  Value part() const { return transposeB ? c : a; }
};
/// Products of a head's features for each pair of a query and a key, in
/// attention and in its gradient.
inline constexpr int64_t kAttentionProducts = 2;
inline constexpr int64_t kAttentionGradProducts = 5;

/// Returns the work of a product: all tokens times the elements of the matrix.
Work workOf(const MatrixProduct &product);

using Accumulations = SmallVector<std::pair<Value, OpResult>>;
inline Accumulations::value_type accumulation(Value accumulator, Value result) {
  return {accumulator, cast<OpResult>(result)};
}

/// Returns f32 for f32 and bf16, and f64 for f64. Statistics and gradients of
/// parameters have this type.
inline Type getAccumulatorType(Type element) {
  return element.isF64() ? element : Float32Type::get(element.getContext());
}

} // namespace mlir::dyna

#include "dialects/dyna/DynaDialect.h.inc"
#include "dialects/dyna/DynaEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dyna/DynaTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dyna/DynaAttributes.h.inc"

#include "dialects/dyna/DynaInterfaces.h.inc"

namespace mlir::dyna {

/// Returns true if `op` multiplies matrices.
inline bool isProduct(Operation *op) { return isa<ProductOpInterface>(op); }

/// Returns the work of `op` and of all ops inside of it.
Work workIn(Operation *op);

/// Returns the places that the memory phase has assigned; null if it has not,
/// or if the op cannot have places.
inline ArrayAttr placesOf(Operation *op) {
  auto placed = dyn_cast<PlacedOpInterface>(op);
  return placed ? placed.getPlacesAttr() : ArrayAttr();
}

/// Returns the accumulations of an op, none if it has no such interface.
inline Accumulations accumulationsOf(Operation *op) {
  auto accumulating = dyn_cast<AccumulatingOpInterface>(op);
  return accumulating ? accumulating.getAccumulations() : Accumulations();
}

} // namespace mlir::dyna

#define GET_OP_CLASSES
#include "dialects/dyna/Dyna.h.inc"

#endif // DYNA_DIALECTS_DYNA_DYNA_H
