//===- Dyna.h - The dyna dialect -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The logical graph of a transformer: parameters, layers, models, and the ops
// that layers are made of; after the differentiate phase also layer functions
// and gradients. Docs: docs/rationale/dyna.md and the generated reference.
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
#include "runtime/base/LinearBytes.h"

namespace mlir::dyna {

class GradientBuilder;

/// `[?, features...]` of the given rank, all other dimensions static and
/// positive, without encoding.
bool isTokenMajor(Type type, int64_t rank);

/// A static tensor without encoding, with at least one element, whose bytes can
/// be counted in 63 bits.
bool isSized(Type type);

/// Dyna_Activation, Dyna_Ids, Dyna_StaticTensor and Dyna_Scalar of the ODS, for
/// places where ODS cannot check.
bool isActivation(Type type);
bool isIds(Type type);
bool isParameterType(Type type);
bool isLoss(Type type);

namespace check {
/// (PLACES1), (PLACES2)
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

// What they say stands in DynaInterfaces.td.
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

/// Flops of the matrix products of an op, by what they grow with.
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

/// An op sums so many bytes of each row over the ranks of a group (`dist.groups`), a
/// chunk of rows at a time.
struct InnerExchange {
  int64_t group = 0;
  int64_t bytesPerRow = 0;
};
using InnerExchanges = SmallVector<InnerExchange, 2>;

/// What the host knows of the rows of a micro-batch: where each segment begins, the
/// rows of each token and of each position, those with a target.
enum class BatchTable { Offsets, TokenRuns, PositionRuns, TargetRows };

/// `c = op(a) op(b)`, or, with an accumulator, what that is with this added.
struct MatrixProduct {
  Value a = {}, b = {}, c = {};
  bool transposeA = false, transposeB = false;
  Value accumulator = {};

  /// Whether row t of c follows from row t of a: `b` is a matrix. Otherwise the
  /// product sums over tokens.
  bool isPerRow() const { return isTokenMajor(c.getType(), 2); }
  /// The weight, `[out, in]`, or what is added up for it.
  Value matrix() const { return isPerRow() ? b : accumulator; }
  /// The activation of `out` features: c where b is transposed.
  Value part() const { return transposeB ? c : a; }
};
/// The products of a head's features with which attention, and its gradient,
/// take each pair of a query and a key.
inline constexpr int64_t kAttentionProducts = 2;
inline constexpr int64_t kAttentionGradProducts = 5;

/// All tokens times the elements of the matrix.
Work workOf(const MatrixProduct &product);

using Accumulations = SmallVector<std::pair<Value, OpResult>>;
inline Accumulations::value_type accumulation(Value accumulator, Value result) {
  return {accumulator, cast<OpResult>(result)};
}

/// f32 for f32 and bf16, f64 for f64: the type in which gradients of parameters
/// and statistics are kept.
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

/// Whether `op` multiplies matrices.
inline bool isProduct(Operation *op) { return isa<ProductOpInterface>(op); }

/// What all ops inside of `op` do, and itself.
Work workIn(Operation *op);

/// Those that the memory phase has given; null if it has not, or cannot.
inline ArrayAttr placesOf(Operation *op) {
  auto placed = dyn_cast<PlacedOpInterface>(op);
  return placed ? placed.getPlacesAttr() : ArrayAttr();
}

/// Those of an op that says so; none of any other.
inline Accumulations accumulationsOf(Operation *op) {
  auto accumulating = dyn_cast<AccumulatingOpInterface>(op);
  return accumulating ? accumulating.getAccumulations() : Accumulations();
}

} // namespace mlir::dyna

#define GET_OP_CLASSES
#include "dialects/dyna/Dyna.h.inc"

#endif // DYNA_DIALECTS_DYNA_DYNA_H
