//===- SmallConfigs.h - Configurations of small models ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models of both families whose sizes many tensor degrees divide, and the
// vocabulary none; and a module of neither family.
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

/// A module whose block drops values before attention, which few ranks share, and
/// features between the linears of its MLP, which is followed by a linear that
/// stays whole.
inline std::string smallDropping() {
  return R"(
dyna.parameter @table : tensor<257x16xf32> normal 0.2
dyna.parameter @q : tensor<16x16xf32> normal 0.2
dyna.parameter @k : tensor<4x16xf32> normal 0.2
dyna.parameter @v : tensor<4x16xf32> normal 0.2
dyna.parameter @o : tensor<16x16xf32> normal 0.2
dyna.parameter @up : tensor<24x16xf32> normal 0.2
dyna.parameter @down : tensor<16x24xf32> normal 0.2
dyna.parameter @whole : tensor<16x16xf32> normal 0.2
dyna.layer @embed[%w: tensor<257x16xf32>](%ids: tensor<?xi32>) -> tensor<?x16xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x16xf32>
  dyna.return %x : tensor<?x16xf32>
}
dyna.layer @block[%q: tensor<16x16xf32>, %k: tensor<4x16xf32>, %v: tensor<4x16xf32>,
                  %o: tensor<16x16xf32>, %up: tensor<24x16xf32>,
                  %down: tensor<16x24xf32>, %whole: tensor<16x16xf32>]
                 (%x: tensor<?x16xf32>, %s: !dyna.segments) -> tensor<?x16xf32> {
  %0 = dyna.linear %x, %q : tensor<?x16xf32>, tensor<16x16xf32>
  %1 = dyna.linear %x, %k : tensor<?x16xf32>, tensor<4x16xf32>
  %2 = dyna.linear %x, %v : tensor<?x16xf32>, tensor<4x16xf32>
  %3 = dyna.dropout %2, %s {instance = 0 : i64, probability = 2.5e-1 : f64} : tensor<?x4xf32>
  %4, %lse = dyna.attention %0, %1, %3, %s {causal, heads = 8, kv_heads = 2, scale = 0.7}
      : tensor<?x16xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %5 = dyna.linear %4, %o : tensor<?x16xf32>, tensor<16x16xf32>
  %6 = dyna.add %x, %5 : tensor<?x16xf32>
  %7 = dyna.linear %6, %up : tensor<?x16xf32>, tensor<24x16xf32>
  %8 = dyna.gelu %7 tanh : tensor<?x24xf32>
  %9 = dyna.dropout %8, %s {instance = 1 : i64, probability = 2.5e-1 : f64} : tensor<?x24xf32>
  %10 = dyna.linear %9, %down : tensor<?x24xf32>, tensor<16x24xf32>
  %11 = dyna.dropout %10, %s {instance = 2 : i64, probability = 2.5e-1 : f64} : tensor<?x16xf32>
  %12 = dyna.add %6, %11 : tensor<?x16xf32>
  %13 = dyna.linear %12, %whole : tensor<?x16xf32>, tensor<16x16xf32>
  %14 = dyna.add %12, %13 : tensor<?x16xf32>
  dyna.return %14 : tensor<?x16xf32>
}
dyna.layer @head[%w: tensor<257x16xf32>](%x: tensor<?x16xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %t : tensor<?x16xf32>, tensor<257x16xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @dropping(%ids: tensor<?xi32>, %t: tensor<?xi32>, %s: !dyna.segments)
    facts<family = "custom", vocabulary = 257, positions = 64, width = 16, heads = 8,
          kv_heads = 2, head_dim = 2, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@table](%ids) : (tensor<?xi32>) -> tensor<?x16xf32>
  %1 = dyna.call "block" @block[@q, @k, @v, @o, @up, @down, @whole](%0, %s)
      : (tensor<?x16xf32>, !dyna.segments) -> tensor<?x16xf32>
  %2 = dyna.call "head" @head[@table](%1, %t) : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
)";
}

} // namespace mlir::dyna

#endif // DYNA_TEST_PASSES_SMALLCONFIGS_H
