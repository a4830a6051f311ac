//===- Llama.cpp - Builds LLaMA from its configuration ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/text/JsonText.h"
#include "frontends/FamilyFields.h"
#include "frontends/Frontends.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::fields;

static constexpr StoredRule layerNames[] = {
    {"input_norm", "input_layernorm"},
    {"post_norm", "post_attention_layernorm"},
    {"attn.q", "self_attn.q_proj"},
    {"attn.k", "self_attn.k_proj"},
    {"attn.v", "self_attn.v_proj"},
    {"attn.o", "self_attn.o_proj"},
    {"mlp.gate", "mlp.gate_proj"},
    {"mlp.up", "mlp.up_proj"},
    {"mlp.down", "mlp.down_proj"}};
static constexpr StoredRule modelNames[] = {
    {"embed_tokens", "model.embed_tokens"},
    {"norm", "model.norm"},
    {"lm_head", "lm_head"}};
/// Frequencies of old files.
static constexpr StringLiteral buffers[] = {".rotary_emb.inv_freq"};
static constexpr StringLiteral defaults =
    "{\"vocab_size\":32000,\"bos_token_id\":1,\"eos_token_id\":2,\"rope_"
    "theta\":10000}";
static constexpr CheckpointFormat format = {
    "layers.", "model.layers.", layerNames, modelNames, "", buffers, defaults};

/// Fields that HuggingFace writes and that change nothing in training.
static constexpr StringRef ignoredFields[] = {
    "_name_or_path",        "architectures", "bos_token_id",   "dtype",
    "eos_token_id",         "pad_token_id",  "pretraining_tp", "torch_dtype",
    "transformers_version", "use_cache"};

namespace {

/// Keys that say how positions are scaled.
constexpr StringRef scalingKeys[] = {"attention_factor",
                                     "beta_fast",
                                     "beta_slow",
                                     "factor",
                                     "high_freq_factor",
                                     "long_factor",
                                     "low_freq_factor",
                                     "mscale",
                                     "mscale_all_dim",
                                     "original_max_position_embeddings",
                                     "partial_rotary_factor",
                                     "short_factor",
                                     "truncate"};

/// Reads one object that says how positions are rotated and scaled.
class RotationReader {
public:
  RotationReader(ConfigReader &reader, StringRef field,
                 const llvm::json::Object &object)
      : reader(reader), field(field), object(object) {}

  /// Reads the base; nothing if the object has none.
  std::optional<double> readTheta() {
    return get("rope_theta") ? number("rope_theta", 1, 1e15) : std::nullopt;
  }
  RopeScaling readScaling();

private:
  /// Returns a member; null if it is absent or null.
  const llvm::json::Value *get(StringRef key) const {
    const llvm::json::Value *value = object.get(key);
    return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
  }
  std::string readType();
  /// Reads a number that is at least `lowest` and below `highest`. Reports any other.
  std::optional<double> number(StringRef key, double lowest, double highest);
  void checkUnused(StringRef type, ArrayRef<StringRef> used);

  ConfigReader &reader;
  StringRef field;
  const llvm::json::Object &object;
};

std::optional<double> RotationReader::number(StringRef key, double lowest,
                                             double highest) {
  const llvm::json::Value *value = get(key);
  std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
  // This form of the test refuses NaN.
  if (number && *number >= lowest && *number < highest)
    return number;
  InFlightDiagnostic diagnostic = reader.error(field);
  diagnostic << "expects '" << key << "' to be a number of at least "
             << printNumber(lowest) << " and below " << printNumber(highest)
             << ", but ";
  if (value)
    diagnostic << "got " << printExcerpt(*value);
  else
    diagnostic << "it is missing";
  return std::nullopt;
}

/// Reads the type; empty if none is given or it is unknown, which is reported.
std::string RotationReader::readType() {
  std::string type;
  for (StringRef key : {"rope_type", "type"}) {
    const llvm::json::Value *value = get(key);
    if (!value)
      continue;
    std::optional<StringRef> text = value->getAsString();
    if (!text || !llvm::is_contained({"default", "linear", "llama3"}, *text)) {
      reader.error(field) << "expects '" << key
                          << "' to be \"default\", \"linear\" or \"llama3\", "
                             "but got "
                          << printExcerpt(*value)
                          << ": positions are scaled in no other way";
      return "unknown";
    }
    if (!type.empty() && type != *text)
      reader.error(field) << "has 'rope_type' \"" << type
                          << "\" and another 'type', " << printExcerpt(*value)
                          << "; keep the one that is meant";
    type = text->str();
  }
  return type;
}

/// Keys that say nothing for this type are no mistake of other readers, and have no
/// effect there either.
void RotationReader::checkUnused(StringRef type, ArrayRef<StringRef> used) {
  SmallVector<StringRef> known = {"rope_type", "type", "rope_theta"};
  for (StringRef key : scalingKeys) {
    known.push_back(key);
    if (!get(key) || llvm::is_contained(used, key) || type == "unknown")
      continue;
    if (key == "partial_rotary_factor") {
      if (get(key)->getAsNumber() != 1.0)
        reader.error(field)
            << "expects '" << key << "' to be 1, but got "
            << printExcerpt(*get(key)) << ": all features of a head rotate";
    } else if (type.empty()) {
      reader.error(field) << "has '" << key
                          << "', but no 'rope_type' that says how positions "
                             "are scaled; give \"linear\", \"llama3\", or "
                             "\"default\" if they are not";
    } else {
      reader.warning(field)
          << "'" << key << "' has no effect with 'rope_type' \"" << type
          << "\"";
    }
  }
  reader.checkKeys(field, object, known);
}

RopeScaling RotationReader::readScaling() {
  static constexpr StringRef linearKeys[] = {"factor"};
  static constexpr StringRef llama3Keys[] = {
      "factor", "low_freq_factor", "high_freq_factor",
      "original_max_position_embeddings"};
  const std::string type = readType();
  RopeScaling scaling;
  if (type == "linear" || type == "llama3")
    scaling.factor = number("factor", 1, 1e15).value_or(1);
  if (type == "llama3") {
    auto low = number("low_freq_factor", 1e-15, 1e15);
    auto high = number("high_freq_factor", 1e-15, 1e15);
    auto original = number("original_max_position_embeddings", 1, INT32_MAX);
    scaling.lowFreqFactor = low.value_or(1);
    scaling.highFreqFactor = high.value_or(scaling.lowFreqFactor + 1);
    scaling.originalPositions = static_cast<int64_t>(original.value_or(1));
    if (original && static_cast<double>(scaling.originalPositions) != *original)
      reader.error(field) << "expects 'original_max_position_embeddings' to be "
                             "an integer, but got "
                          << printNumber(*original);
    if (low && high && *low >= *high)
      reader.error(field) << "expects 'low_freq_factor' below "
                             "'high_freq_factor', but got "
                          << printNumber(*low) << " and " << printNumber(*high);
  }
  checkUnused(type, type == "linear"   ? ArrayRef(linearKeys)
                    : type == "llama3" ? ArrayRef(llama3Keys)
                                       : ArrayRef<StringRef>());
  return scaling;
}

} // namespace

/// Reads the base of the rotation and how it is scaled: newer configurations have both in
/// `rope_parameters`, older ones in `rope_theta` and `rope_scaling`.
static void readRotation(ConfigReader &reader, LlamaConfig &config) {
  bool hasTheta = reader.hasValue("rope_theta");
  config.ropeTheta = reader.number("rope_theta", config.ropeTheta, 1, 1e15);
  std::optional<RopeScaling> first;
  for (StringRef field : {"rope_parameters", "rope_scaling"}) {
    const llvm::json::Object *object = reader.object(field);
    if (!object)
      continue;
    RotationReader rotation(reader, field, *object);
    if (std::optional<double> theta = rotation.readTheta()) {
      // Versions of transformers differ in the field that they read.
      if (hasTheta && *theta != config.ropeTheta)
        reader.error(field)
            << "has 'rope_theta' " << printNumber(*theta)
            << ", but the one outside is " << printNumber(config.ropeTheta)
            << "; keep the one that is meant";
      config.ropeTheta = *theta;
      hasTheta = true;
    }
    config.ropeScaling = rotation.readScaling();
    if (first && !(*first == config.ropeScaling))
      reader.error(field) << "says \"" << config.ropeScaling.text()
                          << "\", but 'rope_parameters' says \""
                          << first->text() << "\"; keep the one that is meant";
    first = config.ropeScaling;
  }
}

std::optional<LlamaConfig> mlir::dyna::readLlamaConfig(ConfigReader &reader) {
  if (!reader.isValid())
    return std::nullopt;
  LlamaConfig config;
  if (std::string type = reader.string("model_type", "llama");
      type != "llama") {
    // Stop here, because every field of another family would be one more error.
    reader.error("model_type")
        << "expects 'llama', but got '" << type << "'"
        << (type == "gpt2" ? "; read it with --gpt2" : "");
    return std::nullopt;
  }
  config.vocabSize = reader.integer("vocab_size", config.vocabSize);
  config.width = reader.integer("hidden_size", config.width);
  config.inner = reader.integer("intermediate_size", config.inner);
  config.layers = reader.integer("num_hidden_layers", config.layers, 1, 65536);
  config.heads = reader.integer("num_attention_heads", config.heads);
  config.kvHeads = reader.integer("num_key_value_heads", config.heads);
  if (config.heads % config.kvHeads != 0)
    reader.error("num_key_value_heads")
        << "expects a divisor of num_attention_heads = " << config.heads
        << ", but got " << config.kvHeads;
  if (!reader.has("head_dim") && config.width % config.heads != 0)
    reader.error("num_attention_heads")
        << "expects a divisor of hidden_size = " << config.width
        << " where 'head_dim' is missing, but got " << config.heads;
  config.headDim = reader.integer(
      "head_dim", std::max<int64_t>(config.width / config.heads, 1), 1, 65536);
  if (config.headDim % 2 != 0)
    reader.error(reader.has("head_dim") ? "head_dim" : "num_attention_heads")
        << "expects an even head size, whose features rotate in pairs, but got "
        << config.headDim;
  config.positions =
      reader.integer("max_position_embeddings", config.positions);
  config.activation = readActivation(reader, "hidden_act", "silu");
  config.rmsNormEpsilon =
      reader.number("rms_norm_eps", config.rmsNormEpsilon, 1e-30, 1);
  readRotation(reader, config);
  config.attentionBias = reader.boolean("attention_bias", false);
  config.mlpBias = reader.boolean("mlp_bias", false);
  config.tieWordEmbeddings = reader.boolean("tie_word_embeddings", false);
  config.initializerRange =
      reader.number("initializer_range", config.initializerRange, 0, 1e6);
  refuseAttentionDropout(reader, "attention_dropout", 0);
  reader.ignore(ignoredFields);
  if (!reader.finish())
    return std::nullopt;
  config.json = reader.compact("llama", "LlamaForCausalLM");
  return config;
}

static LayerTemplate buildEmbedding(ModelBuilder &model,
                                    const LlamaConfig &config) {
  LayerBuilder b = model.beginLayer("embed", {{"tokens", model.ids()}});
  Value table = b.parameter("embed_tokens", {config.vocabSize, config.width},
                            Initial::matrix(config.initializerRange));
  Value x = EmbeddingOp::create(b, b.input(0), table);
  return model.endLayer(b, x);
}

static LayerTemplate buildBlock(ModelBuilder &model,
                                const LlamaConfig &config) {
  LayerBuilder b =
      model.beginLayer("block", {{"x", model.activation(config.width)},
                                 {"segments", model.segments()}});
  double normal = config.initializerRange;
  bool bias = config.attentionBias;
  int64_t queryWidth = config.heads * config.headDim;
  int64_t keyWidth = config.kvHeads * config.headDim;
  auto rotate = [&](Value x) -> Value {
    return RotaryOp::create(b, x, b.input(1), config.headDim,
                            APFloat(config.ropeTheta), /*inverse=*/false,
                            config.ropeScaling.attribute(model.context()));
  };

  Value n = b.rmsNorm(b.input(0), "input_norm", config.rmsNormEpsilon);
  Value q = b.linear(n, "attn.q", queryWidth, bias, normal);
  Value k = b.linear(n, "attn.k", keyWidth, bias, normal);
  Value v = b.linear(n, "attn.v", keyWidth, bias, normal);
  Value a = b.attention(rotate(q), rotate(k), v, b.input(1), config.heads,
                        config.kvHeads, config.headDim);
  Value o = b.linear(a, "attn.o", config.width, bias, normal);
  Value x = AddOp::create(b, b.input(0), o);

  n = b.rmsNorm(x, "post_norm", config.rmsNormEpsilon);
  Value gate = b.linear(n, "mlp.gate", config.inner, config.mlpBias, normal);
  Value up = b.linear(n, "mlp.up", config.inner, config.mlpBias, normal);
  Value h = MulOp::create(b, b.activation(gate, config.activation), up);
  h = b.linear(h, "mlp.down", config.width, config.mlpBias, normal);
  Value y = AddOp::create(b, x, h);
  return model.endLayer(b, y);
}

static LayerTemplate buildHead(ModelBuilder &model, const LlamaConfig &config,
                               const HeadForm &form) {
  LayerBuilder b =
      model.beginLayer(form.name, {{"x", model.activation(config.width)},
                                   {"targets", model.ids()}});
  Value n = b.rmsNorm(b.input(0), "norm", config.rmsNormEpsilon);
  Value weight =
      b.headTable(config.tieWordEmbeddings ? "embed_tokens" : "lm_head",
                  {config.vocabSize, config.width},
                  Initial::matrix(config.initializerRange), form);
  Value loss = LinearCrossEntropyOp::create(b, n, weight, b.input(1),
                                            /*ignore_index=*/-1);
  return model.endHead(b, form, loss);
}

void mlir::dyna::writeLlama(ModelBuilder &model, const LlamaConfig &config) {
  model.setFormat(format, config.tieWordEmbeddings);
  LayerTemplate embed = buildEmbedding(model, config);
  LayerTemplate block = buildBlock(model, config);
  LayerTemplate head = buildHead(model, config, HeadForm());
  model.buildExits(
      [&](const HeadForm &form) { return buildHead(model, config, form); });
  model.begin("llama",
              FactsAttr::get(model.context(), "llama", config.vocabSize,
                             config.positions, config.width, config.heads,
                             config.kvHeads, config.headDim, config.inner,
                             config.json, {}, {}, {}));
  model.call("embed", embed, "", {Input::Tokens});
  for (int64_t layer = 0; layer < config.layers; ++layer)
    model.callBlock("layers." + std::to_string(layer), block);
  model.call("head", head, "", {Input::Previous, Input::Targets});
  model.end();
}

OwningOpRef<ModuleOp> mlir::dyna::buildLlama(MLIRContext *context,
                                             const LlamaConfig &config) {
  ModelBuilder model(UnknownLoc::get(context));
  writeLlama(model, config);
  return model.finish();
}

OwningOpRef<ModuleOp> mlir::dyna::importLlama(MLIRContext *context,
                                              llvm::MemoryBufferRef text,
                                              const ModelParts &parts) {
  return importModel(context, text, parts, readLlamaConfig, writeLlama);
}

//===----------------------------------------------------------------------===//
// The family
//===----------------------------------------------------------------------===//

static LlamaConfig llamaOf(const DerivedFacts &layers) {
  LlamaConfig config;
  take(config.vocabSize, layers.vocabulary);
  take(config.width, layers.width);
  take(config.inner, layers.feedForward);
  take(config.layers, layers.depth);
  take(config.heads, layers.heads);
  take(config.kvHeads, layers.kvHeads);
  take(config.headDim, layers.headDim);
  take(config.activation, layers.activation);
  take(config.rmsNormEpsilon, layers.rmsNormEpsilon);
  take(config.ropeTheta, layers.theta);
  take(config.ropeScaling, layers.scaling);
  take(config.attentionBias, layers.attentionBias);
  take(config.mlpBias, layers.mlpBias);
  take(config.tieWordEmbeddings, layers.tied);
  return config;
}

static OwningOpRef<ModuleOp> writeLike(MLIRContext *context,
                                       const DerivedFacts &layers) {
  ModelBuilder model(UnknownLoc::get(context));
  writeLlama(model, llamaOf(layers));
  return model.take();
}

using llvm::json::Object;
using Json = llvm::json::Value;

/// Reads the base. Newer configurations have it in an object, which has
/// priority.
static Json readTheta(const Object &config, StringRef name) {
  Json theta = readPlain(config, name);
  for (StringRef around : {"rope_parameters", "rope_scaling"})
    if (const Object *object = config.getObject(around))
      if (const Json *value = object->get(name))
        theta = *value;
  return theta;
}

/// Reads the scaling of an object in the form of `RopeScaling::text`. Returns
/// its type if layers do not support it.
static Json readScaling(const Object &object, const Json &type) {
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

/// Returns the scaling of rotary positions; null if they are not scaled.
static Json readRotation(const Object &config, StringRef) {
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

static const FamilyField configFields[] = {
    {"model_type", nothing, family, readPlain, ", the fact 'family'"},
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
     [](const FamilyMember &model) { return first(model.layers.heads); },
     DYNA_DERIVED(kvHeads), readPlain},
    {"head_dim", evenHeads, DYNA_DERIVED(headDim), readPlain},
    // No table has a row for each position, so only the fact gives the number.
    {"max_position_embeddings", constant<int64_t, 2048>,
     [](const FamilyMember &model) {
       return DerivedValues{{Json(model.facts.getPositions()), model.op}};
     },
     readPlain, ", the fact 'positions'"},
    {"hidden_act", [](const FamilyMember &) { return Json("silu"); },
     DYNA_DERIVED(activation), readActivation},
    {"rms_norm_eps", [](const FamilyMember &) { return Json(1e-6); },
     DYNA_DERIVED(rmsNormEpsilon), readPlain},
    {"rope_theta", [](const FamilyMember &) { return Json(10000); },
     DYNA_DERIVED(theta), readTheta},
    {"rope_scaling", [](const FamilyMember &) { return Json("default"); },
     DYNA_DERIVED(scaling), readRotation},
    {"attention_bias", constant<bool, false>, DYNA_DERIVED(attentionBias),
     readPlain},
    {"mlp_bias", constant<bool, false>, DYNA_DERIVED(mlpBias), readPlain},
    {"initializer_range", [](const FamilyMember &) { return Json(0.02); },
     DYNA_DERIVED(initializerRange), readPlain},
    {"lora_scaling", nothing, DYNA_DERIVED(loraScaling), readPlain},
    {"tie_word_embeddings", constant<bool, false>, DYNA_DERIVED(tied),
     readPlain},
};

static constexpr StringLiteral needed[] = {"dyna.rotary", "dyna.rms_norm",
                                           "dyna.attention"};
static constexpr StringLiteral allowed[] = {
    "dyna.embedding", "dyna.linear", "dyna.gelu",   "dyna.silu",
    "dyna.relu",      "dyna.add",    "dyna.return", "dyna.linear_cross_entropy",
    "dyna.mul"};

const Family &mlir::dyna::llamaFamily() {
  static const Family family = {"llama", needed,      allowed,  configFields,
                                format,  importLlama, writeLike};
  return family;
}
