//===- RowBytes.h - States the least bytes that a kernel moves per row ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a header of its own because few files need it and all include Dyna.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_ROWBYTES_H
#define DYNA_DIALECTS_DYNA_ROWBYTES_H

#include "dialects/dyna/KnownAttributes.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::dyna {

/// On a kernel over the rows of a micro-batch: the least bytes that it moves
/// for a row, on any device and in any implementation. Each activation that it
/// reads or writes counts once, and so does a row that it reads of a table of
/// tokens.
///
/// Data that rows share do not count (vectors, rows of a table of positions,
/// partial sums). The numbers of a row, such as its token, do not count either.
/// Only measurements use this; code does not depend on it.
inline constexpr PhaseAttribute<IntegerAttr> kRowBytes{"dyna.row_bytes"};

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_ROWBYTES_H
