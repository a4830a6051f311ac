//===- FamilyConfig.cpp - What configurations of families say -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/FamilyConfig.h"

using namespace mlir;
using namespace mlir::dyna;
using llvm::json::Object;
using Json = llvm::json::Value;

ArrayRef<std::pair<StringRef, StringRef>> mlir::dyna::activationForms() {
  // gelu_fast is the tanh form with its factors multiplied out.
  static const std::pair<StringRef, StringRef> forms[] = {
      {"gelu", "gelu"},
      {"gelu_new", "gelu_new"},
      {"gelu_pytorch_tanh", "gelu_new"},
      {"gelu_fast", "gelu_new"},
      {"silu", "silu"},
      {"swish", "silu"},
      {"relu", "relu"}};
  return forms;
}

StringRef mlir::dyna::activationForm(StringRef name) {
  for (auto [known, form] : activationForms())
    if (known == name)
      return form;
  return {};
}

/// The text is known to be JSON.
SmallVector<DuplicateKey> mlir::dyna::findDuplicateKeys(StringRef text) {
  SmallVector<DuplicateKey> found;
  std::vector<std::map<std::string, size_t>> keys; // of the objects around
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '{')
      keys.emplace_back();
    else if (c == '}')
      keys.pop_back();
    if (c != '"')
      continue;
    size_t begin = at++;
    for (; text[at] != '"'; ++at)
      at += text[at] == '\\';
    if (!text.drop_front(at + 1).ltrim().starts_with(":"))
      continue;
    // Escapes may hide that two are one.
    auto key = llvm::cantFail(llvm::json::parse(text.slice(begin, at + 1)));
    std::string name = key.getAsString()->str();
    auto [entry, isNew] = keys.back().insert({name, begin});
    if (!isNew)
      found.push_back({name, entry->second, begin});
  }
  return found;
}

namespace {

struct Model {
  ModelOp op;
  FactsAttr facts;
  const DerivedFacts &layers;
};

/// What the layers say, each with the op that says it.
using Derived = SmallVector<std::pair<Json, Operation *>, 2>;

Derived derived(const Said<RopeScaling> &said) {
  Derived result;
  for (const auto &[value, op] : said)
    result.push_back({Json(value.text()), op});
  return result;
}

template <typename T> Derived derived(const Said<T> &said) {
  Derived result;
  for (const auto &[value, op] : said)
    result.push_back({Json(value), op});
  return result;
}

struct Field {
  StringLiteral name;
  /// What it means where it is missing; null where it must be there.
  Json (*ifMissing)(const Model &);
  Derived (*derive)(const Model &);
  /// The field's value; null where it is missing.
  Json (*read)(const Object &, StringRef);
  StringLiteral source = ", as its layers say";
};

Json readPlain(const Object &config, StringRef name) {
  const Json *value = config.get(name);
  return value ? *value : Json(nullptr);
}

Json readActivation(const Object &config, StringRef name) {
  Json value = readPlain(config, name);
  if (std::optional<StringRef> text = value.getAsString())
    if (StringRef form = activationForm(*text); !form.empty())
      return Json(form.str());
  return value;
}

/// Newer configurations have it in an object, which then decides.
Json readTheta(const Object &config, StringRef name) {
  Json theta = readPlain(config, name);
  for (StringRef around : {"rope_parameters", "rope_scaling"})
    if (const Object *object = config.getObject(around))
      if (const Json *value = object->get(name))
        theta = *value;
  return theta;
}

/// How an object scales positions, as `RopeScaling::text` has it; its type if that
/// is no scaling that layers have.
Json readScaling(const Object &object, const Json &type) {
  auto number = [&](StringRef key) {
    return object.getNumber(key).value_or(0);
  };
  RopeScaling scaling;
  scaling.factor = number("factor");
  if (type.getAsString() == "llama3") {
    scaling.lowFreqFactor = number("low_freq_factor");
    scaling.highFreqFactor = number("high_freq_factor");
    scaling.originalPositions =
        object.getInteger("original_max_position_embeddings").value_or(0);
  } else if (type.getAsString() != "linear") {
    return type;
  }
  const bool isComplete =
      scaling.factor >= 1 &&
      (type.getAsString() != "llama3" || scaling.originalPositions > 0);
  return isComplete ? Json(scaling.text()) : type;
}

/// What stretches positions, if anything does.
Json readRotation(const Object &config, StringRef) {
  for (StringRef around : {"rope_parameters", "rope_scaling"}) {
    const Json *value = config.get(around);
    if (!value || value->kind() == Json::Null)
      continue;
    const Object *object = value->getAsObject();
    if (!object)
      return *value;
    for (StringRef key : {"rope_type", "type"})
      if (const Json *type = object->get(key))
        if (type->getAsString() != "default" && type->kind() != Json::Null)
          return readScaling(*object, *type);
  }
  return nullptr;
}

/// A fact that a family has: written as a constant of the field's type.
template <typename T, T value> Json constant(const Model &) {
  return Json(value);
}
Json nothing(const Model &) { return nullptr; }

Json first(const Said<int64_t> &said, int64_t factor = 1, int64_t divisor = 1) {
  return said.empty() ? Json(nullptr)
                      : Json(said.begin()->first * factor / divisor);
}

/// What the layers of a family always say, or `checkFamily` refuses them.
template <bool value> Derived always(const Model &model) {
  return {{Json(value), model.op}};
}

Derived deriveFamily(const Model &model) {
  return {{Json(model.facts.getFamily().str()), model.op}};
}

#define DYNA_DERIVED(member)                                                   \
  [](const Model &model) { return derived(model.layers.member); }

/// Where it is missing, the heads are together as wide as the layers.
Json evenHeads(const Model &model) {
  const Said<int64_t> &heads = model.layers.heads;
  return heads.empty() ? Json(nullptr)
                       : first(model.layers.width, 1, heads.begin()->first);
}

const Field gpt2Fields[] = {
    {"model_type", nothing, deriveFamily, readPlain, ", the fact 'family'"},
    {"vocab_size", constant<int64_t, 50257>, DYNA_DERIVED(vocabulary),
     readPlain},
    {"n_positions", constant<int64_t, 1024>, DYNA_DERIVED(positions),
     readPlain},
    {"n_embd", constant<int64_t, 768>, DYNA_DERIVED(width), readPlain},
    {"n_layer", constant<int64_t, 12>, DYNA_DERIVED(depth), readPlain},
    {"n_head", constant<int64_t, 12>, DYNA_DERIVED(heads), readPlain},
    {"head_dim", evenHeads, DYNA_DERIVED(headDim), readPlain},
    {"n_inner", [](const Model &model) { return first(model.layers.width, 4); },
     DYNA_DERIVED(feedForward), readPlain},
    {"activation_function", [](const Model &) { return Json("gelu_new"); },
     DYNA_DERIVED(activation), readActivation},
    {"layer_norm_epsilon", [](const Model &) { return Json(1e-5); },
     DYNA_DERIVED(layerNormEpsilon), readPlain},
    {"resid_pdrop", [](const Model &) { return Json(0.1); },
     DYNA_DERIVED(blockDropout), readPlain},
    {"embd_pdrop", [](const Model &) { return Json(0.1); },
     DYNA_DERIVED(embeddingDropout), readPlain},
    {"initializer_range", [](const Model &) { return Json(0.02); },
     DYNA_DERIVED(initializerRange), readPlain},
    {"tie_word_embeddings", constant<bool, true>, DYNA_DERIVED(tied),
     readPlain},
    {"scale_attn_weights", constant<bool, true>, always<true>, readPlain},
    {"scale_attn_by_inverse_layer_idx", constant<bool, false>, always<false>,
     readPlain},
    {"add_cross_attention", constant<bool, false>, always<false>, readPlain},
    // Other names of the fields above, which readers take as well.
    {"hidden_size",
     [](const Model &model) { return first(model.layers.width); },
     DYNA_DERIVED(width), readPlain},
    {"num_hidden_layers",
     [](const Model &model) { return first(model.layers.depth); },
     DYNA_DERIVED(depth), readPlain},
    {"num_attention_heads",
     [](const Model &model) { return first(model.layers.heads); },
     DYNA_DERIVED(heads), readPlain},
    {"max_position_embeddings",
     [](const Model &model) { return first(model.layers.positions); },
     DYNA_DERIVED(positions), readPlain},
};

const Field llamaFields[] = {
    {"model_type", nothing, deriveFamily, readPlain, ", the fact 'family'"},
    {"vocab_size", constant<int64_t, 32000>, DYNA_DERIVED(vocabulary),
     readPlain},
    {"hidden_size", constant<int64_t, 4096>, DYNA_DERIVED(width), readPlain},
    {"intermediate_size", constant<int64_t, 11008>, DYNA_DERIVED(feedForward),
     readPlain},
    {"num_hidden_layers", constant<int64_t, 32>, DYNA_DERIVED(depth),
     readPlain},
    {"num_attention_heads", constant<int64_t, 32>, DYNA_DERIVED(heads),
     readPlain},
    {"num_key_value_heads",
     [](const Model &model) { return first(model.layers.heads); },
     DYNA_DERIVED(kvHeads), readPlain},
    {"head_dim", evenHeads, DYNA_DERIVED(headDim), readPlain},
    // No table has rows for them: the fact is all that there is.
    {"max_position_embeddings", constant<int64_t, 2048>,
     [](const Model &model) {
       return Derived{{Json(model.facts.getPositions()), model.op}};
     },
     readPlain, ", the fact 'positions'"},
    {"hidden_act", [](const Model &) { return Json("silu"); },
     DYNA_DERIVED(activation), readActivation},
    {"rms_norm_eps", [](const Model &) { return Json(1e-6); },
     DYNA_DERIVED(rmsNormEpsilon), readPlain},
    {"rope_theta", [](const Model &) { return Json(10000); },
     DYNA_DERIVED(theta), readTheta},
    {"rope_scaling", [](const Model &) { return Json("default"); },
     DYNA_DERIVED(scaling), readRotation},
    {"attention_bias", constant<bool, false>, DYNA_DERIVED(attentionBias),
     readPlain},
    {"mlp_bias", constant<bool, false>, DYNA_DERIVED(mlpBias), readPlain},
    {"initializer_range", [](const Model &) { return Json(0.02); },
     DYNA_DERIVED(initializerRange), readPlain},
    {"tie_word_embeddings", constant<bool, false>, DYNA_DERIVED(tied),
     readPlain},
};

#undef DYNA_DERIVED

/// The ops of a family's layers, and those without which it is another.
struct Family {
  StringLiteral name;
  ArrayRef<StringLiteral> needed, allowed;
  ArrayRef<Field> fields;
};

constexpr StringLiteral gpt2Needed[] = {"dyna.positions", "dyna.layer_norm",
                                        "dyna.attention"};
constexpr StringLiteral gpt2Allowed[] = {
    "dyna.embedding", "dyna.linear", "dyna.gelu",   "dyna.silu",
    "dyna.relu",      "dyna.add",    "dyna.return", "dyna.linear_cross_entropy",
    "dyna.dropout"};
constexpr StringLiteral llamaNeeded[] = {"dyna.rotary", "dyna.rms_norm",
                                         "dyna.attention"};
constexpr StringLiteral llamaAllowed[] = {
    "dyna.embedding", "dyna.linear", "dyna.gelu",   "dyna.silu",
    "dyna.relu",      "dyna.add",    "dyna.return", "dyna.linear_cross_entropy",
    "dyna.mul"};

const Family families[] = {
    {"gpt2", gpt2Needed, gpt2Allowed, gpt2Fields},
    {"llama", llamaNeeded, llamaAllowed, llamaFields},
};

const Family *findFamily(StringRef name) {
  for (const Family &family : families)
    if (family.name == name)
      return &family;
  return nullptr;
}

/// Why the layers are not of a family; empty if they are.
std::string otherThan(const Family &family, const DerivedFacts &layers,
                      Operation *&where) {
  for (const auto &[name, op] : layers.ops) {
    if (llvm::is_contained(family.needed, name) ||
        llvm::is_contained(family.allowed, name))
      continue;
    where = op;
    return "its layers have '" + name + "', which " + family.name.str() +
           " has not";
  }
  for (StringRef name : family.needed)
    if (!layers.ops.count(name.str()))
      return "its layers have no '" + name.str() + "', which " +
             family.name.str() + " has";
  if ((where = layers.unusualAttention))
    return "an attention of its layers is not causal, or its 'scale' is not "
           "1 over the root of the head size";
  if (family.name == "gpt2") {
    for (const Said<bool> *biases : {&layers.attentionBias, &layers.mlpBias})
      if (auto none = biases->find(false); none != biases->end()) {
        where = none->second;
        return "a 'dyna.linear' of its layers has no bias";
      }
    for (auto [kvHeads, op] : layers.kvHeads)
      if (!layers.heads.count(kvHeads)) {
        where = op;
        return "its attentions have fewer key/value heads than heads";
      }
  }
  return {};
}

} // namespace

std::string mlir::dyna::printExcerpt(const Json &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  constexpr size_t most = 60;
  if (text.size() <= most)
    return text;
  size_t end = most - 3;
  while (end > 0 && (text[end] & 0xc0) == 0x80) // within a character
    --end;
  return text.substr(0, end) + "...";
}

bool mlir::dyna::isNamedFamily(StringRef family) {
  return findFamily(family) != nullptr;
}

LogicalResult mlir::dyna::checkFamily(ModelOp model,
                                      const DerivedFacts &layers) {
  const Family *given = findFamily(model.getFacts().getFamily());
  if (!given)
    return success();
  Operation *where = nullptr;
  std::string why = otherThan(*given, layers, where);
  if (why.empty())
    return success();
  std::string expected;
  for (const Family &family : families) {
    Operation *ignored = nullptr;
    if (&family != given && otherThan(family, layers, ignored).empty())
      expected = family.name.str() + " or ";
  }
  InFlightDiagnostic diagnostic = model.emitOpError()
                                  << "expects the fact 'family' to be "
                                  << expected << "custom, as " << why
                                  << ", but got \"" << given->name << "\"";
  if (where)
    diagnostic.attachNote(where->getLoc()) << "see this op";
  return diagnostic;
}

LogicalResult mlir::dyna::checkFamilyConfig(ModelOp op,
                                            const DerivedFacts &layers,
                                            const Object &config) {
  Model model{op, op.getFacts(), layers};
  const Family *family = findFamily(model.facts.getFamily());
  for (const Field &field : family->fields) {
    Json given = field.read(config, field.name);
    bool isMissing = given.kind() == Json::Null;
    Json meant = isMissing ? field.ifMissing(model) : given;
    for (const auto &[value, where] : field.derive(model)) {
      if (meant == value)
        continue;
      InFlightDiagnostic diagnostic = op.emitOpError()
                                      << "expects '" << field.name
                                      << "' in the fact 'config' to be "
                                      << printExcerpt(value) << field.source
                                      << ", but got ";
      if (!isMissing)
        diagnostic << printExcerpt(given);
      else if (meant.kind() == Json::Null)
        diagnostic << "none";
      else
        diagnostic << "none, which means " << printExcerpt(meant);
      if (where != op)
        diagnostic.attachNote(where->getLoc()) << "see where it is said";
      return diagnostic;
    }
  }
  return success();
}
