//===- JsonReader.h - Reads JSON value by value -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A strict reader (RFC 8259) that hands out members and items one by one, so that
// memory is what the caller keeps, however the text looks:
//
//   JsonReader reader(text);
//   DYNA_RETURN_IF_ERROR(reader.readObject([&](const std::string &key) {
//     return key == "name" ? reader.readString(name) : reader.skip();
//   }));
//   DYNA_RETURN_IF_ERROR(reader.finish());
//
// Whoever is called reads or skips exactly one value. Failures start with
// "byte N: ", N from 1.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_JSONREADER_H
#define DYNA_RUNTIME_BASE_JSONREADER_H

#include "runtime/base/Json.h"

#include <functional>

namespace dyna {

/// Most values that a tree has: one takes 112 bytes, however short its text. What
/// may be larger is read value by value.
inline constexpr size_t kMostJsonValues = size_t(1) << 18;

/// Parses the whole of `text`. Messages start with "byte N: ", N from 1.
StatusOr<JsonValue> parseJson(std::string_view text);

class JsonReader {
public:
  /// `place` is put before the byte in failures.
  explicit JsonReader(std::string_view text, std::string place = "")
      : text_(text), place_(std::move(place)) {}

  /// The kind of the value that begins here, by its first character.
  StatusOr<JsonValue::Kind> kind();
  /// Calls `member` for each member with its key.
  Status readObject(const std::function<Status(const std::string &)> &member) {
    return readMembers(member, /*takesBadKeys=*/false);
  }
  /// The same, but a key that is no valid string is given as an empty one.
  Status
  readLooseObject(const std::function<Status(const std::string &)> &member) {
    return readMembers(member, /*takesBadKeys=*/true);
  }
  /// Calls `item` for each item.
  Status readArray(const std::function<Status()> &item);
  Status readString(std::string &text);
  /// The value with all that is in it, of at most kMostJsonValues values.
  Status readValue(JsonValue &value) {
    values_ = 0;
    return parseValue(value, 0);
  }
  /// Passes over a value that nobody reads. Brackets and quotes must match;
  /// anything may stand between them (Python writes NaN).
  Status skip();
  /// Fails if anything but space follows.
  Status finish();

  /// A failure at this place.
  Status failure(const std::string &what) const;

private:
  bool atEnd() const { return at_ >= text_.size(); }
  char peek() const { return atEnd() ? '\0' : text_[at_]; }
  bool accept(char c);
  void skipSpace();
  Status skipString();

  Status readMembers(const std::function<Status(const std::string &)> &member,
                     bool takesBadKeys);
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
  std::string place_;
  size_t values_ = 0; ///< of the tree that is made
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_JSONREADER_H
