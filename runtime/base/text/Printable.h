//===- Printable.h - Makes foreign text safe for a terminal -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_PRINTABLE_H
#define DYNA_RUNTIME_BASE_TEXT_PRINTABLE_H

#include <string>
#include <string_view>

namespace dyna {

/// Makes text that may contain foreign names safe for a terminal. Control
/// characters, changes of the writing direction and invalid UTF-8 become
/// escapes such as "\x1b". Line breaks stay if the text may have several lines,
/// else they become "\n".
std::string printable(std::string_view text, bool hasLines = false);

/// Returns `text` if it has at most `most` bytes. Otherwise returns its
/// beginning and end, with the number of bytes left out between them. Cuts no
/// UTF-8 character.
std::string excerpt(std::string_view text, size_t most = 120);

/// Largest message, in bytes: about a screen.
inline constexpr size_t kMostMessageBytes = 2000;

/// Returns a message as it is printed: on one line, printable, with at most
/// about kMostMessageBytes.
std::string messageText(std::string_view text);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_PRINTABLE_H
