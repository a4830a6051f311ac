//===- Printable.h - Foreign text on a terminal -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_PRINTABLE_H
#define DYNA_RUNTIME_BASE_PRINTABLE_H

#include <string>
#include <string_view>

namespace dyna {

/// Text in which files of others may have put names, made fit for a terminal:
/// what would control it, turn the direction of writing or is no UTF-8 becomes
/// "\x1b". Line breaks stay if the text may have several lines, else they
/// become "\n".
std::string printable(std::string_view text, bool hasLines = false);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_PRINTABLE_H
