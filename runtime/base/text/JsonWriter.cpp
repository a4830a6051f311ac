//===- JsonWriter.cpp - Writes JSON objects and arrays --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/JsonWriter.h"

#include "runtime/base/text/Json.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace dyna {

static JsonText number(double value, const char *format, int digits) {
  if (!std::isfinite(value))
    return JsonText::null();
  // The largest double has 309 digits before the point.
  std::array<char, 400> text;
  std::snprintf(text.data(), text.size(), format, digits, value);
  return JsonText::raw(text.data());
}

JsonText jsonFixed(double value, int digits) {
  return number(value, "%.*f", digits);
}

JsonText jsonRounded(double value, int digits) {
  return number(value, "%.*g", digits);
}

JsonText::JsonText(double value) : JsonText(jsonRounded(value, 17)) {}

JsonText::JsonText(std::string_view text) : text_(quoteJson(text)) {}

JsonText JsonText::raw(std::string json) {
  JsonText text;
  text.text_ = std::move(json);
  return text;
}

static std::string join(const std::vector<std::string> &parts, char begin,
                        char end, std::string_view separator) {
  std::string text(1, begin);
  const bool breaksLines =
      !parts.empty() && separator.find('\n') != std::string_view::npos;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0)
      text += ',';
    if (i > 0 || breaksLines)
      text += separator;
    text += parts[i];
  }
  return text + end;
}

JsonArray &JsonArray::add(const JsonText &value) {
  items_.push_back(value.text());
  return *this;
}

std::string JsonArray::text(std::string_view separator) const {
  return join(items_, '[', ']', separator);
}

JsonObject &JsonObject::add(std::string_view key, const JsonText &value) {
  members_.push_back(quoteJson(key) + ": " + value.text());
  return *this;
}

JsonObject &JsonObject::addAll(const JsonObject &other) {
  members_.insert(members_.end(), other.members_.begin(), other.members_.end());
  return *this;
}

std::string JsonObject::text(std::string_view separator) const {
  return join(members_, '{', '}', separator);
}

} // namespace dyna
