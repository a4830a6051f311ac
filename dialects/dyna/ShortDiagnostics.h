//===- ShortDiagnostics.h - Diagnostics of at most a screen -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR prints the whole line that a diagnostic is of. A module that a tool wrote
// may have lines of megabytes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_SHORTDIAGNOSTICS_H
#define DYNA_DIALECTS_DYNA_SHORTDIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace mlir::dyna {

/// Longest line that diagnostics show whole; of a longer one they show so much
/// around the place.
inline constexpr size_t kMaxShownLine = 200;

/// Makes handlers that print by `sources` shorten lines and messages.
void shortenDiagnostics(llvm::SourceMgr &sources);

/// Returns true if a line of `text` is longer than a screen.
bool hasLongLine(StringRef text);

/// Prints a diagnostic at a long line of `text`, or with a long message, as
/// `shortenDiagnostics` does. Fails, without printing, for all others.
LogicalResult printShort(Diagnostic &diagnostic, llvm::MemoryBufferRef text);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_SHORTDIAGNOSTICS_H
