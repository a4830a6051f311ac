//===- SavedConfig.cpp - The config.json of a checkpoint ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/SavedConfig.h"

#include "runtime/base/JsonReader.h"

#include <algorithm>

namespace dyna {
namespace {

/// Defaults of `transformers` for members that a config does not have.
struct FamilyDefaults {
  const char *type;
  int64_t vocabulary, bos, eos;
};
constexpr FamilyDefaults familyDefaults[] = {{"gpt2", 50257, 50256, 50256},
                                             {"llama", 32000, 1, 2}};
constexpr double defaultTheta = 10000;

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

/// An id, or an array of ids, all of the vocabulary.
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

/// `byDefault`: the id that the family has where the config names none.
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

void setTokens(JsonValue &config, std::optional<int32_t> endToken) {
  const JsonValue *type = config.find("model_type");
  for (const FamilyDefaults &family : familyDefaults)
    if (type && type->text == family.type) {
      const int64_t vocabulary =
          config.findInteger("vocab_size").value_or(family.vocabulary);
      setToken(config, "bos_token_id", vocabulary, family.bos, endToken);
      setToken(config, "eos_token_id", vocabulary, family.eos, endToken);
      return;
    }
  if (endToken && isNull(config.find("eos_token_id")))
    setMember(config, "eos_token_id", numberOf(*endToken));
}

void setRotation(JsonValue &config) {
  const JsonValue *type = config.find("model_type");
  if (!type || type->text != "llama")
    return;
  JsonValue theta = numberOf(static_cast<int64_t>(defaultTheta));
  if (const JsonValue *plain = config.find("rope_theta"); !isNull(plain))
    theta = *plain;
  const JsonValue *parameters = config.find("rope_parameters");
  JsonValue object;
  object.kind = JsonValue::Kind::Object;
  if (!isNull(parameters))
    object = *parameters;
  // Where both are there, the object decides.
  if (const JsonValue *inside = object.find("rope_theta"); !isNull(inside))
    theta = *inside;
  if (isNull(object.find("rope_type")) && isNull(object.find("type")))
    setMember(object, "rope_type", stringOf("default"));
  setMember(object, "rope_theta", theta);
  setMember(config, "rope_parameters", std::move(object));
  setMember(config, "rope_theta", std::move(theta));
}

} // namespace

std::string savedConfig(const std::string &config, DType stored,
                        std::optional<int32_t> endToken) {
  StatusOr<JsonValue> parsed = parseJson(config);
  if (!parsed.isOk() || !parsed->isObject())
    return config; // of a model that has none
  JsonValue type = stringOf(stored == DType::F64 ? "float64" : "float32");
  if (parsed->find("dtype")) // what newer versions call it
    setMember(*parsed, "dtype", type);
  setMember(*parsed, "torch_dtype", type);
  setTokens(*parsed, endToken);
  setRotation(*parsed);
  return writeJson(*parsed) + "\n";
}

} // namespace dyna
