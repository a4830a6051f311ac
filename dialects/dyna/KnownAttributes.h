//===- KnownAttributes.h - Refuses attributes that no code reads ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR keeps undeclared attributes. A misspelt `{casual}` on an attention would
// be carried along and read by no one, and the model would learn to look ahead.
//
// So ops of this project accept two kinds of attributes: those of their
// definition (ODS), and those that dialects declare for their phases
// (KnownAttributes). Any other is an error that names the nearest known
// attribute.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_KNOWNATTRIBUTES_H
#define DYNA_DIALECTS_DYNA_KNOWNATTRIBUTES_H

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::dyna {

/// A discardable attribute that one phase leaves for others, with its
/// accessors.
template <typename AttributeType> struct PhaseAttribute {
  StringLiteral name;

  /// Returns the attribute; null if the op has none.
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

/// Description of one discardable attribute.
struct KnownAttribute {
  StringLiteral name;
  StringLiteral where; ///< ops on which it may be, for messages
  bool (*mayStandOn)(Operation *);
  StringLiteral kind; ///< name of its kind, for messages
  bool (*isKind)(Attribute);
};

/// All discardable attributes of a dialect.
class KnownAttributes : public DialectInterface::Base<KnownAttributes> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KnownAttributes)

  KnownAttributes(Dialect *dialect, ArrayRef<KnownAttribute> known)
      : Base(dialect), known(known) {}
  ArrayRef<KnownAttribute> get() const { return known; }
  /// Implements the dialect's `verifyOperationAttribute`.
  LogicalResult verify(Operation *op, NamedAttribute attribute) const;

private:
  ArrayRef<KnownAttribute> known;
};

/// Returns the entry of `names` with the fewest edits to `name`, the first of
/// several. Returns an empty name if all need more than `most` edits.
StringRef nearestName(StringRef name, ArrayRef<StringRef> names,
                      unsigned most = UINT_MAX - 1);

namespace check {
/// Checks that every attribute is one of the op's definition, or one that a
/// dialect declares for it.
LogicalResult verifyKnownAttributes(Operation *op);
/// Checks the dictionary of a generic op's properties. MLIR itself ignores
/// entries that it does not know.
LogicalResult
verifyKnownProperties(ArrayRef<StringRef> names, Attribute properties,
                      function_ref<InFlightDiagnostic()> emitError);
} // namespace check

/// The op with strict properties; dialects register this instead of the op.
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

/// Makes a strict op the same op to MLIR.
template <typename Op>
class mlir::detail::TypeIDResolver<mlir::dyna::Strict<Op>> {
public:
  static TypeID resolveTypeID() { return TypeID::get<Op>(); }
};

#endif // DYNA_DIALECTS_DYNA_KNOWNATTRIBUTES_H
