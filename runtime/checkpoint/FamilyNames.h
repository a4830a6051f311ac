//===- FamilyNames.h - Tensor names and layouts of model families ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Our models name every parameter on its own and store every weight as
// [out, in]; HuggingFace's files of the GPT-2 and LLaMA families have names and
// layouts of their own. This is the only place that knows both.
//
//   GPT-2   h.0.attn.{q,k,v}.weight [out, in]
//               ->  transformer.h.0.attn.c_attn.weight [in, 3 out], q then k then v
//           h.0.mlp.fc.weight [out, in]
//               ->  transformer.h.0.mlp.c_fc.weight [in, out]
//           wte ->  transformer.wte.weight, on reading wte.weight too
//   LLaMA   layers.0.attn.q.weight   ->  model.layers.0.self_attn.q_proj.weight
//           layers.0.post_norm.weight ->
//                             model.layers.0.post_attention_layernorm.weight
//
// Names that a family does not know, and all names of a custom model, are
// stored as they are.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_FAMILYNAMES_H
#define DYNA_RUNTIME_CHECKPOINT_FAMILYNAMES_H

#include "runtime/checkpoint/Safetensors.h"

namespace dyna {

enum class Family { Custom, Gpt2, Llama };

/// From the manifest's "gpt2" or "llama"; everything else is custom.
Family parseFamily(std::string_view name);

/// Where a parameter lies in a file.
struct Placement {
  std::string name;
  bool isTransposed = false; ///< stored as [in, out]
  /// Of several parameters stored side by side along the outputs.
  int part = 0, parts = 1;
};

Placement placeParameter(Family family, const std::string &parameter);

/// Returns true for a parameter of a low-rank adapter, `*.lora_A.weight` or
/// `*.lora_B.weight`. Checkpoints of the model without adapters have none.
bool isAdapter(std::string_view parameter);

/// A tensor of a file, and the parameters that it is made of.
struct StoredTensor {
  TensorView view;             ///< its data is null
  std::vector<size_t> members; ///< indices of parameters, side by side
  bool isTransposed = false;
  /// Whether it is one parameter as it is.
  bool isPlain() const { return members.size() == 1 && !isTransposed; }
};

/// The tensors of a file with these parameters, whose data is not looked at.
StatusOr<std::vector<StoredTensor>>
storedTensors(Family family, const std::vector<TensorView> &parameters);

/// Puts rows [begin, end) of a parameter, which is a member, into `target`, the
/// memory of the whole stored tensor.
void placeRows(const StoredTensor &stored,
               const std::vector<TensorView> &parameters, size_t member,
               int64_t begin, int64_t end, const void *rows, void *target);

/// A parameter that is to be filled.
struct ParameterSlot {
  std::string name; ///< logical
  std::vector<int64_t> shape;
  DType type = DType::F32;
  void *data = nullptr; ///< not needed where rows are taken
  /// The slot stays as it is if the file has no tensor of any slot that may be missing.
  bool mayBeMissing = false;
};

/// Takes rows [begin, end) of the parameter of a slot, in the slot's type.
using TakeRows = std::function<Status(size_t slot, int64_t begin, int64_t end,
                                      const void *rows)>;

/// Fills every slot from `file`, and converts between floating-point types. Fails,
/// with nothing filled, at the first tensor that is missing, has another shape or
/// does not belong to the model. Buffers of old files (causal masks, rotary
/// frequencies) are skipped. Names may have the prefixes of wrapped modules,
/// "_orig_mod." and "module.", if all names in the file have them.
Status importTensors(Family family, const SafetensorsFile &file,
                     const std::vector<ParameterSlot> &slots);
/// The same, handing rows over a few megabytes at a time; ends at the first that
/// are not taken.
Status importTensors(Family family, const SafetensorsFile &file,
                     const std::vector<ParameterSlot> &slots,
                     const TakeRows &take);
/// Hands over all rows of one tensor, which has the slot's shape.
Status importRows(const SafetensorsFile &file, const TensorView &stored,
                  const std::vector<ParameterSlot> &slots, size_t slot,
                  const TakeRows &take);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_FAMILYNAMES_H
