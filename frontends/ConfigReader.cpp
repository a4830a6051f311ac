//===- ConfigReader.cpp - Reads a model configuration with good errors ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/ConfigReader.h"
#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/text/JsonText.h"
#include "dialects/dyna/text/TextInput.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::dyna;

std::string mlir::dyna::printNumber(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

ConfigReader::ConfigReader(MLIRContext *context, llvm::MemoryBufferRef text)
    : context_(context), text_(text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text.getBuffer());
  if (!value) {
    // LLVM's message begins with the place: [line:column, byte=offset]: ...
    std::string message = llvm::toString(value.takeError());
    StringRef rest = message;
    unsigned line = 1, column = 1;
    if (rest.consume_front("[") && !rest.consumeInteger(10, line) &&
        rest.consume_front(":") && !rest.consumeInteger(10, column))
      rest = rest.substr(rest.find("]: ") + 3);
    failed_ = true;
    emitError(
        FileLineColLoc::get(context, text.getBufferIdentifier(), line, column))
        << "expects a model configuration in JSON, but got: " << rest;
    return;
  }
  llvm::json::Object *object = value->getAsObject();
  if (!object) {
    error("") << "expects a JSON object of configuration fields, but got "
              << printExcerpt(*value);
    return;
  }
  object_ = std::move(*object);
  refuseDuplicates();
}

/// Refuses duplicate keys. The parser keeps one of their values, and it is
/// unknown which one was meant.
void ConfigReader::refuseDuplicates() {
  for (const DuplicateKey &key : findDuplicateKeys(text_.getBuffer())) {
    failed_ = true;
    InFlightDiagnostic diagnostic = emitError(locateOffset(key.second));
    diagnostic << "field '" << key.name
               << "' is given twice; keep the one that is meant";
    diagnostic.attachNote(locateOffset(key.first)) << "first given here";
  }
}

Location ConfigReader::locate(StringRef field) const {
  StringRef text = text_.getBuffer();
  std::string quoted = ("\"" + field + "\"").str();
  size_t offset = 0;
  // Not every occurrence is a key: in "model_type": "vocab_size" it is a value.
  if (!field.empty())
    for (offset = text.find(quoted); offset != StringRef::npos;
         offset = text.find(quoted, offset + 1))
      if (text.drop_front(offset + quoted.size()).ltrim().starts_with(":"))
        break;
  if (offset == StringRef::npos)
    offset = 0;
  return locateOffset(offset);
}

Location ConfigReader::locateOffset(size_t offset) const {
  StringRef before = text_.getBuffer().take_front(offset);
  unsigned line = before.count('\n') + 1;
  unsigned column = offset - (before.rfind('\n') + 1) + 1;
  return FileLineColLoc::get(context_, text_.getBufferIdentifier(), line,
                             column);
}

InFlightDiagnostic ConfigReader::error(StringRef field) {
  failed_ = true;
  InFlightDiagnostic diagnostic = emitError(locate(field));
  if (!field.empty())
    diagnostic << "field '" << field << "': ";
  return diagnostic;
}

InFlightDiagnostic ConfigReader::warning(StringRef field) {
  InFlightDiagnostic diagnostic = emitWarning(locate(field));
  diagnostic << "field '" << field << "': ";
  return diagnostic;
}

const llvm::json::Value *ConfigReader::find(StringRef field) {
  known_.insert(field);
  if (!object_)
    return nullptr;
  const llvm::json::Value *value = object_->get(field);
  return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
}

bool ConfigReader::has(StringRef field) const {
  return object_ && object_->get(field);
}

/// Null means the same to all readers: what other fields make of them.
static constexpr StringRef derivedFields[] = {"head_dim", "n_inner",
                                              "num_key_value_heads"};

template <typename T> T ConfigReader::used(StringRef field, T value) {
  if (has(field) && !llvm::is_contained(derivedFields, field)) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(value);
    nulls_[field] = std::move(text);
  }
  return value;
}

int64_t ConfigReader::integer(StringRef field, std::optional<int64_t> fallback,
                              int64_t lowest, int64_t highest) {
  const llvm::json::Value *value = find(field);
  if (!value && fallback)
    return used(field, *fallback);
  if (!value) {
    error(field) << "expects an integer, but the field is missing";
    return lowest;
  }
  std::optional<int64_t> integer = readInteger(*value);
  if (integer && *integer >= lowest && *integer <= highest)
    return *integer;
  error(field) << "expects an integer from " << lowest << " to " << highest
               << ", but got " << printExcerpt(*value);
  return fallback.value_or(lowest);
}

double ConfigReader::number(StringRef field, double fallback, double lowest,
                            double highest) {
  const llvm::json::Value *value = find(field);
  if (!value)
    return used(field, fallback);
  std::optional<double> number = value->getAsNumber();
  // This form of the test refuses NaN.
  if (number && *number >= lowest && *number < highest)
    return *number;
  error(field) << "expects a number of at least " << printNumber(lowest)
               << " and below " << printNumber(highest) << ", but got "
               << printExcerpt(*value);
  return fallback;
}

bool ConfigReader::boolean(StringRef field, bool fallback) {
  const llvm::json::Value *value = find(field);
  if (!value)
    return used(field, fallback);
  if (std::optional<bool> boolean = value->getAsBoolean())
    return *boolean;
  error(field) << "expects true or false, but got " << printExcerpt(*value);
  return fallback;
}

std::string ConfigReader::string(StringRef field, StringRef fallback) {
  const llvm::json::Value *value = find(field);
  if (!value)
    return used(field, fallback.str());
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  error(field) << "expects a string, but got " << printExcerpt(*value);
  return fallback.str();
}

void ConfigReader::require(StringRef field, bool expected, StringRef why) {
  if (boolean(field, expected) != expected)
    error(field) << "expects " << (expected ? "true" : "false") << ", but got "
                 << (expected ? "false" : "true") << ": " << why;
}

const llvm::json::Object *ConfigReader::object(StringRef field) {
  const llvm::json::Value *value = find(field);
  if (!value)
    return nullptr;
  if (const llvm::json::Object *object = value->getAsObject())
    return object;
  error(field) << "expects an object, but got " << printExcerpt(*value);
  return nullptr;
}

void ConfigReader::checkKeys(StringRef field, const llvm::json::Object &object,
                             ArrayRef<StringRef> known) {
  SmallVector<StringRef> unknown;
  for (const auto &entry : object)
    if (!llvm::is_contained(known, StringRef(entry.first)))
      unknown.push_back(entry.first);
  llvm::sort(unknown);
  for (StringRef key : unknown) {
    SmallVector<StringRef> sorted(known);
    llvm::sort(sorted);
    StringRef nearest = nearestName(key, sorted, /*most=*/2);
    InFlightDiagnostic diagnostic = emitWarning(locate(key));
    diagnostic << "field '" << field << "': '" << key
               << "' is not known and has no effect";
    if (!nearest.empty())
      diagnostic << "; is '" << nearest << "' meant?";
  }
}

void ConfigReader::ignore(ArrayRef<StringRef> fields) {
  for (StringRef field : fields)
    known_.insert(field);
}

bool ConfigReader::finish() {
  if (!object_)
    return false;
  // Sort the names, since an object has no order.
  SmallVector<StringRef> unknown;
  for (const auto &entry : *object_)
    if (!known_.contains(entry.first))
      unknown.push_back(entry.first);
  llvm::sort(unknown);
  for (StringRef field : unknown) {
    SmallVector<StringRef> known(known_.keys());
    llvm::sort(known);
    // A typing error has at most this many edits.
    StringRef nearest = nearestName(field, known, /*most=*/2);
    InFlightDiagnostic diagnostic = warning(field);
    diagnostic << "is not known and has no effect";
    if (!nearest.empty())
      diagnostic << "; is '" << nearest << "' meant?";
  }
  return !failed_;
}

/// `text` is JSON without white space.
std::string ConfigReader::fillNulls(std::string text) const {
  std::string filled;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t begin = at;
    depth += text[at] == '{' || text[at] == '[';
    depth -= text[at] == '}' || text[at] == ']';
    if (text[at] == '"')
      for (++at; text[at] != '"'; ++at)
        at += text[at] == '\\';
    StringRef word = StringRef(text).slice(begin, at + 1);
    filled += word;
    if (word.size() < 2 || depth != 1 ||
        !StringRef(text).substr(at + 1).starts_with(":null"))
      continue;
    auto found = nulls_.find(word.drop_front().drop_back());
    if (found == nulls_.end())
      continue;
    filled += ":" + found->second;
    at += StringRef(":null").size();
  }
  return filled;
}

std::string ConfigReader::compact(StringRef modelType,
                                  StringRef architecture) const {
  std::string text;
  bool inString = false, isEscaped = false;
  // Printing the parsed value would change how numbers are written.
  for (char c : text_.getBuffer()) {
    if (!inString && llvm::isSpace(c))
      continue;
    text.push_back(c);
    if (c == '"' && !isEscaped)
      inString = !inString;
    isEscaped = c == '\\' && !isEscaped;
  }
  std::string added;
  if (!has("model_type"))
    added += ("\"model_type\":\"" + modelType + "\",").str();
  if (!has("architectures"))
    added += ("\"architectures\":[\"" + architecture + "\"],").str();
  // In an object that was empty no field follows, so drop the last comma.
  if (object_->empty())
    added.pop_back();
  return fillNulls(text.insert(text.find('{') + 1, added));
}
