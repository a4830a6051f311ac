//===- CompareConfigs.cpp - Compares config.json of checkpoint and model --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/CompareConfigs.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/Printable.h"

namespace dyna {

/// Dropout and initial values are none of them: they are chosen anew for every
/// run that starts from a model.
static constexpr const char *computingFields[] = {
    "model_type",
    "n_head",
    "n_embd",
    "n_inner",
    "activation_function",
    "layer_norm_epsilon",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "hidden_act",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "attention_bias",
    "mlp_bias",
    "tie_word_embeddings"};

static bool isSame(const JsonValue &a, const JsonValue &b) {
  return a.kind == JsonValue::Kind::Number && b.kind == a.kind
             ? a.number == b.number
             : writeJson(a) == writeJson(b);
}

std::string otherConfig(const Checkpoint &checkpoint, const Model &model) {
  StatusOr<JsonValue> there = parseJson(checkpoint.config);
  StatusOr<JsonValue> here = parseJson(model.manifest().facts().config_json());
  if (!there.isOk() || !here.isOk())
    return "";
  std::string text;
  for (const char *name : computingFields) {
    const JsonValue *a = there->find(name), *b = here->find(name);
    if (!a || !b || a->kind == JsonValue::Kind::Null ||
        b->kind == JsonValue::Kind::Null || isSame(*a, *b))
      continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + " is " +
            printable(writeJson(*a)) + " there and " +
            printable(writeJson(*b)) + " here";
  }
  return text;
}

} // namespace dyna
