//===- Json.cpp - Reads and writes JSON values as trees -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace dyna;

size_t dyna::utf8SequenceLength(std::string_view text, size_t at) {
  auto byte = [&](size_t offset) -> uint32_t {
    return at + offset < text.size()
               ? static_cast<unsigned char>(text[at + offset])
               : 0;
  };
  auto follows = [&](size_t offset) { return (byte(offset) & 0xC0) == 0x80; };
  uint32_t first = byte(0);
  if (at >= text.size())
    return 0;
  if (first < 0x80)
    return 1;
  if (first >= 0xC2 && first < 0xE0)
    return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    bool isOverlong = first == 0xE0 && byte(1) < 0xA0;
    bool isSurrogate = first == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !isOverlong && !isSurrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    bool isOverlong = first == 0xF0 && byte(1) < 0x90;
    bool isTooLarge = first == 0xF4 && byte(1) >= 0x90;
    bool allFollow = follows(1) && follows(2) && follows(3);
    return allFollow && !isOverlong && !isTooLarge ? 4 : 0;
  }
  return 0;
}

const JsonValue *JsonValue::find(std::string_view key) const {
  if (!isObject())
    return nullptr;
  auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[found - keys.begin()];
}

std::optional<int64_t> JsonValue::findInteger(std::string_view key) const {
  const JsonValue *value = find(key);
  return value ? value->integer : std::nullopt;
}

const char *dyna::jsonKindName(JsonValue::Kind kind) {
  switch (kind) {
  case JsonValue::Kind::Null:
    return "null";
  case JsonValue::Kind::Boolean:
    return "a boolean";
  case JsonValue::Kind::Number:
    return "a number";
  case JsonValue::Kind::String:
    return "a string";
  case JsonValue::Kind::Array:
    return "an array";
  case JsonValue::Kind::Object:
    return "an object";
  }
  return "unknown";
}

std::string dyna::quoteJson(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    size_t length = utf8SequenceLength(text, at);
    if (length == 0) {
      result += "\xEF\xBF\xBD";
      ++at;
      continue;
    }
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += "\\u00";
      result += digits[c >> 4];
      result += digits[c & 15];
    } else {
      result.append(text, at, length);
    }
    at += length;
  }
  return result + "\"";
}

static std::string writeNumber(const JsonValue &value) {
  if (value.integer)
    return std::to_string(*value.integer);
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value.number);
  // Numbers beyond the largest double are infinite, which JSON cannot express.
  if (error != std::errc() || !std::isfinite(value.number))
    return value.number < 0 ? "-1e999" : "1e999";
  std::string number(text, end);
  // A whole number such as 8.0 stays a real number for other readers.
  return number.find_first_of(".e") == std::string::npos ? number + ".0"
                                                         : number;
}

std::string dyna::writeJson(const JsonValue &value, size_t indentation) {
  switch (value.kind) {
  case JsonValue::Kind::Null:
    return "null";
  case JsonValue::Kind::Boolean:
    return value.boolean ? "true" : "false";
  case JsonValue::Kind::Number:
    return writeNumber(value);
  case JsonValue::Kind::String:
    return quoteJson(value.text);
  case JsonValue::Kind::Array:
  case JsonValue::Kind::Object:
    break;
  }
  std::string text = value.isObject() ? "{" : "[";
  for (size_t i = 0; i < value.items.size(); ++i) {
    text += (i ? ",\n" : "\n") + std::string(indentation + 2, ' ');
    if (value.isObject())
      text += quoteJson(value.keys[i]) + ": ";
    text += writeJson(value.items[i], indentation + 2);
  }
  if (!value.items.empty())
    text += "\n" + std::string(indentation, ' ');
  return text + (value.isObject() ? "}" : "]");
}
