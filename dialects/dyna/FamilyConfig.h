//===- FamilyConfig.h - What configurations of families say -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of a model of the GPT-2 or LLaMA family the fact `config` is saved beside its
// tensors, and others build a model by it. One table per family says of each of
// its fields what it means where it is missing, and what in the layers it
// repeats.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FAMILYCONFIG_H
#define DYNA_DIALECTS_DYNA_FAMILYCONFIG_H

#include "dialects/dyna/DerivedFacts.h"
#include "llvm/Support/JSON.h"

namespace mlir::dyna {

/// The families whose models others can load.
bool isNamedFamily(StringRef family);

/// An error if the layers have what the family has not, or lack what it has.
LogicalResult checkFamily(ModelOp model, const DerivedFacts &layers);

/// An error at the first field that is not what the layers say.
LogicalResult checkFamilyConfig(ModelOp model, const DerivedFacts &layers,
                                const llvm::json::Object &config);

/// The text of a value, shortened for a message.
std::string printExcerpt(const llvm::json::Value &value);

/// Of the names that configurations have for an activation function the first
/// ("gelu_new" for "gelu_fast"); empty for those that are not known.
StringRef activationForm(StringRef name);
/// All of them.
ArrayRef<std::pair<StringRef, StringRef>> activationForms();

/// A key that an object of this JSON has twice, and where.
struct DuplicateKey {
  std::string name;
  size_t first, second;
};
SmallVector<DuplicateKey> findDuplicateKeys(StringRef json);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FAMILYCONFIG_H
