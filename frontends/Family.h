//===- Family.h - Describes a family that other programs load ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A family is a file of this folder and a line of Families.def. The file says how a
// HuggingFace configuration is read, and which model it means. It says which tensors of
// a checkpoint hold the parameters, and what a configuration repeats of the layers. A
// model whose fact `family` names one is compared with all of that.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_FAMILY_H
#define DYNA_FRONTENDS_FAMILY_H

#include "dialects/dyna/facts/DerivedFacts.h"
#include "frontends/CheckpointFormat.h"
#include "frontends/Exits.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::dyna {

/// A model, and what its layers say.
struct FamilyMember {
  ModelOp op;
  FactsAttr facts;
  const DerivedFacts &layers;
};

/// Values that layers say, each with the op that says it.
using DerivedValues = SmallVector<std::pair<llvm::json::Value, Operation *>, 2>;

/// A field of a family's configurations.
struct FamilyField {
  StringLiteral name;
  /// Returns what it means if it is missing; null if it must be there.
  llvm::json::Value (*ifMissing)(const FamilyMember &);
  DerivedValues (*derive)(const FamilyMember &);
  /// Reads the field's value; null if it is missing.
  llvm::json::Value (*read)(const llvm::json::Object &, StringRef);
  StringLiteral source = ", as its layers say";
};

struct Family {
  StringLiteral name; ///< value of `model_type` and of the fact `family`
  /// Ops that its layers have, and others that they may have.
  ArrayRef<StringLiteral> needed, allowed;
  ArrayRef<FamilyField> fields;
  const CheckpointFormat &format;
  /// Reads a configuration and builds its model with these parts; null after a diagnostic.
  OwningOpRef<ModuleOp> (*import)(MLIRContext *, llvm::MemoryBufferRef,
                                  const ModelParts &);
  /// Writes the model of the sizes and options that layers have, any one if they have
  /// several. The model is not verified.
  OwningOpRef<ModuleOp> (*writeLike)(MLIRContext *, const DerivedFacts &);
  /// Returns why layers with its ops are of another family, and sets `where`; empty if
  /// they are of this one. May be null.
  std::string (*findOther)(const DerivedFacts &, Operation *&where) = nullptr;
};

/// Returns all families, as Families.def lists them.
ArrayRef<const Family *> families();
/// Returns the family of this name, or null.
const Family *findFamily(StringRef name);
/// Lists the families for messages: "gpt2, llama".
std::string listFamilies(StringRef quote, StringRef last);

#define DYNA_FAMILY(name) const Family &name##Family();
#include "frontends/Families.def"

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_FAMILY_H
