//===- Printable.cpp - Makes foreign text safe for a terminal -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Printable.h"

#include "runtime/base/text/Text.h"

#include <cstdint>

/// Bytes of the character at the start of `text` and its number; 0 bytes if
/// there is no valid one.
static int decode(std::string_view text, uint32_t &character) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  uint32_t first = byte(0);
  if (first < 0x80) {
    character = first;
    return 1;
  }
  int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xC0 || first > 0xF7 || text.size() < static_cast<size_t>(size))
    return 0;
  character = first & (0x7F >> size);
  for (int i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
    character = character << 6 | (byte(i) & 0x3F);
  }
  bool isSurrogate = character >= 0xD800 && character <= 0xDFFF;
  return character < least[size] || isSurrogate || character > 0x10FFFF ? 0
                                                                        : size;
}

/// Returns true for control characters of terminals (C0, DEL, C1), and for
/// those that change the direction or break lines.
static bool isControl(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x61C || c == 0x200E ||
         c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string dyna::printable(std::string_view text, bool hasLines) {
  std::string result;
  while (!text.empty()) {
    uint32_t character = 0;
    int size = decode(text, character);
    if (size > 0 && (!isControl(character) || (hasLines && text[0] == '\n'))) {
      result += text.substr(0, static_cast<size_t>(size));
    } else if (text[0] == '\n') {
      result += "\\n";
    } else {
      size = size > 0 ? size : 1;
      for (int i = 0; i < size; ++i) {
        result += formatText("\\x%02x", text[i]);
      }
    }
    text.remove_prefix(static_cast<size_t>(size > 0 ? size : 1));
  }
  return result;
}

std::string dyna::excerpt(std::string_view text, size_t most) {
  if (text.size() <= most)
    return std::string(text);
  auto isWithin = [&](size_t at) { // inside a character
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  size_t end = most * 2 / 3, begin = text.size() - most / 3;
  // A UTF-8 character continues for at most three bytes.
  for (int i = 0; i < 3 && end > 0 && isWithin(end); ++i)
    --end;
  for (int i = 0; i < 3 && begin < text.size() && isWithin(begin); ++i)
    ++begin;
  return formatText("%s...(%d bytes)...%s", text.substr(0, end), begin - end,
                    text.substr(begin));
}

std::string dyna::messageText(std::string_view text) {
  // Shorten before and after, because bytes that are not printable become four.
  return excerpt(printable(excerpt(text, kMostMessageBytes)),
                 kMostMessageBytes);
}
