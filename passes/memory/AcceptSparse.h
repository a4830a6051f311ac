//===- AcceptSparse.h - Chooses functions that accept sparse weights ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_ACCEPTSPARSE_H
#define DYNA_PASSES_MEMORY_ACCEPTSPARSE_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// Returns true if a function of the role reads parameters to compute its layer. Only
/// such functions accept sparse weights.
inline bool computesLayer(Role role) {
  return role != Role::Update && role != Role::GradNorm && role != Role::Cast;
}

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_ACCEPTSPARSE_H
