//===- FamilyConfig.h - Checks configurations against layers ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The fact `config` of a model of a family is saved beside its tensors, and others
// build a model by it. The family's table says of each field what it means if it is
// missing, and what in the layers it repeats.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_FAMILYCONFIG_H
#define DYNA_FRONTENDS_FAMILYCONFIG_H

#include "frontends/Family.h"

namespace mlir::dyna {

/// Fails if the layers have ops that the family has not, or lack some that it has.
LogicalResult checkFamilyOps(ModelOp model, const Family &family,
                             const DerivedFacts &layers);

/// Fails at the first field that is not what the layers say.
LogicalResult checkFamilyConfig(ModelOp model, const Family &family,
                                const DerivedFacts &layers,
                                const llvm::json::Object &config);

/// Returns the first of the names that configurations have for an activation function
/// ("gelu_new" for "gelu_fast"); empty for a name that is not known.
StringRef activationForm(StringRef name);
/// Returns all names of activation functions with their first forms.
ArrayRef<std::pair<StringRef, StringRef>> activationForms();

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_FAMILYCONFIG_H
