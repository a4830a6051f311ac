//===- JsonText.h - Checks JSON in modules and configurations ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_TEXT_JSONTEXT_H
#define DYNA_DIALECTS_DYNA_TEXT_JSONTEXT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace mlir::dyna {

/// Returns the text of a value, shortened for a message.
std::string printExcerpt(const llvm::json::Value &value);

/// A key that an object of this JSON has twice, and where.
struct DuplicateKey {
  std::string name;
  size_t first, second;
};
llvm::SmallVector<DuplicateKey> findDuplicateKeys(llvm::StringRef json);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TEXT_JSONTEXT_H
