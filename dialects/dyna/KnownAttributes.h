//===- KnownAttributes.h - No op takes an attribute unread ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR keeps attributes that nobody has declared: `{casual}` on an attention is
// carried along, read by no one, and the model learns to look ahead. Ops of
// this project take the attributes of their definition (ODS) and those that
// dialects declare for their phases (KnownAttributes); all else is an error
// that names the nearest known attribute.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_KNOWNATTRIBUTES_H
#define DYNA_DIALECTS_DYNA_KNOWNATTRIBUTES_H

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::dyna {

/// A discardable attribute that a phase leaves behind, and how others get at it.
template <typename AttributeType> struct PhaseAttribute {
  StringLiteral name;

  /// Null if the op has none.
  AttributeType of(Operation *op) const {
    return op->getAttrOfType<AttributeType>(name);
  }
  bool isOn(Operation *op) const { return op->hasAttr(name); }
  void set(Operation *op, AttributeType value) const {
    op->setAttr(name, value);
  }
  void removeFrom(Operation *op) const { op->removeAttr(name); }
  static bool isKind(Attribute value) { return isa<AttributeType>(value); }
};

/// What is known of one.
struct KnownAttribute {
  StringLiteral name;
  StringLiteral where; ///< on what it may stand, for people
  bool (*mayStandOn)(Operation *);
  StringLiteral kind; ///< what it is, for people
  bool (*isKind)(Attribute);
};

/// All discardable attributes of a dialect.
class KnownAttributes : public DialectInterface::Base<KnownAttributes> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KnownAttributes)

  KnownAttributes(Dialect *dialect, ArrayRef<KnownAttribute> known)
      : Base(dialect), known(known) {}
  ArrayRef<KnownAttribute> get() const { return known; }
  /// For the dialect's `verifyOperationAttribute`.
  LogicalResult verify(Operation *op, NamedAttribute attribute) const;

private:
  ArrayRef<KnownAttribute> known;
};

/// Of `names` the one that the fewest edits make of `name`, the first of
/// several; empty if there are none within `most` edits.
StringRef nearestName(StringRef name, ArrayRef<StringRef> names,
                      unsigned most = UINT_MAX - 1);

namespace check {
/// Every attribute is one of the op's definition, or one that a dialect
/// declares for it.
LogicalResult verifyKnownAttributes(Operation *op);
/// For the dictionary of a generic op's properties, of which MLIR
/// reads what it knows.
LogicalResult
verifyKnownProperties(ArrayRef<StringRef> names, Attribute properties,
                      function_ref<InFlightDiagnostic()> emitError);
} // namespace check

/// An op as it is registered: itself, but for how it takes properties.
template <typename Op> struct Strict : Op {
  using Op::Op;

  template <typename Properties>
  static LogicalResult
  setPropertiesFromAttr(Properties &properties, Attribute attribute,
                        function_ref<InFlightDiagnostic()> emitError) {
    if (failed(check::verifyKnownProperties(Op::getAttributeNames(), attribute,
                                            emitError)))
      return failure();
    return Op::setPropertiesFromAttr(properties, attribute, emitError);
  }
};

/// `StrictOps<GET_OP_LIST>::addTo(dialect)` instead of `addOperations`.
template <typename... Ops> struct StrictOps {
  static void addTo(Dialect &dialect) {
    (RegisteredOperationName::insert<Strict<Ops>>(dialect), ...);
  }
};

} // namespace mlir::dyna

/// To MLIR a strict op is the op.
template <typename Op>
class mlir::detail::TypeIDResolver<mlir::dyna::Strict<Op>> {
public:
  static TypeID resolveTypeID() { return TypeID::get<Op>(); }
};

#endif // DYNA_DIALECTS_DYNA_KNOWNATTRIBUTES_H
