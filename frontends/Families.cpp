//===- Families.cpp - The models that named families are compared with ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/FamilyWiring.h"
#include "frontends/Frontends.h"

using namespace mlir;
using namespace mlir::dyna;

/// What layers say; of several values one, for then they cannot all be right.
template <typename T> static void take(T &field, const Said<T> &said) {
  if (!said.empty())
    field = said.begin()->first;
}

static void take(Activation &field, const Said<std::string> &said) {
  static const std::pair<StringRef, Activation> forms[] = {
      {"gelu", Activation::GeluErf},
      {"gelu_new", Activation::GeluTanh},
      {"silu", Activation::Silu},
      {"relu", Activation::Relu}};
  if (!said.empty())
    for (auto [name, form] : forms)
      if (said.begin()->first == name)
        field = form;
}

/// Layers that drop here and there were to drop everywhere.
static void takeLargest(double &field, const Said<double> &said) {
  if (!said.empty())
    field = said.rbegin()->first;
}

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

namespace {

class FrontendModels : public FamilyModels {
public:
  using FamilyModels::FamilyModels;

  OwningOpRef<ModuleOp> write(StringRef family,
                              const DerivedFacts &layers) const override {
    ModelBuilder model(UnknownLoc::get(getContext()));
    if (family == "gpt2")
      writeGpt2(model, gpt2Of(layers));
    else
      writeLlama(model, llamaOf(layers));
    return model.take();
  }
};

} // namespace

void mlir::dyna::registerFamilies(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, DynaDialect *dialect) {
    dialect->addInterfaces<FrontendModels>();
  });
}
