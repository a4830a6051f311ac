//===- FamilyWiring.h - Layers compute what their family does -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tensors of a named family are saved under names by which other programs
// compute what that family computes. What that is the front ends alone say: the
// model that they write for the same sizes is compared with the one at hand.
// Front ends stand above the dialect, so they register themselves with it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FAMILYWIRING_H
#define DYNA_DIALECTS_DYNA_FAMILYWIRING_H

#include "dialects/dyna/DerivedFacts.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::dyna {

/// Writes models of the named families.
class FamilyModels : public DialectInterface::Base<FamilyModels> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FamilyModels)

  explicit FamilyModels(Dialect *dialect) : Base(dialect) {}
  /// A model of the sizes and options that the layers of another have; of
  /// several any. Not verified, as it is asked for while verifying.
  virtual OwningOpRef<ModuleOp> write(StringRef family,
                                      const DerivedFacts &layers) const = 0;
};

/// An error at the first op that has no counterpart in the model that the front
/// end of the family writes, or at a parameter that the family has not. Neither
/// names of layers nor their cut matter, nor the order of ops that do not need
/// each other. Where no front end is registered all is well.
LogicalResult checkFamilyWiring(ModelOp model, const DerivedFacts &layers,
                                SymbolTableCollection &symbols);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FAMILYWIRING_H
