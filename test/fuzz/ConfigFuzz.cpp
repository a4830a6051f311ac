//===- ConfigFuzz.cpp - Configurations of HuggingFace ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "dialects/dyna/Dyna.h"
#include "frontends/Frontends.h"
#include "frontends/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

using namespace dyna::test;

std::vector<std::string> dyna::test::fuzzSeeds() {
  return {
      "{\"model_type\": \"gpt2\", \"vocab_size\": 257, \"n_positions\": 8,\n"
      " \"n_embd\": 8, \"n_layer\": 2, \"n_head\": 2,\n"
      " \"activation_function\": \"gelu_new\", \"n_inner\": 16,\n"
      " \"resid_pdrop\": 0.1, \"embd_pdrop\": 0.0, \"attn_pdrop\": 0.0,\n"
      " \"layer_norm_epsilon\": 1e-5, \"initializer_range\": 0.02,\n"
      " \"tie_word_embeddings\": false}",
      "{\"model_type\": \"llama\", \"vocab_size\": 257,\n"
      " \"hidden_size\": 8, \"intermediate_size\": 12,\n"
      " \"num_hidden_layers\": 2, \"num_attention_heads\": 4,\n"
      " \"num_key_value_heads\": 2, \"hidden_act\": \"silu\",\n"
      " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 8,\n"
      " \"rope_parameters\": {\"rope_type\": \"default\",\n"
      " \"rope_theta\": 1e4}, \"attention_bias\": true}"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace mlir;
  static MLIRContext *context = [] {
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<mlir::dyna::DynaDialect>();
    return made;
  }();
  int errors = 0;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  std::string text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> module = mlir::dyna::importConfig(
      context, llvm::MemoryBufferRef(text, "config.json"));
  require(module || errors > 0, "a refused configuration has an error");
  if (!module)
    return 0;
  require(errors == 0, "an accepted configuration has no error");
  require(succeeded(verify(*module)), "an imported model verifies");
  // A field of another family may contradict the layers.
  const bool isOfFamily = succeeded(mlir::dyna::checkFamilies(*module));
  require(isOfFamily == (errors == 0),
          "a model that is none of its family has an error");
  acceptedInputs += isOfFamily;
  return 0;
}
