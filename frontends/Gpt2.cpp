//===- Gpt2.cpp - Builds GPT-2 from its configuration -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/FamilyFields.h"
#include "frontends/Frontends.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::fields;

/// HuggingFace keeps weights as [in, out], and query, key and value in one tensor.
/// Beside a head, transformers 4 looks for the body under its prefix alone.
static constexpr StoredRule layerNames[] = {
    {"attn.q", "attn.c_attn", true, 0, 3},
    {"attn.k", "attn.c_attn", true, 1, 3},
    {"attn.v", "attn.c_attn", true, 2, 3},
    {"attn.proj", "attn.c_proj", true},
    {"mlp.fc", "mlp.c_fc", true},
    {"mlp.proj", "mlp.c_proj", true}};
static constexpr StoredRule modelNames[] = {
    {"wte", "wte"}, {"wpe", "wpe"}, {"lm_head", "lm_head"}};
/// Causal masks of old files.
static constexpr StringLiteral buffers[] = {".attn.bias", ".attn.masked_bias"};
static constexpr StringLiteral defaults =
    "{\"vocab_size\":50257,\"bos_token_id\":50256,\"eos_token_id\":50256}";
static constexpr CheckpointFormat format = {
    "h.", "h.", layerNames, modelNames, "transformer.", buffers, defaults};

/// Fields that HuggingFace writes and that change nothing in training.
static constexpr StringRef ignoredFields[] = {"_name_or_path",
                                              "architectures",
                                              "bos_token_id",
                                              "chunk_size_feed_forward",
                                              "dtype",
                                              "eos_token_id",
                                              "gradient_checkpointing",
                                              "n_ctx",
                                              "output_past",
                                              "pad_token_id",
                                              "reorder_and_upcast_attn",
                                              "summary_activation",
                                              "summary_first_dropout",
                                              "summary_proj_to_labels",
                                              "summary_type",
                                              "summary_use_proj",
                                              "task_specific_params",
                                              "tokenizer_class",
                                              "torch_dtype",
                                              "transformers_version",
                                              "use_cache"};

std::optional<Gpt2Config> mlir::dyna::readGpt2Config(ConfigReader &reader) {
  if (!reader.isValid())
    return std::nullopt;
  Gpt2Config config;
  if (std::string type = reader.string("model_type", "gpt2"); type != "gpt2") {
    // Stop here, because every field of another family would be one more error.
    reader.error("model_type")
        << "expects 'gpt2', but got '" << type << "'"
        << (type == "llama" ? "; read it with --llama" : "");
    return std::nullopt;
  }
  config.vocabSize = reader.integer("vocab_size", config.vocabSize);
  config.positions = reader.integer("n_positions", config.positions);
  config.width = reader.integer("n_embd", config.width);
  config.layers = reader.integer("n_layer", config.layers, 1, 65536);
  config.heads = reader.integer("n_head", config.heads);
  config.inner = reader.integer("n_inner", 4 * config.width);
  if (!reader.has("head_dim") && config.width % config.heads != 0)
    reader.error("n_head") << "expects a divisor of n_embd = " << config.width
                           << " where 'head_dim' is missing, but got "
                           << config.heads;
  config.headDim = reader.integer(
      "head_dim", std::max<int64_t>(config.width / config.heads, 1), 1, 65536);
  config.activation = readActivation(reader, "activation_function", "gelu_new");
  config.layerNormEpsilon =
      reader.number("layer_norm_epsilon", config.layerNormEpsilon, 1e-30, 1);
  config.residualDropout = reader.number("resid_pdrop", 0.1, 0, 1);
  config.embeddingDropout = reader.number("embd_pdrop", 0.1, 0, 1);
  refuseAttentionDropout(reader, "attn_pdrop", 0.1);
  config.initializerRange =
      reader.number("initializer_range", config.initializerRange, 0, 1e6);
  config.tieWordEmbeddings = reader.boolean("tie_word_embeddings", true);
  reader.require("scale_attn_weights", true,
                 "scores are always divided by the root of the head size");
  reader.require("scale_attn_by_inverse_layer_idx", false,
                 "all blocks share one layer function");
  reader.require("add_cross_attention", false, "there is no encoder");
  reader.ignore(ignoredFields);
  if (!reader.finish())
    return std::nullopt;
  config.json = reader.compact("gpt2", "GPT2LMHeadModel");
  return config;
}

static LayerTemplate buildEmbedding(ModelBuilder &model,
                                    const Gpt2Config &config) {
  LayerBuilder b = model.beginLayer(
      "embed", {{"tokens", model.ids()}, {"segments", model.segments()}});
  Initial initial = Initial::matrix(config.initializerRange);
  Value wte = b.parameter("wte", {config.vocabSize, config.width}, initial);
  Value wpe = b.parameter("wpe", {config.positions, config.width}, initial);
  Value tokens = EmbeddingOp::create(b, b.input(0), wte);
  Value positions = PositionsOp::create(b, wpe, b.input(1));
  Value sum = AddOp::create(b, tokens, positions);
  return model.endLayer(b, b.dropout(sum, b.input(1), config.embeddingDropout));
}

static LayerTemplate buildBlock(ModelBuilder &model, const Gpt2Config &config) {
  LayerBuilder b =
      model.beginLayer("block", {{"x", model.activation(config.width)},
                                 {"segments", model.segments()}});
  double normal = config.initializerRange;
  // Residual projections start smaller, so that the sum of all layers does not
  // grow with depth (Radford et al. 2019).
  double residual = normal / std::sqrt(2.0 * config.layers);

  Value n = b.layerNorm(b.input(0), "ln_1", config.layerNormEpsilon);
  int64_t headsWidth = config.heads * config.headDim;
  Value q = b.linear(n, "attn.q", headsWidth, /*hasBias=*/true, normal);
  Value k = b.linear(n, "attn.k", headsWidth, /*hasBias=*/true, normal);
  Value v = b.linear(n, "attn.v", headsWidth, /*hasBias=*/true, normal);
  Value a = b.attention(q, k, v, b.input(1), config.heads, config.heads,
                        config.headDim);
  Value p = b.linear(a, "attn.proj", config.width, /*hasBias=*/true, residual);
  p = b.dropout(p, b.input(1), config.residualDropout);
  Value x = AddOp::create(b, b.input(0), p);

  n = b.layerNorm(x, "ln_2", config.layerNormEpsilon);
  Value h = b.linear(n, "mlp.fc", config.inner, /*hasBias=*/true, normal);
  h = b.activation(h, config.activation);
  h = b.linear(h, "mlp.proj", config.width, /*hasBias=*/true, residual);
  h = b.dropout(h, b.input(1), config.residualDropout);
  Value y = AddOp::create(b, x, h);
  return model.endLayer(b, y);
}

static LayerTemplate buildHead(ModelBuilder &model, const Gpt2Config &config,
                               const HeadForm &form) {
  LayerBuilder b =
      model.beginLayer(form.name, {{"x", model.activation(config.width)},
                                   {"targets", model.ids()}});
  Value n = b.layerNorm(b.input(0), "ln_f", config.layerNormEpsilon);
  Value weight = b.headTable(config.tieWordEmbeddings ? "wte" : "lm_head",
                             {config.vocabSize, config.width},
                             Initial::matrix(config.initializerRange), form);
  Value loss = LinearCrossEntropyOp::create(b, n, weight, b.input(1),
                                            /*ignore_index=*/-1);
  return model.endHead(b, form, loss);
}

void mlir::dyna::writeGpt2(ModelBuilder &model, const Gpt2Config &config) {
  model.setFormat(format, config.tieWordEmbeddings);
  LayerTemplate embed = buildEmbedding(model, config);
  LayerTemplate block = buildBlock(model, config);
  LayerTemplate head = buildHead(model, config, HeadForm());
  model.buildExits(
      [&](const HeadForm &form) { return buildHead(model, config, form); });
  model.begin("gpt2", FactsAttr::get(model.context(), "gpt2", config.vocabSize,
                                     config.positions, config.width,
                                     config.heads, config.heads, config.headDim,
                                     config.inner, config.json, {}, {}, {}));
  model.call("embed", embed, "", {Input::Tokens, Input::Segments});
  for (int64_t layer = 0; layer < config.layers; ++layer)
    model.callBlock("h." + std::to_string(layer), block);
  model.call("head", head, "", {Input::Previous, Input::Targets});
  model.end();
}

OwningOpRef<ModuleOp> mlir::dyna::buildGpt2(MLIRContext *context,
                                            const Gpt2Config &config) {
  ModelBuilder model(UnknownLoc::get(context));
  writeGpt2(model, config);
  return model.finish();
}

OwningOpRef<ModuleOp> mlir::dyna::importGpt2(MLIRContext *context,
                                             llvm::MemoryBufferRef text,
                                             const ModelParts &parts) {
  return importModel(context, text, parts, readGpt2Config, writeGpt2);
}

//===----------------------------------------------------------------------===//
// The family
//===----------------------------------------------------------------------===//

static Gpt2Config gpt2Of(const DerivedFacts &layers) {
  Gpt2Config config;
  take(config.vocabSize, layers.vocabulary);
  take(config.positions, layers.positions);
  take(config.width, layers.width);
  take(config.layers, layers.depth);
  take(config.heads, layers.heads);
  take(config.headDim, layers.headDim);
  take(config.inner, layers.feedForward);
  take(config.activation, layers.activation);
  take(config.layerNormEpsilon, layers.layerNormEpsilon);
  takeLargest(config.residualDropout, layers.blockDropout);
  takeLargest(config.embeddingDropout, layers.embeddingDropout);
  take(config.tieWordEmbeddings, layers.tied);
  return config;
}

static OwningOpRef<ModuleOp> writeLike(MLIRContext *context,
                                       const DerivedFacts &layers) {
  ModelBuilder model(UnknownLoc::get(context));
  writeGpt2(model, gpt2Of(layers));
  return model.take();
}

static std::string findOther(const DerivedFacts &layers, Operation *&where) {
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
  return {};
}

static const FamilyField configFields[] = {
    {"model_type", nothing, family, readPlain, ", the fact 'family'"},
    {"vocab_size", constant<int64_t, 50257>, DYNA_DERIVED(vocabulary),
     readPlain},
    {"n_positions", constant<int64_t, 1024>, DYNA_DERIVED(positions),
     readPlain},
    {"n_embd", constant<int64_t, 768>, DYNA_DERIVED(width), readPlain},
    {"n_layer", constant<int64_t, 12>, DYNA_DERIVED(depth), readPlain},
    {"n_head", constant<int64_t, 12>, DYNA_DERIVED(heads), readPlain},
    {"head_dim", evenHeads, DYNA_DERIVED(headDim), readPlain},
    {"n_inner",
     [](const FamilyMember &model) { return first(model.layers.width, 4); },
     DYNA_DERIVED(feedForward), readPlain},
    {"activation_function",
     [](const FamilyMember &) { return llvm::json::Value("gelu_new"); },
     DYNA_DERIVED(activation), readActivation},
    {"layer_norm_epsilon",
     [](const FamilyMember &) { return llvm::json::Value(1e-5); },
     DYNA_DERIVED(layerNormEpsilon), readPlain},
    {"resid_pdrop", [](const FamilyMember &) { return llvm::json::Value(0.1); },
     DYNA_DERIVED(blockDropout), readPlain},
    {"embd_pdrop", [](const FamilyMember &) { return llvm::json::Value(0.1); },
     DYNA_DERIVED(embeddingDropout), readPlain},
    {"initializer_range",
     [](const FamilyMember &) { return llvm::json::Value(0.02); },
     DYNA_DERIVED(initializerRange), readPlain},
    {"lora_scaling", nothing, DYNA_DERIVED(loraScaling), readPlain},
    {"tie_word_embeddings", constant<bool, true>, DYNA_DERIVED(tied),
     readPlain},
    {"scale_attn_weights", constant<bool, true>, always<true>, readPlain},
    {"scale_attn_by_inverse_layer_idx", constant<bool, false>, always<false>,
     readPlain},
    {"add_cross_attention", constant<bool, false>, always<false>, readPlain},
    // These are other names of the fields above, which readers also accept.
    {"hidden_size",
     [](const FamilyMember &model) { return first(model.layers.width); },
     DYNA_DERIVED(width), readPlain},
    {"num_hidden_layers",
     [](const FamilyMember &model) { return first(model.layers.depth); },
     DYNA_DERIVED(depth), readPlain},
    {"num_attention_heads",
     [](const FamilyMember &model) { return first(model.layers.heads); },
     DYNA_DERIVED(heads), readPlain},
    {"max_position_embeddings",
     [](const FamilyMember &model) { return first(model.layers.positions); },
     DYNA_DERIVED(positions), readPlain},
};

static constexpr StringLiteral needed[] = {"dyna.positions", "dyna.layer_norm",
                                           "dyna.attention"};
static constexpr StringLiteral allowed[] = {
    "dyna.embedding", "dyna.linear", "dyna.gelu",   "dyna.silu",
    "dyna.relu",      "dyna.add",    "dyna.return", "dyna.linear_cross_entropy",
    "dyna.dropout"};

const Family &mlir::dyna::gpt2Family() {
  static const Family family = {"gpt2", needed,     allowed,   configFields,
                                format, importGpt2, writeLike, findOther};
  return family;
}
