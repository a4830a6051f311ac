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

/// `text` if it has at most `most` bytes; else its beginning and end with the
/// number of bytes left out between them. Cuts no UTF-8 character.
std::string excerpt(std::string_view text, size_t most = 120);

/// Largest message, in bytes: about a screen.
inline constexpr size_t kMostMessageBytes = 2000;

/// A message as it is printed: on one line, printable, at most about
/// kMostMessageBytes long.
std::string messageText(std::string_view text);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_PRINTABLE_H
