//===- FamilyWiring.h - Checks that layers compute what families do -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tensors of a named family are saved under names by which other programs
// compute what that family computes. The front end alone says what that is: the
// model that it writes for the same sizes is compared with the one at hand.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_FAMILYWIRING_H
#define DYNA_FRONTENDS_FAMILYWIRING_H

#include "frontends/Family.h"

namespace mlir::dyna {

/// Fails at the first op without counterpart in the model that the family's front end
/// writes, or at a parameter that the family has not. Neither names of layers nor
/// their cut matter, nor the order of ops that do not need each other.
LogicalResult checkFamilyWiring(ModelOp model, const Family &family,
                                const DerivedFacts &layers,
                                SymbolTableCollection &symbols);

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_FAMILYWIRING_H
