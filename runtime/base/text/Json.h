//===- Json.h - Reads and writes JSON values as trees -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A strict reader of JSON (RFC 8259): valid UTF-8, no duplicate keys, no lone
// surrogates, no trailing text, limited depth and number of values. It reads
// small files as trees. JsonReader.h reads large ones value by value.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_JSON_H
#define DYNA_RUNTIME_BASE_TEXT_JSON_H

#include "runtime/base/error/Status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dyna {

struct JsonValue {
  enum class Kind { Null, Boolean, Number, String, Array, Object };

  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  /// Value of a number that was written without fraction and exponent, if it
  /// fits.
  std::optional<int64_t> integer;
  std::string text;              ///< of a string, as UTF-8
  std::vector<JsonValue> items;  ///< of an array or, in file order, an object
  std::vector<std::string> keys; ///< of an object, one per item

  bool isString() const { return kind == Kind::String; }
  bool isArray() const { return kind == Kind::Array; }
  bool isObject() const { return kind == Kind::Object; }

  /// Returns the member of an object, or null.
  const JsonValue *find(std::string_view key) const;
  /// Returns the integer member of an object, if it exists and is an integer.
  std::optional<int64_t> findInteger(std::string_view key) const;
};

/// Returns "a string", "an object", ... for messages.
const char *jsonKindName(JsonValue::Kind kind);

/// Returns `text` as a JSON string with its quotes. Bytes that are not UTF-8
/// become U+FFFD, so that the result is always JSON.
std::string quoteJson(std::string_view text);

/// Returns `value` as JSON text, one member on a line. Numbers keep their
/// values.
std::string writeJson(const JsonValue &value, size_t indentation = 0);

/// Returns the length of the UTF-8 sequence at `at`, or 0 if it is not valid
/// UTF-8. Overlong forms, surrogates and values past U+10FFFF are not valid.
size_t utf8SequenceLength(std::string_view text, size_t at);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_JSON_H
