//===- JsonReader.cpp - Reads JSON value by value -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/JsonReader.h"

#include "runtime/base/text/Printable.h"

#include <algorithm>
#include <charconv>
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

} // namespace

Status JsonReader::failure(const std::string &what) const {
  return Status::invalidArgument(place_ + "byte " + std::to_string(at_ + 1) +
                                 ": " + what);
}

bool JsonReader::accept(char c) {
  if (atEnd() || text_[at_] != c)
    return false;
  ++at_;
  return true;
}

void JsonReader::skipSpace() {
  while (!atEnd() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                      text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

StatusOr<JsonValue::Kind> JsonReader::kind() {
  skipSpace();
  if (atEnd())
    return failure("expected a value, but the text ends");
  switch (peek()) {
  case '{':
    return JsonValue::Kind::Object;
  case '[':
    return JsonValue::Kind::Array;
  case '"':
    return JsonValue::Kind::String;
  case 't':
  case 'f':
    return JsonValue::Kind::Boolean;
  case 'n':
    return JsonValue::Kind::Null;
  default:
    if (peek() != '-' && !isDigit(peek()))
      return failure("expected a value");
    return JsonValue::Kind::Number;
  }
}

Status JsonReader::readMembers(
    const std::function<Status(const std::string &)> &member,
    bool takesBadKeys) {
  skipSpace();
  if (!accept('{'))
    return failure("expected an object");
  skipSpace();
  if (accept('}'))
    return Status::ok();
  std::string key;
  while (true) {
    skipSpace();
    if (peek() != '"')
      return failure("expected a key in quotes");
    key.clear();
    const size_t begin = at_;
    if (Status status = parseString(key); !status.isOk()) {
      if (!takesBadKeys)
        return status;
      key.clear();
      at_ = begin;
      DYNA_RETURN_IF_ERROR(skipString());
    }
    skipSpace();
    if (!accept(':'))
      return failure("expected ':' after a key");
    DYNA_RETURN_IF_ERROR(member(key));
    skipSpace();
    if (accept('}'))
      return Status::ok();
    if (!accept(','))
      return failure("expected ',' or '}' in an object");
  }
}

Status JsonReader::readArray(const std::function<Status()> &item) {
  skipSpace();
  if (!accept('['))
    return failure("expected an array");
  skipSpace();
  if (accept(']'))
    return Status::ok();
  while (true) {
    DYNA_RETURN_IF_ERROR(item());
    skipSpace();
    if (accept(']'))
      return Status::ok();
    if (!accept(','))
      return failure("expected ',' or ']' in an array");
  }
}

Status JsonReader::readString(std::string &text) {
  skipSpace();
  if (peek() != '"')
    return failure("expected a string");
  return parseString(text);
}

Status JsonReader::finish() {
  skipSpace();
  if (at_ != text_.size())
    return failure("expected the end, but more text follows");
  return Status::ok();
}

/// Skips a string up to the quote that closes it, with any contents.
Status JsonReader::skipString() {
  for (++at_; !atEnd(); ++at_) {
    at_ = std::min(text_.find_first_of("\"\\", at_), text_.size());
    if (accept('"'))
      return Status::ok();
    if (!atEnd())
      ++at_; // the escaped character
  }
  at_ = text_.size();
  return failure("a string without its closing quote");
}

Status JsonReader::skip() {
  std::string open; // brackets
  do {
    skipSpace();
    if (atEnd())
      return failure("expected a value, but the text ends");
    const char c = peek();
    if (c == '"') {
      DYNA_RETURN_IF_ERROR(skipString());
    } else if (c == '{' || c == '[') {
      open.push_back(c);
      ++at_;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != (c == '}' ? '{' : '['))
        return failure(open.empty() ? "expected a value"
                       : open.back() == '{'
                           ? "expected ',' or '}' in an object"
                           : "expected ',' or ']' in an array");
      open.pop_back();
      ++at_;
    } else if (c == ',' || c == ':') {
      if (open.empty())
        return failure("expected a value");
      ++at_;
    } else {
      at_ = std::min(text_.find_first_of(" \t\r\n,:{}[]\"", at_), text_.size());
    }
  } while (!open.empty());
  return Status::ok();
}

Status JsonReader::parseValue(JsonValue &value, int depth) {
  if (depth > depthLimit)
    return failure("more than " + std::to_string(depthLimit) +
                   " levels of nesting");
  if (++values_ > kMostJsonValues)
    return failure("more than " + std::to_string(kMostJsonValues) +
                   " values: nothing that is read as a whole has so many");
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

Status JsonReader::parseWord(JsonValue &value) {
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

Status JsonReader::parseNumber(JsonValue &value) {
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

Status JsonReader::parseHex4(uint32_t &unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    int digit = hexDigit(peek());
    if (digit < 0)
      return failure("expected four hexadecimal digits after \\u");
    unit = unit << 4 | static_cast<uint32_t>(digit);
  }
  return Status::ok();
}

Status JsonReader::parseEscape(std::string &text) {
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

Status JsonReader::parseString(std::string &text) {
  ++at_; // the opening quote
  while (true) {
    // Copy plain ASCII in runs, because nearly all text is ASCII.
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

Status JsonReader::parseArray(JsonValue &value, int depth) {
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

Status JsonReader::parseObject(JsonValue &value, int depth) {
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

Status JsonReader::checkKeys(const JsonValue &value) const {
  std::vector<std::string_view> sorted(value.keys.begin(), value.keys.end());
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return failure("the key " + quoteJson(excerpt(*twice)) +
                   " appears twice in one object");
  return Status::ok();
}

StatusOr<JsonValue> dyna::parseJson(std::string_view text) {
  JsonReader reader(text);
  JsonValue value;
  DYNA_RETURN_IF_ERROR(reader.readValue(value));
  DYNA_RETURN_IF_ERROR(reader.finish());
  return value;
}
