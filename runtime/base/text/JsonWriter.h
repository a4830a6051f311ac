//===- JsonWriter.h - Writes JSON objects and arrays ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two classes write all JSON that Dyna prints, member by member:
//
//     JsonObject().add("step", 3).add("loss", jsonFixed(2.5, 3)).text()
//     {"step": 3, "loss": 2.500}
//
// The result is always JSON: texts are quoted, and numbers that are not finite
// become null. Keys are names of the program, and are not checked.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_JSONWRITER_H
#define DYNA_RUNTIME_BASE_TEXT_JSONWRITER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dyna {

/// JSON text of one value. Values of C++ convert to it.
class JsonText {
public:
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  JsonText(T value)
      : text_(std::is_same_v<T, bool> ? (value ? "true" : "false")
                                      : std::to_string(value)) {}
  /// Writes a number so that reading it returns the same number.
  JsonText(double value);
  JsonText(std::string_view text);
  JsonText(const std::string &text) : JsonText(std::string_view(text)) {}
  JsonText(const char *text) : JsonText(std::string_view(text)) {}

  /// Accepts text that is JSON already.
  static JsonText raw(std::string json);
  static JsonText null() { return raw("null"); }

  const std::string &text() const { return text_; }

private:
  JsonText() = default;
  std::string text_;
};

/// Returns a number with this many digits after the point.
JsonText jsonFixed(double value, int digits);
/// Returns a number with this many significant digits.
JsonText jsonRounded(double value, int digits);

class JsonArray {
public:
  JsonArray &add(const JsonText &value);
  bool isEmpty() const { return items_.empty(); }
  /// Returns the array on one line. `separator` stands before each item instead of a
  /// space, and before the first item too if it has a line break.
  std::string text(std::string_view separator = " ") const;
  operator JsonText() const { return JsonText::raw(text()); }

private:
  std::vector<std::string> items_;
};

class JsonObject {
public:
  JsonObject &add(std::string_view key, const JsonText &value);
  /// Adds all members of another object.
  JsonObject &addAll(const JsonObject &other);
  bool isEmpty() const { return members_.empty(); }
  /// Returns the object on one line, or with `separator` between members (JsonArray).
  std::string text(std::string_view separator = " ") const;
  operator JsonText() const { return JsonText::raw(text()); }

private:
  std::vector<std::string> members_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_JSONWRITER_H
