//===- Text.cpp - Formats text with typed arguments -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace dyna;
using namespace dyna::detail;

namespace {

/// Text of at most `capacity` bytes, its end included; counts what is cut too.
class Writer {
public:
  Writer(char *to, size_t capacity) : to_(to), capacity_(capacity) {}

  void put(std::string_view text) {
    if (length_ + 1 < capacity_)
      std::memcpy(to_ + length_, text.data(),
                  std::min(text.size(), capacity_ - 1 - length_));
    length_ += text.size();
  }

  /// Writes one value by a conversion of the C library.
  template <typename T> void put(const char *conversion, T value) {
    size_t left = length_ < capacity_ ? capacity_ - length_ : 0;
    int size =
        std::snprintf(left ? to_ + length_ : nullptr, left, conversion, value);
    length_ += static_cast<size_t>(std::max(size, 0));
  }

  size_t finish() {
    if (capacity_ > 0)
      to_[std::min(length_, capacity_ - 1)] = '\0';
    return length_;
  }

private:
  char *to_;
  size_t capacity_, length_ = 0;
};

/// Writes `value` by `conversion`, a complete one as in the format. Returns
/// false if it is too long to be sensible.
bool put(Writer &writer, std::string_view conversion,
         const TextArgument &value) {
  char format[32];
  if (conversion.size() + sizeof("ll") > sizeof(format))
    return false;
  const char letter = conversion.back();
  const bool isPlain = conversion.size() == 2; // "%s"
  if (letter == 's' && isPlain) {
    writer.put(value.text);
    return true;
  }
  char *end = std::copy(conversion.begin(), conversion.end() - 1, format);
  if (value.kind == TextKind::Integer)
    end = std::copy_n("ll", 2, end);
  *end++ = letter == 'd' && !value.isSigned ? 'u' : letter;
  *end = '\0';
  switch (value.kind) {
  case TextKind::Integer: {
    uint64_t bits = value.integer;
    if (letter == 'x' && value.bytes < 8)
      bits &= (UINT64_C(1) << 8 * value.bytes) - 1;
    writer.put(format, static_cast<unsigned long long>(bits));
    return true;
  }
  case TextKind::Real:
    writer.put(format, value.real);
    return true;
  case TextKind::Text:
    // The format may pad the text, which only works for C strings.
    writer.put(format, std::string(value.text).c_str());
    return true;
  }
  return false;
}

} // namespace

size_t detail::format(char *to, size_t capacity, const char *format,
                      const TextArgument *arguments, size_t count) {
  Writer writer(to, capacity);
  size_t used = 0;
  while (*format) {
    const char *at = format;
    if (*at != '%') {
      format += std::strcspn(format, "%");
      writer.put({at, static_cast<size_t>(format - at)});
      continue;
    }
    ++format;
    while (isFormatOption(*format))
      ++format;
    if (*format)
      ++format;
    std::string_view conversion(at, static_cast<size_t>(format - at));
    if (conversion == "%%")
      writer.put("%");
    else if (used < count &&
             takesKind(conversion.back(), arguments[used].kind) &&
             put(writer, conversion, arguments[used]))
      ++used;
    else
      writer.put(conversion);
  }
  return writer.finish();
}

std::string detail::format(const char *format, const TextArgument *arguments,
                           size_t count) {
  std::string text(detail::format(nullptr, 0, format, arguments, count), '\0');
  detail::format(text.data(), text.size() + 1, format, arguments, count);
  return text;
}

std::string dyna::formatBytes(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? formatText("%.0f %s", value, units[unit])
                   : formatText("%.1f %s", value, units[unit]);
}

std::string dyna::countOf(int64_t number, const std::string &noun) {
  return formatText("%d %s%s", number, noun, number == 1 ? "" : "s");
}

std::string dyna::groupDigits(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3;
       at > (value < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}
