//===- ReadModel.h - Reads a model of a test --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_READMODEL_H
#define DYNA_TEST_REFERENCE_READMODEL_H

#include "dialects/dyna/Dyna.h"
#include "frontends/Frontends.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::dyna::reference {

/// Returns the module of a family's configuration, or of a module's own text; null
/// if it is neither.
inline OwningOpRef<ModuleOp> readModel(MLIRContext *context, StringRef text) {
  return text.starts_with("{")
             ? importConfig(context, llvm::MemoryBufferRef(text, "test"))
             : parseSourceString<ModuleOp>(text, context);
}

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_READMODEL_H
