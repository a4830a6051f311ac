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

/// The op has an optional attribute `places`, set by the memory phase.
template <typename ConcreteType>
class Placed : public ::mlir::OpTrait::TraitBase<ConcreteType, Placed> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return check::verifyPlaces(op, cast<ConcreteType>(op).getPlacesAttr());
  }
};

/// Row t of every result depends only on row t of the token-major operands, on
/// parameters, and on the sample and position of row t.
template <typename ConcreteType>
class RowWise : public ::mlir::OpTrait::TraitBase<ConcreteType, RowWise> {};
} // namespace OpTrait

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

#define GET_OP_CLASSES
#include "dialects/dyna/Dyna.h.inc"

#endif // DYNA_DIALECTS_DYNA_DYNA_H
