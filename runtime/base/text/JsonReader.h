//===- JsonReader.h - Reads JSON value by value -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A strict reader (RFC 8259) that gives members and items to the caller one by
// one. So memory is only what the caller keeps, whatever the text is:
//
//     JsonReader reader(text);
//     DYNA_RETURN_IF_ERROR(reader.readObject([&](const std::string &key) {
//       return key == "name" ? reader.readString(name) : reader.skip();
//     }));
//     DYNA_RETURN_IF_ERROR(reader.finish());
//
// A callback must read or skip exactly one value. Messages start with "byte N:
// ", N from 1.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_JSONREADER_H
#define DYNA_RUNTIME_BASE_TEXT_JSONREADER_H

#include "runtime/base/text/Json.h"

#include <functional>

namespace dyna {

/// Largest number of values in a tree. A value takes 112 bytes, however short
/// its text. Larger texts are read value by value.
inline constexpr size_t kMostJsonValues = size_t(1) << 18;

/// Parses the whole of `text`. Messages start with "byte N: ", N from 1.
StatusOr<JsonValue> parseJson(std::string_view text);

class JsonReader {
public:
  /// `place` stands before the byte in messages.
  explicit JsonReader(std::string_view text, std::string place = "")
      : text_(text), place_(std::move(place)) {}

  /// Returns the kind of the value that begins here, by its first character.
  StatusOr<JsonValue::Kind> kind();
  /// Calls `member` for each member with its key.
  Status readObject(const std::function<Status(const std::string &)> &member) {
    return readMembers(member, /*takesBadKeys=*/false);
  }
  /// Does the same, but gives a key that is no valid string as an empty one.
  Status
  readLooseObject(const std::function<Status(const std::string &)> &member) {
    return readMembers(member, /*takesBadKeys=*/true);
  }
  /// Calls `item` for each item.
  Status readArray(const std::function<Status()> &item);
  Status readString(std::string &text);
  /// Reads the value with everything inside it, at most kMostJsonValues values.
  Status readValue(JsonValue &value) {
    values_ = 0;
    return parseValue(value, 0);
  }
  /// Skips a value that the caller does not need. Brackets and quotes must
  /// match; anything may stand between them (Python writes NaN).
  Status skip();
  /// Fails if anything but space follows.
  Status finish();

  /// Returns a failure at this place.
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

#endif // DYNA_RUNTIME_BASE_TEXT_JSONREADER_H
