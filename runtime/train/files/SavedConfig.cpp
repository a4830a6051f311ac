//===- SavedConfig.cpp - Writes the config.json of a checkpoint -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/SavedConfig.h"

#include "runtime/base/text/JsonReader.h"

#include <algorithm>

namespace dyna {
namespace {

JsonValue stringOf(const char *text) {
  JsonValue value;
  value.kind = JsonValue::Kind::String;
  value.text = text;
  return value;
}

JsonValue numberOf(int64_t integer) {
  JsonValue value;
  value.kind = JsonValue::Kind::Number;
  value.integer = integer;
  value.number = static_cast<double>(integer);
  return value;
}

bool isNull(const JsonValue *value) {
  return !value || value->kind == JsonValue::Kind::Null;
}

void setMember(JsonValue &object, const std::string &key, JsonValue value) {
  auto at = std::find(object.keys.begin(), object.keys.end(), key);
  if (at != object.keys.end()) {
    object.items[static_cast<size_t>(at - object.keys.begin())] =
        std::move(value);
    return;
  }
  object.keys.push_back(key);
  object.items.push_back(std::move(value));
}

/// Returns true if the value is an id, or an array of ids, all of the
/// vocabulary.
bool isOfVocabulary(const JsonValue &value, int64_t vocabulary) {
  if (value.isArray())
    return !value.items.empty() &&
           std::all_of(value.items.begin(), value.items.end(),
                       [&](const JsonValue &item) {
                         return !item.isArray() &&
                                isOfVocabulary(item, vocabulary);
                       });
  return value.integer && *value.integer >= 0 && *value.integer < vocabulary;
}

/// Sets a special token. `byDefault` is the id that programs assume if the
/// config names none.
void setToken(JsonValue &config, const char *key, int64_t vocabulary,
              int64_t byDefault, std::optional<int32_t> endToken) {
  const JsonValue *given = config.find(key);
  if (!isNull(given) && isOfVocabulary(*given, vocabulary))
    return;
  if (endToken)
    setMember(config, key, numberOf(*endToken));
  else if (!isNull(given) || (!given && byDefault >= vocabulary))
    setMember(config, key, JsonValue()); // null: none
}

void setTokens(JsonValue &config, const JsonValue &defaults,
               std::optional<int32_t> endToken) {
  bool isKnown = false;
  const auto vocabulary = config.findInteger("vocab_size");
  for (const char *key : {"bos_token_id", "eos_token_id"})
    if (auto byDefault = defaults.findInteger(key)) {
      isKnown = true;
      setToken(config, key,
               vocabulary ? *vocabulary
                          : defaults.findInteger("vocab_size").value_or(0),
               *byDefault, endToken);
    }
  if (!isKnown && endToken && isNull(config.find("eos_token_id")))
    setMember(config, "eos_token_id", numberOf(*endToken));
}

JsonValue objectOf(const JsonValue *given) {
  if (!isNull(given))
    return *given;
  JsonValue object;
  object.kind = JsonValue::Kind::Object;
  return object;
}

void dropMember(JsonValue &object, const std::string &key) {
  auto at = std::find(object.keys.begin(), object.keys.end(), key);
  if (at == object.keys.end())
    return;
  object.items.erase(object.items.begin() + (at - object.keys.begin()));
  object.keys.erase(at);
}

/// Returns the type of a scaling, under the newer name or the older one; null
/// if none.
const JsonValue *scalingType(const JsonValue *object) {
  if (isNull(object))
    return nullptr;
  for (const char *key : {"rope_type", "type"})
    if (const JsonValue *type = object->find(key); !isNull(type))
      return type;
  return nullptr;
}

/// Writes base and scaling of rotary positions under the names of version 5 and
/// under those of version 4.
void setRotation(JsonValue &config, const JsonValue &defaults) {
  const JsonValue *assumed = defaults.find("rope_theta");
  if (isNull(assumed))
    return;
  JsonValue theta = *assumed;
  if (const JsonValue *plain = config.find("rope_theta"); !isNull(plain))
    theta = *plain;
  // If several members give the base, the last object decides.
  const JsonValue *newer = config.find("rope_parameters"),
                  *older = config.find("rope_scaling");
  for (const JsonValue *object : {newer, older})
    if (const JsonValue *inside =
            isNull(object) ? nullptr : object->find("rope_theta");
        !isNull(inside))
      theta = *inside;
  JsonValue parameters = objectOf(scalingType(newer)   ? newer
                                  : scalingType(older) ? older
                                                       : newer);
  const JsonValue *scaling = scalingType(&parameters);
  const JsonValue named = scaling ? *scaling : stringOf("default");
  dropMember(parameters, "type");
  setMember(parameters, "rope_type", named);
  setMember(parameters, "rope_theta", theta);
  // Version 4 warns if a factor is an integer, so write real numbers.
  for (const char *key : {"factor", "low_freq_factor", "high_freq_factor"})
    if (auto at =
            std::find(parameters.keys.begin(), parameters.keys.end(), key);
        at != parameters.keys.end())
      parameters.items[static_cast<size_t>(at - parameters.keys.begin())]
          .integer.reset();
  if (named.text != "default") {
    JsonValue own = parameters;
    dropMember(own, "rope_theta");
    setMember(config, "rope_scaling", std::move(own));
  }
  setMember(config, "rope_parameters", std::move(parameters));
  setMember(config, "rope_theta", std::move(theta));
}

} // namespace

std::string savedConfig(const std::string &config, const std::string &defaults,
                        DType stored, std::optional<int32_t> endToken) {
  StatusOr<JsonValue> parsed = parseJson(config);
  if (!parsed.isOk() || !parsed->isObject())
    return config; // the model has no config
  JsonValue type = stringOf(stored == DType::F64 ? "float64" : "float32");
  if (parsed->find("dtype")) // its name since version 5
    setMember(*parsed, "dtype", type);
  setMember(*parsed, "torch_dtype", type);
  const StatusOr<JsonValue> assumed = parseJson(defaults);
  const JsonValue known = assumed.isOk() ? *assumed : JsonValue();
  setTokens(*parsed, known, endToken);
  setRotation(*parsed, known);
  return writeJson(*parsed) + "\n";
}

} // namespace dyna
