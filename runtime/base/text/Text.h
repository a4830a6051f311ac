//===- Text.h - Formats text with typed arguments ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Formats look like those of printf, but arguments have their types. No
// argument is cast, no length is written, and a std::string needs no c_str().
//
//     %d        any integer, of any size, signed or unsigned
//     %x        an integer in base 16: the bits of its own type
//     %f %e %g  a floating-point number
//     %s        a std::string, a std::string_view or a C string
//
// Flags, width and precision are printf's, written as numbers. With clang, a
// format that does not fit its arguments does not compile. A format that is
// only known at run time prints conversions without an argument unchanged.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_TEXT_H
#define DYNA_RUNTIME_BASE_TEXT_TEXT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace dyna {

enum class TextKind : char { Integer, Real, Text };

/// One argument of a format.
class TextArgument {
  template <typename T>
  static constexpr bool isConstant =
      std::is_enum_v<T> && std::is_convertible_v<T, int>;

public:
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  TextArgument(T value)
      : kind(TextKind::Integer), isSigned(std::is_signed_v<T>),
        bytes(sizeof(T)), integer(static_cast<uint64_t>(value)) {}
  /// Accepts constants of C.
  template <typename T, std::enable_if_t<isConstant<T>, int> = 0>
  TextArgument(T value) : TextArgument(+value) {}
  TextArgument(double value) : kind(TextKind::Real), real(value) {}
  TextArgument(const char *value) : kind(TextKind::Text), text(value) {}
  TextArgument(std::string_view value) : kind(TextKind::Text), text(value) {}
  TextArgument(const std::string &value) : kind(TextKind::Text), text(value) {}

  template <typename T>
  static constexpr TextKind kindOf =
      std::is_integral_v<T> || isConstant<T> ? TextKind::Integer
      : std::is_floating_point_v<T>          ? TextKind::Real
                                             : TextKind::Text;

  TextKind kind;
  bool isSigned = false;
  int bytes = 0;
  uint64_t integer = 0;
  double real = 0;
  std::string_view text;
};

namespace detail {

/// Returns true for characters that may stand between a '%' and its letter.
constexpr bool isFormatOption(char c) {
  return c == '-' || c == '+' || c == ' ' || c == '#' || c == '.' ||
         (c >= '0' && c <= '9');
}

constexpr bool takesKind(char letter, TextKind kind) {
  switch (letter) {
  case 'd':
  case 'x':
    return kind == TextKind::Integer;
  case 'e':
  case 'f':
  case 'g':
    return kind == TextKind::Real;
  case 's':
    return kind == TextKind::Text;
  default:
    return false;
  }
}

template <typename... T> constexpr bool fitsFormat(const char *format) {
  constexpr size_t count = sizeof...(T);
  const TextKind kinds[count + 1] = {TextArgument::kindOf<std::decay_t<T>>...};
  size_t used = 0;
  for (; *format; ++format) {
    if (*format != '%')
      continue;
    ++format;
    if (*format == '%')
      continue;
    while (isFormatOption(*format))
      ++format;
    if (used == count || !takesKind(*format, kinds[used]))
      return false;
    ++used;
  }
  return used == count;
}

/// Formats like snprintf: cuts at `capacity`, which includes the end, and
/// returns the length of the whole text.
size_t format(char *to, size_t capacity, const char *format,
              const TextArgument *arguments, size_t count);

std::string format(const char *format, const TextArgument *arguments,
                   size_t count);

} // namespace detail

#ifdef __clang__
#define DYNA_CHECK_FORMAT(fits)                                                \
  __attribute__((                                                              \
      diagnose_if(!(fits), "the format does not fit its arguments", "error")))
#else
#define DYNA_CHECK_FORMAT(fits)
#endif

template <typename... T>
std::string formatText(const char *format, const T &...values)
    DYNA_CHECK_FORMAT(detail::fitsFormat<T...>(format)) {
  const TextArgument arguments[] = {values..., 0};
  return detail::format(format, arguments, sizeof...(T));
}

/// Formats into `capacity` bytes, and cuts text that does not fit. For code
/// that must not allocate memory.
template <typename... T>
void formatInto(char *to, size_t capacity, const char *format,
                const T &...values)
    DYNA_CHECK_FORMAT(detail::fitsFormat<T...>(format)) {
  const TextArgument arguments[] = {values..., 0};
  detail::format(to, capacity, format, arguments, sizeof...(T));
}

/// Returns bytes for people, such as "1.5 GiB".
std::string formatBytes(int64_t bytes);

/// Returns 1234567 as "1,234,567".
std::string groupDigits(int64_t value);

/// Returns "1 step", "4 steps".
std::string countOf(int64_t number, const std::string &noun);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_TEXT_H
