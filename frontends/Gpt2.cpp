//===- Gpt2.cpp - GPT-2 from its configuration -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;

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
    // Every field of another family would be one more complaint.
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

static LayerTemplate buildHead(ModelBuilder &model, const Gpt2Config &config) {
  LayerBuilder b =
      model.beginLayer("head", {{"x", model.activation(config.width)},
                                {"targets", model.ids()}});
  Value n = b.layerNorm(b.input(0), "ln_f", config.layerNormEpsilon);
  Value weight = b.parameter(config.tieWordEmbeddings ? "wte" : "lm_head",
                             {config.vocabSize, config.width},
                             Initial::matrix(config.initializerRange));
  Value loss = LinearCrossEntropyOp::create(b, n, weight, b.input(1),
                                            /*ignore_index=*/-1);
  return model.endLayer(b, loss);
}

void mlir::dyna::writeGpt2(ModelBuilder &model, const Gpt2Config &config) {
  LayerTemplate embed = buildEmbedding(model, config);
  LayerTemplate block = buildBlock(model, config);
  LayerTemplate head = buildHead(model, config);
  model.begin("gpt2", FactsAttr::get(model.context(), "gpt2", config.vocabSize,
                                     config.positions, config.width,
                                     config.heads, config.heads, config.headDim,
                                     config.inner, config.json));
  model.call("embed", embed, "", {Input::Tokens, Input::Segments});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "h." + std::to_string(layer);
    model.call(name, block, name + ".", {Input::Previous, Input::Segments});
  }
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
                                             const LoraOptions &lora) {
  ConfigReader reader(context, text);
  std::optional<Gpt2Config> config = readGpt2Config(reader);
  if (!config)
    return {};
  ModelBuilder model(reader.location());
  model.setLora(lora);
  writeGpt2(model, *config);
  return succeeded(model.checkLora()) ? model.finish() : nullptr;
}
