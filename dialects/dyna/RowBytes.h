//===- RowBytes.h - What a kernel moves at least ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Apart from Dyna.h, which everything includes: few ask.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_ROWBYTES_H
#define DYNA_DIALECTS_DYNA_ROWBYTES_H

#include "dialects/dyna/KnownAttributes.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::dyna {

/// On a kernel that is launched over the rows of a micro-batch: the bytes that it
/// moves at least for each of them, whatever the device and however it is
/// written. Every activation that it is given counts once, every one that it
/// makes, and a row that it reads of a table of tokens. What rows have in common
/// does not count: vectors, rows of a table of positions, partial sums; nor do
/// numbers of a row, such as its token. For those who measure; no code is made
/// of it.
inline constexpr PhaseAttribute<IntegerAttr> kRowBytes{"dyna.row_bytes"};

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_ROWBYTES_H
