//===- LineFields.cpp - Reads the members of a line of JSON ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/LineFields.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/Printable.h"

#include <algorithm>
#include <map>
#include <optional>

namespace dyna {
namespace {

constexpr std::string_view messageBegin = "<|im_start|>",
                           messageEnd = "<|im_end|>\n";
constexpr std::string_view assistantRole = "assistant";
constexpr std::string_view roles[] = {"system",    "developer", "user",
                                      "assistant", "tool",      "function"};

Status bad(const std::string &what) { return Status::invalidArgument(what); }

std::string quoted(const std::string &name) { return "\"" + name + "\""; }

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::vector<std::string> splitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

constexpr const char *fieldsHint =
    "; expected for example input=instruction+input,target=output, "
    "text=title+body or messages=conversation";

/// Returns the names of a part, by its name.
std::vector<std::string> *partNamed(LineFields &fields,
                                    const std::string &part) {
  if (part == "text")
    return &fields.text;
  if (part == "input")
    return &fields.input;
  if (part == "target")
    return &fields.target;
  return part == "messages" ? &fields.messages : nullptr;
}

Status checkForms(const LineFields &fields) {
  const bool isPair = !fields.input.empty() || !fields.target.empty();
  const int forms =
      int(!fields.text.empty()) + int(isPair) + int(!fields.messages.empty());
  if (forms != 1)
    return bad(std::string("--fields names more than one of text, input with "
                           "target, and messages") +
               fieldsHint);
  if (isPair && (fields.input.empty() || fields.target.empty()))
    return bad(std::string("--fields names ") +
               (fields.input.empty() ? "a target, but no input"
                                     : "an input, but no target") +
               fieldsHint);
  if (fields.messages.size() > 1)
    return bad("--fields names several members for messages, expected one");
  std::vector<std::string> names = fields.text;
  for (const auto *more : {&fields.input, &fields.target, &fields.messages})
    names.insert(names.end(), more->begin(), more->end());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return bad("--fields names the member " + quoteJson(excerpt(*twice)) +
               " twice");
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

class LineReader {
public:
  LineReader(std::string_view line, const LineFields &fields, int64_t endTokens)
      : reader_(line), fields_(fields), endTokens_(endTokens) {
    for (const auto *part : {&fields.text, &fields.input, &fields.target})
      for (const std::string &name : *part)
        strings_[name];
  }

  StatusOr<LineParts> read() {
    DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader_.kind());
    if (kind != JsonValue::Kind::Object)
      return bad(std::string("expected an object such as {\"text\": \"...\"}, "
                             "but got ") +
                 jsonKindName(kind));
    DYNA_RETURN_IF_ERROR(reader_.readLooseObject(
        [this](const std::string &key) { return take(key); }));
    DYNA_RETURN_IF_ERROR(reader_.finish());
    DYNA_RETURN_IF_ERROR(checkForm());
    if (hasMessages_)
      return std::move(conversation_);
    LineParts parts;
    add(fields_.text, /*endsLines=*/false, parts);
    add(fields_.input, fields_.isGiven, parts);
    parts.firstTarget =
        has(fields_.text) ? 1 : std::max<int64_t>(1, parts.bytes());
    add(fields_.target, /*endsLines=*/false, parts);
    return parts;
  }

private:
  Status take(const std::string &key) {
    if (!fields_.messages.empty() && key == fields_.messages.front())
      return takeMessages(key);
    const auto entry = strings_.find(key);
    if (entry == strings_.end())
      return reader_.skip();
    if (entry->second)
      return twice(key);
    DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader_.kind());
    // Lines of tables may leave columns empty.
    if (fields_.isGiven && kind == JsonValue::Kind::Null)
      return reader_.skip();
    return takeString(key, entry->second.emplace());
  }

  Status takeString(const std::string &key, std::string &text) {
    DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader_.kind());
    if (kind != JsonValue::Kind::String)
      return bad("expected a string for " + quoted(key) + ", but got " +
                 jsonKindName(kind));
    return reader_.readString(text);
  }

  Status twice(const std::string &key) const {
    return reader_.failure("the key " + quoted(key) +
                           " appears twice in one object");
  }

  bool has(const std::vector<std::string> &names) const {
    return std::any_of(names.begin(), names.end(), [&](const auto &name) {
      return strings_.at(name).has_value();
    });
  }

  /// Appends the members of a part.
  void add(const std::vector<std::string> &names, bool endsLines,
           LineParts &parts) {
    bool isFirst = true;
    for (const std::string &name : names) {
      std::string text = std::move(strings_.at(name)).value_or("");
      if (text.empty())
        continue;
      if (!std::exchange(isFirst, false) && !endsLines)
        parts.pieces.push_back("\n");
      parts.pieces.push_back(std::move(text));
      if (endsLines)
        parts.pieces.push_back("\n");
    }
  }

  Status checkForm() const;
  Status checkGivenForm() const;
  Status takeMessages(const std::string &key);
  Status takeMessage(std::string &text, int64_t number);
  Status endMessages(const std::string &key, std::string text);

  JsonReader reader_;
  const LineFields &fields_;
  const int64_t endTokens_;
  std::map<std::string, std::optional<std::string>, std::less<>> strings_;
  bool hasMessages_ = false;
  LineParts conversation_;
  std::vector<DocumentRange> spoken_; ///< by the assistant, in bytes
};

Status LineReader::checkForm() const {
  if (fields_.isGiven)
    return checkGivenForm();
  const bool hasText = has(fields_.text), hasInput = has(fields_.input),
             hasTarget = has(fields_.target);
  if (hasText && (hasInput || hasTarget))
    return bad("has \"text\" and also \"input\" or \"target\"; expected "
               "one of the two forms");
  if (hasMessages_ && (hasText || hasInput || hasTarget))
    return bad("has \"messages\" and also \"text\", \"input\" or \"target\"; "
               "expected one of the forms");
  if (hasText || hasMessages_ || (hasInput && hasTarget))
    return Status::ok();
  return bad(hasInput    ? "has \"input\" but no \"target\""
             : hasTarget ? "has \"target\" but no \"input\""
                         : "has neither \"text\" nor \"input\" and "
                           "\"target\" nor \"messages\"");
}

Status LineReader::checkGivenForm() const {
  std::string missing;
  for (const auto *part : {&fields_.text, &fields_.input, &fields_.target})
    if (!part->empty() && !has(*part)) {
      for (const std::string &name : *part)
        missing += (missing.empty() ? "" : " or ") + quoteJson(name);
      return bad("has no " + missing + ", which --fields names");
    }
  if (!fields_.messages.empty() && !hasMessages_)
    return bad("has no " + quoteJson(fields_.messages.front()) +
               ", which --fields names");
  return Status::ok();
}

Status LineReader::takeMessages(const std::string &key) {
  if (std::exchange(hasMessages_, true))
    return twice(key);
  DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader_.kind());
  if (kind != JsonValue::Kind::Array)
    return bad("expected an array of messages for " + quoted(key) +
               ", but got " + jsonKindName(kind));
  std::string text;
  int64_t number = 0;
  DYNA_RETURN_IF_ERROR(
      reader_.readArray([&] { return takeMessage(text, ++number); }));
  return endMessages(key, std::move(text));
}

/// `number` counts from 1.
Status LineReader::takeMessage(std::string &text, int64_t number) {
  const std::string place = "message " + std::to_string(number) + ": ";
  DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader_.kind());
  if (kind != JsonValue::Kind::Object)
    return bad(place +
               "expected an object with \"role\" and \"content\", but "
               "got " +
               jsonKindName(kind));
  std::optional<std::string> role, content;
  DYNA_RETURN_IF_ERROR(
      reader_.readLooseObject([&](const std::string &key) -> Status {
        auto *value = key == "role"      ? &role
                      : key == "content" ? &content
                                         : nullptr;
        if (!value)
          return reader_.skip();
        if (*value)
          return twice(key);
        Status status = takeString(key, value->emplace());
        return status.isOk() ? status
                             : Status(status.code(), place + status.message());
      }));
  if (!role || !content)
    return bad(place + "has no " + (role ? "\"content\"" : "\"role\""));
  if (std::find(std::begin(roles), std::end(roles), *role) == std::end(roles))
    return bad(place +
               "expected system, developer, user, assistant, tool or "
               "function as its role, but got " +
               quoteJson(excerpt(*role)));
  text.append(messageBegin).append(*role).append("\n");
  const auto begin = static_cast<int64_t>(text.size());
  text.append(*content).append(messageEnd);
  if (*role == assistantRole)
    spoken_.push_back({begin, static_cast<int64_t>(text.size())});
  return Status::ok();
}

Status LineReader::endMessages(const std::string &key, std::string text) {
  if (spoken_.empty())
    return bad("has no message of the assistant in " + quoted(key) +
               ", so that there is nothing to learn");
  const auto size = static_cast<int64_t>(text.size());
  const int64_t end = size + (spoken_.back().end < size ? endTokens_ : 0);
  conversation_.firstTarget = spoken_.front().begin;
  for (size_t i = 0; i < spoken_.size(); ++i) {
    const int64_t next = i + 1 < spoken_.size() ? spoken_[i + 1].begin : end;
    if (spoken_[i].end < next)
      conversation_.ignored.push_back({spoken_[i].end, next});
  }
  conversation_.pieces.push_back(std::move(text));
  return Status::ok();
}

} // namespace

StatusOr<LineFields> parseLineFields(std::string_view text) {
  LineFields fields{{}, {}, {}, {}, /*isGiven=*/true};
  for (const std::string &entry : splitAt(text, ',')) {
    const size_t equals = entry.find('=');
    std::vector<std::string> *part = partNamed(fields, entry.substr(0, equals));
    if (!part || equals == std::string::npos)
      return bad("--fields: expected text=, input=, target= or messages= in " +
                 quoteJson(excerpt(entry)) + fieldsHint);
    if (!part->empty())
      return bad("--fields gives " + entry.substr(0, equals) + " twice");
    *part = splitAt(std::string_view(entry).substr(equals + 1), '+');
    for (const std::string &name : *part)
      if (name.empty())
        return bad("--fields has an empty name in " +
                   quoteJson(excerpt(entry)) + fieldsHint);
  }
  DYNA_RETURN_IF_ERROR(checkForms(fields));
  return fields;
}

int64_t LineParts::bytes() const {
  int64_t sum = 0;
  for (const std::string &piece : pieces)
    sum += static_cast<int64_t>(piece.size());
  return sum;
}

StatusOr<LineParts> readLine(std::string_view line, const LineFields &fields,
                             int64_t endTokens) {
  return LineReader(line, fields, endTokens).read();
}

bool beginsAsLine(std::string_view text, const LineFields &fields) {
  auto isOneOf = [](const std::vector<std::string> &names,
                    const std::string &key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  bool hasText = false, hasInput = false, hasTarget = false,
       hasMessages = false, isOther = false;
  JsonReader reader(text.substr(0, text.find('\n')));
  Status status = reader.readLooseObject([&](const std::string &key) -> Status {
    const bool isMessages = isOneOf(fields.messages, key);
    const bool isString = isOneOf(fields.text, key) ||
                          isOneOf(fields.input, key) ||
                          isOneOf(fields.target, key);
    hasText |= isOneOf(fields.text, key);
    hasInput |= isOneOf(fields.input, key);
    hasTarget |= isOneOf(fields.target, key);
    hasMessages |= isMessages;
    if (!isMessages && !isString)
      return reader.skip();
    StatusOr<JsonValue::Kind> kind = reader.kind();
    const auto expected =
        isMessages ? JsonValue::Kind::Array : JsonValue::Kind::String;
    isOther |=
        !kind.isOk() || (*kind != expected &&
                         !(fields.isGiven && *kind == JsonValue::Kind::Null));
    return reader.skip();
  });
  const bool isCut = text.find('\n') == std::string_view::npos;
  if (isOther || (!status.isOk() && !isCut))
    return false;
  return hasText || hasMessages ||
         (status.isOk() ? hasInput && hasTarget : hasInput || hasTarget);
}

} // namespace dyna
