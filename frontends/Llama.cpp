//===- Llama.cpp - LLaMA from its configuration -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/FamilyConfig.h"
#include "frontends/Frontends.h"

using namespace mlir;
using namespace mlir::dyna;

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

  /// The base, or nothing if the object has none.
  std::optional<double> readTheta() {
    return get("rope_theta") ? number("rope_theta", 1, 1e15) : std::nullopt;
  }
  RopeScaling readScaling();

private:
  /// Null if it is absent or null.
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
  // Written so that NaN fails.
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

/// Empty if no type is given, or one that is not known, which is reported.
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
      // Versions of transformers differ in which of them they take.
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
    // Every field of another family would be one more complaint.
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

static LayerTemplate buildHead(ModelBuilder &model, const LlamaConfig &config) {
  LayerBuilder b =
      model.beginLayer("head", {{"x", model.activation(config.width)},
                                {"targets", model.ids()}});
  Value n = b.rmsNorm(b.input(0), "norm", config.rmsNormEpsilon);
  Value weight =
      b.parameter(config.tieWordEmbeddings ? "embed_tokens" : "lm_head",
                  {config.vocabSize, config.width},
                  Initial::matrix(config.initializerRange));
  Value loss = LinearCrossEntropyOp::create(b, n, weight, b.input(1),
                                            /*ignore_index=*/-1);
  return model.endLayer(b, loss);
}

void mlir::dyna::writeLlama(ModelBuilder &model, const LlamaConfig &config) {
  LayerTemplate embed = buildEmbedding(model, config);
  LayerTemplate block = buildBlock(model, config);
  LayerTemplate head = buildHead(model, config);
  model.begin("llama",
              FactsAttr::get(model.context(), "llama", config.vocabSize,
                             config.positions, config.width, config.heads,
                             config.kvHeads, config.headDim, config.inner,
                             config.json));
  model.call("embed", embed, "", {Input::Tokens});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "layers." + std::to_string(layer);
    model.call(name, block, name + ".", {Input::Previous, Input::Segments});
  }
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
                                              const LoraOptions &lora) {
  ConfigReader reader(context, text);
  std::optional<LlamaConfig> config = readLlamaConfig(reader);
  if (!config)
    return {};
  ModelBuilder model(reader.location());
  model.setLora(lora);
  writeLlama(model, *config);
  return succeeded(model.checkLora()) ? model.finish() : nullptr;
}
