//===- SavedConfig.h - Writes the config.json of a checkpoint ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes the model's config say what `transformers` needs to load a checkpoint as
// it was trained, in version 4 and in version 5.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SAVEDCONFIG_H
#define DYNA_RUNTIME_TRAIN_SAVEDCONFIG_H

#include "runtime/checkpoint/Tensor.h"

#include <optional>
#include <string>

namespace dyna {

/// Returns `config` with members set to the values of the checkpoint. `defaults`
/// is JSON of members that programs assume if the config lacks them; it may be
/// empty. Sets these members:
///
///   dtype, torch_dtype   the type of the file of tensors
///   bos_token_id, eos_token_id
///                        ids of the vocabulary: those given, else `endToken`,
///                        the token that ends every document, if there is one.
///                        null if nothing valid is known and the default lies
///                        outside the vocabulary.
///   rope_parameters, rope_theta, rope_scaling
///                        base and scaling of rotary positions. Version 5 reads
///                        the first, version 4 the others. Only if `defaults`
///                        has a `rope_theta`.
std::string savedConfig(const std::string &config, const std::string &defaults,
                        DType stored, std::optional<int32_t> endToken);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SAVEDCONFIG_H
