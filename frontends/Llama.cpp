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

/// Keys that say how positions are scaled.
static constexpr StringRef scalingKeys[] = {"attention_factor",
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

/// Refuses what scales positions, also where no type says how.
static void checkRotation(ConfigReader &reader, StringRef field,
                          const llvm::json::Object &object) {
  bool hasType = false;
  for (StringRef key : {"rope_type", "type"})
    if (const llvm::json::Value *type = object.get(key)) {
      hasType = true;
      if (type->getAsString() != "default")
        reader.error(field)
            << "expects '" << key << "' to be \"default\", but got "
            << printExcerpt(*type) << ": positions are not scaled";
    }
  SmallVector<StringRef> known = {"rope_type", "type", "rope_theta"};
  for (StringRef key : scalingKeys) {
    if (!hasType && object.get(key))
      reader.error(field) << "has '" << key
                          << "', but no 'rope_type' that says how positions "
                             "are scaled; remove the field, as positions are "
                             "not scaled";
    known.push_back(key);
  }
  reader.checkKeys(field, object, known);
}

/// The base of the rotation, from `rope_theta` or `rope_parameters`; the latter
/// and the older `rope_scaling` may also stretch it, which is not supported.
static double readTheta(ConfigReader &reader, double fallback) {
  double theta = reader.number("rope_theta", fallback, 1, 1e15);
  for (StringRef field : {"rope_parameters", "rope_scaling"}) {
    const llvm::json::Object *object = reader.object(field);
    if (!object)
      continue;
    checkRotation(reader, field, *object);
    if (const llvm::json::Value *value = object->get("rope_theta")) {
      std::optional<double> number = value->getAsNumber();
      if (!number || !(*number >= 1 && *number < 1e15))
        reader.error(field)
            << "expects 'rope_theta' to be a number of at least 1 and below "
               "1e15, but got "
            << printExcerpt(*value);
      else
        theta = *number;
    }
  }
  return theta;
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
  config.ropeTheta = readTheta(reader, config.ropeTheta);
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
                            APFloat(config.ropeTheta), /*inverse=*/false);
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
                                              llvm::MemoryBufferRef text) {
  ConfigReader reader(context, text);
  std::optional<LlamaConfig> config = readLlamaConfig(reader);
  if (!config)
    return {};
  ModelBuilder model(reader.location());
  writeLlama(model, *config);
  return model.finish();
}
