//===- Frontends.h - Builds models from configurations ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each family has a plain struct with the fields of its HuggingFace
// config.json, under their names in our spelling. One function reads it, and
// another one builds the model. The model is dyna IR in f32 with the layer
// kinds @embed, @block, @head.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_FRONTENDS_H
#define DYNA_FRONTENDS_FRONTENDS_H

#include "dialects/dyna/facts/RopeScaling.h"
#include "frontends/ConfigReader.h"
#include "frontends/ModelBuilder.h"

namespace mlir::dyna {

/// `model_type` "gpt2". Dropout inside attention does not exist here.
struct Gpt2Config {
  int64_t vocabSize = 50257;
  int64_t positions = 1024;
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  /// Beside which `heads * headDim` need not be `width`; LLaMA's name for it, as
  /// GPT-2 has none.
  int64_t headDim = 64;
  int64_t inner = 3072;
  Activation activation = Activation::GeluTanh;
  double layerNormEpsilon = 1e-5;
  double residualDropout = 0;
  double embeddingDropout = 0;
  double initializerRange = 0.02;
  bool tieWordEmbeddings = true;
  /// The configuration as JSON, for saved models, which without it have none.
  std::string json;
};

/// `model_type` "llama".
struct LlamaConfig {
  int64_t vocabSize = 32000;
  int64_t width = 4096;
  int64_t inner = 11008;
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t kvHeads = 32;
  int64_t headDim = 128;
  int64_t positions = 2048;
  Activation activation = Activation::Silu;
  double rmsNormEpsilon = 1e-6;
  double ropeTheta = 10000;
  RopeScaling ropeScaling;
  bool attentionBias = false;
  bool mlpBias = false;
  bool tieWordEmbeddings = false;
  double initializerRange = 0.02;
  std::string json;
};

/// Read a configuration; nothing after an error, which is emitted as a
/// diagnostic at the field.
std::optional<Gpt2Config> readGpt2Config(ConfigReader &reader);
std::optional<LlamaConfig> readLlamaConfig(ConfigReader &reader);

/// Write the model, up to its `end`.
void writeGpt2(ModelBuilder &model, const Gpt2Config &config);
void writeLlama(ModelBuilder &model, const LlamaConfig &config);

/// Build the model; null after a diagnostic.
OwningOpRef<ModuleOp> buildGpt2(MLIRContext *context, const Gpt2Config &config);
OwningOpRef<ModuleOp> buildLlama(MLIRContext *context,
                                 const LlamaConfig &config);

/// Writes the factor of the adapters into a configuration, as `lora_scaling`. Fails if
/// the configuration has that field already.
LogicalResult addLoraScaling(ConfigReader &reader, const LoraOptions &lora,
                             std::string &config);

/// Does both for a family, given what reads its configurations and writes its models.
template <typename Config>
OwningOpRef<ModuleOp>
importModel(MLIRContext *context, llvm::MemoryBufferRef text,
            const ModelParts &parts,
            std::optional<Config> (*read)(ConfigReader &),
            void (*write)(ModelBuilder &, const Config &)) {
  ConfigReader reader(context, text);
  std::optional<Config> config = read(reader);
  if (!config || failed(addLoraScaling(reader, parts.lora, config->json)))
    return {};
  ModelBuilder model(reader.location());
  model.setLora(parts.lora);
  model.setExits(parts.exits);
  write(model, *config);
  return succeeded(model.checkLora()) && succeeded(model.checkExits())
             ? model.finish()
             : nullptr;
}

/// Read the text of a config.json and build its model, with what `parts` adds.
/// `importConfig` looks at `model_type`.
OwningOpRef<ModuleOp> importGpt2(MLIRContext *context,
                                 llvm::MemoryBufferRef text,
                                 const ModelParts &parts = {});
OwningOpRef<ModuleOp> importLlama(MLIRContext *context,
                                  llvm::MemoryBufferRef text,
                                  const ModelParts &parts = {});
OwningOpRef<ModuleOp> importConfig(MLIRContext *context,
                                   llvm::MemoryBufferRef text,
                                   const ModelParts &parts = {});

/// Reads `hidden_act` or `activation_function` of a family.
Activation readActivation(ConfigReader &reader, StringRef field,
                          StringRef fallback);
/// Warns if attention dropout is asked for: it is not applied.
void refuseAttentionDropout(ConfigReader &reader, StringRef field,
                            double fallback);

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_FRONTENDS_H
