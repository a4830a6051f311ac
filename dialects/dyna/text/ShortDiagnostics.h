//===- ShortDiagnostics.h - Limits the length of diagnostics ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR prints the whole line that a diagnostic points at. A module that a tool
// wrote may have lines of megabytes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_TEXT_SHORTDIAGNOSTICS_H
#define DYNA_DIALECTS_DYNA_TEXT_SHORTDIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace mlir::dyna {

/// Longest line that diagnostics show whole. A longer line is shown only around
/// the place of the diagnostic, with this length.
inline constexpr size_t kMaxShownLine = 200;

/// Makes handlers that print by `sources` shorten lines and messages.
void shortenDiagnostics(llvm::SourceMgr &sources);

/// Returns true if a line of `text` is longer than a screen.
bool hasLongLine(StringRef text);

/// Prints a diagnostic as `shortenDiagnostics` does if it has a long message,
/// or points at a long line of `text`. Otherwise fails, without printing.
LogicalResult printShort(Diagnostic &diagnostic, llvm::MemoryBufferRef text);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TEXT_SHORTDIAGNOSTICS_H
