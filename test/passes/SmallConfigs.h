//===- SmallConfigs.h - Configurations of small models ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models of both families whose sizes many tensor degrees divide, and the
// vocabulary none.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_PASSES_SMALLCONFIGS_H
#define DYNA_TEST_PASSES_SMALLCONFIGS_H

#include <string>

namespace mlir::dyna {

/// Twelve heads of 4, with dropout.
inline std::string smallGpt2(int layers = 1) {
  return R"({"model_type": "gpt2", "vocab_size": 257, "n_positions": 64,
             "n_embd": 48, "n_head": 12, "n_inner": 96,
             "activation_function": "gelu_new", "resid_pdrop": 0.1,
             "embd_pdrop": 0.1, "attn_pdrop": 0, "n_layer": )" +
         std::to_string(layers) + "}";
}

struct LlamaShape {
  int heads = 12, kvHeads = 2, headDim = 4, inner = 96;
  int layers = 1;
  /// Biases everywhere, a tied table and gelu.
  bool isUnusual = false;
};
/// Eight heads on two key/value heads.
inline constexpr LlamaShape eightHeads = {8, 2, 6, 56};

inline std::string smallLlama(const LlamaShape &shape = {}) {
  std::string unusual = shape.isUnusual ? "true" : "false";
  return R"({"model_type": "llama", "vocab_size": 257, "hidden_size": 48,
             "rope_parameters": {"rope_type": "default", "rope_theta": 1000},
             "num_hidden_layers": )" +
         std::to_string(shape.layers) +
         ", \"num_attention_heads\": " + std::to_string(shape.heads) +
         ", \"num_key_value_heads\": " + std::to_string(shape.kvHeads) +
         ", \"head_dim\": " + std::to_string(shape.headDim) +
         ", \"intermediate_size\": " + std::to_string(shape.inner) +
         ", \"hidden_act\": \"" + (shape.isUnusual ? "gelu" : "silu") +
         "\", \"attention_bias\": " + unusual + ", \"mlp_bias\": " + unusual +
         ", \"tie_word_embeddings\": " + unusual + "}";
}

} // namespace mlir::dyna

#endif // DYNA_TEST_PASSES_SMALLCONFIGS_H
