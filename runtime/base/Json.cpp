//===- Json.cpp - Strict JSON reading -------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/Json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

using namespace dyna;

namespace {

/// Deep nesting has no use in our files and would exhaust the stack.
constexpr int depthLimit = 64;

bool isDigit(char c) { return c >= '0' && c <= '9'; }

int hexDigit(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

void appendUtf8(std::string &text, uint32_t point) {
  auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  }
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<JsonValue> parse() {
    JsonValue value;
    DYNA_RETURN_IF_ERROR(parseValue(value, 0));
    skipSpace();
    if (at_ != text_.size())
      return failure("expected the end, but more text follows");
    return value;
  }

private:
  Status failure(const std::string &what) const {
    return Status::invalidArgument("byte " + std::to_string(at_ + 1) + ": " +
                                   what);
  }

  bool atEnd() const { return at_ >= text_.size(); }
  char peek() const { return atEnd() ? '\0' : text_[at_]; }

  bool accept(char c) {
    if (atEnd() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  void skipSpace() {
    while (!atEnd() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                        text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  Status parseValue(JsonValue &value, int depth);
  Status parseWord(JsonValue &value);
  Status parseNumber(JsonValue &value);
  Status parseString(std::string &text);
  Status parseEscape(std::string &text);
  Status parseHex4(uint32_t &unit);
  Status parseArray(JsonValue &value, int depth);
  Status parseObject(JsonValue &value, int depth);
  Status checkKeys(const JsonValue &value) const;

  std::string_view text_;
  size_t at_ = 0;
};

Status Parser::parseValue(JsonValue &value, int depth) {
  if (depth > depthLimit)
    return failure("more than " + std::to_string(depthLimit) +
                   " levels of nesting");
  skipSpace();
  if (atEnd())
    return failure("expected a value, but the text ends");
  switch (peek()) {
  case '{':
    return parseObject(value, depth);
  case '[':
    return parseArray(value, depth);
  case '"':
    value.kind = JsonValue::Kind::String;
    return parseString(value.text);
  case 't':
  case 'f':
  case 'n':
    return parseWord(value);
  default:
    return parseNumber(value);
  }
}

Status Parser::parseWord(JsonValue &value) {
  auto is = [&](std::string_view word) {
    if (text_.substr(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  };
  if (is("null"))
    return Status::ok();
  value.kind = JsonValue::Kind::Boolean;
  if (is("true")) {
    value.boolean = true;
    return Status::ok();
  }
  if (is("false"))
    return Status::ok();
  return failure("expected a value");
}

Status Parser::parseNumber(JsonValue &value) {
  size_t begin = at_;
  bool isInteger = true;
  accept('-');
  if (!isDigit(peek())) {
    at_ = begin;
    return failure("expected a value");
  }
  if (!accept('0'))
    while (isDigit(peek()))
      ++at_;
  if (accept('.')) {
    isInteger = false;
    if (!isDigit(peek()))
      return failure("expected a digit after the decimal point");
    while (isDigit(peek()))
      ++at_;
  }
  bool isTiny = false;
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    isInteger = false;
    if (!accept('+'))
      isTiny = accept('-');
    if (!isDigit(peek()))
      return failure("expected a digit in the exponent");
    while (isDigit(peek()))
      ++at_;
  }
  const char *first = text_.data() + begin, *last = text_.data() + at_;
  value.kind = JsonValue::Kind::Number;
  if (std::from_chars(first, last, value.number).ec != std::errc()) {
    value.number = isTiny ? 0 : std::numeric_limits<double>::infinity();
    if (*first == '-')
      value.number = -value.number;
  }
  int64_t integer = 0;
  if (isInteger && std::from_chars(first, last, integer).ec == std::errc())
    value.integer = integer;
  return Status::ok();
}

Status Parser::parseHex4(uint32_t &unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    int digit = hexDigit(peek());
    if (digit < 0)
      return failure("expected four hexadecimal digits after \\u");
    unit = unit << 4 | static_cast<uint32_t>(digit);
  }
  return Status::ok();
}

Status Parser::parseEscape(std::string &text) {
  static constexpr std::string_view letters = "\"\\/bfnrt";
  static constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  size_t index = atEnd() ? letters.npos : letters.find(peek());
  if (index != letters.npos) {
    text.push_back(meanings[index]);
    ++at_;
    return Status::ok();
  }
  if (!accept('u'))
    return failure("unknown escape in a string");
  uint32_t point = 0;
  DYNA_RETURN_IF_ERROR(parseHex4(point));
  if (point >= 0xDC00 && point < 0xE000)
    return failure("a low surrogate without a high one before it");
  if (point >= 0xD800 && point < 0xDC00) {
    uint32_t low = 0;
    if (!accept('\\') || !accept('u'))
      return failure("a high surrogate without a low one after it");
    DYNA_RETURN_IF_ERROR(parseHex4(low));
    if (low < 0xDC00 || low >= 0xE000)
      return failure("a high surrogate without a low one after it");
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  }
  appendUtf8(text, point);
  return Status::ok();
}

Status Parser::parseString(std::string &text) {
  ++at_; // the opening quote
  while (true) {
    // Plain ASCII is by far the commonest: copied in runs.
    size_t begin = at_;
    while (!atEnd() && static_cast<unsigned char>(text_[at_]) >= 0x20 &&
           static_cast<unsigned char>(text_[at_]) < 0x80 && text_[at_] != '"' &&
           text_[at_] != '\\')
      ++at_;
    text.append(text_, begin, at_ - begin);
    if (atEnd())
      return failure("a string without its closing quote");
    if (accept('"'))
      return Status::ok();
    if (accept('\\')) {
      DYNA_RETURN_IF_ERROR(parseEscape(text));
      continue;
    }
    if (static_cast<unsigned char>(text_[at_]) < 0x20)
      return failure("a control character in a string; write it as \\u00XX");
    size_t length = utf8SequenceLength(text_, at_);
    if (length == 0)
      return failure("bad UTF-8 in a string");
    text.append(text_, at_, length);
    at_ += length;
  }
}

Status Parser::parseArray(JsonValue &value, int depth) {
  value.kind = JsonValue::Kind::Array;
  ++at_; // [
  skipSpace();
  if (accept(']'))
    return Status::ok();
  while (true) {
    value.items.emplace_back();
    DYNA_RETURN_IF_ERROR(parseValue(value.items.back(), depth + 1));
    skipSpace();
    if (accept(']'))
      return Status::ok();
    if (!accept(','))
      return failure("expected ',' or ']' in an array");
  }
}

Status Parser::parseObject(JsonValue &value, int depth) {
  value.kind = JsonValue::Kind::Object;
  ++at_; // {
  skipSpace();
  if (accept('}'))
    return Status::ok();
  while (true) {
    skipSpace();
    if (peek() != '"')
      return failure("expected a key in quotes");
    value.keys.emplace_back();
    DYNA_RETURN_IF_ERROR(parseString(value.keys.back()));
    skipSpace();
    if (!accept(':'))
      return failure("expected ':' after a key");
    value.items.emplace_back();
    DYNA_RETURN_IF_ERROR(parseValue(value.items.back(), depth + 1));
    skipSpace();
    if (accept('}'))
      return checkKeys(value);
    if (!accept(','))
      return failure("expected ',' or '}' in an object");
  }
}

Status Parser::checkKeys(const JsonValue &value) const {
  std::vector<std::string_view> sorted(value.keys.begin(), value.keys.end());
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return failure("the key " + quoteJson(*twice) +
                   " appears twice in one object");
  return Status::ok();
}

} // namespace

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

StatusOr<JsonValue> dyna::parseJson(std::string_view text) {
  return Parser(text).parse();
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
  // Beyond all doubles a number is infinite, for which JSON has no name.
  if (error != std::errc() || !std::isfinite(value.number))
    return value.number < 0 ? "-1e999" : "1e999";
  return {text, end};
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
