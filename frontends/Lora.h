//===- Lora.h - Chooses the linears with low-rank adapters ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `--lora "q,v:16"` freezes all parameters of a model and puts adapters of rank 16
// beside the linears `q` and `v` of every layer (dialects/dyna/facts/Adapters.h). They are
// ordinary parameters, so they are split, reduced, saved and updated as others are.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_LORA_H
#define DYNA_FRONTENDS_LORA_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace mlir::dyna {

struct LoraOptions {
  /// Linears with adapters: the last part of their names ("q"), or the whole names
  /// ("attn.proj"). None: there are no adapters, and nothing is frozen.
  SmallVector<std::string> targets;
  int64_t rank = 0;
  /// The sum of an adapter is scaled by `alpha / rank`. The default is PEFT's.
  double alpha = 8;

  bool isAsked() const { return !targets.empty(); }
};

/// Reads "TARGET,...:RANK" or "TARGET,...:RANK:ALPHA". Returns nothing, and says why in
/// `error`, for any other text.
std::optional<LoraOptions> parseLora(StringRef text, std::string &error);

/// Compares the options with the linears of a model.
class LoraTargets {
public:
  LoraOptions options;

  /// Returns true if the linear of this name and these sizes gets an adapter.
  bool add(const std::string &linear, int64_t out, int64_t in);
  /// Fails if a target is no linear, or if an adapter is larger than its linear.
  LogicalResult check(Location location) const;

private:
  SmallVector<std::string> linears;
  SmallVector<std::string> found; ///< targets
  std::string tooSmall;           ///< a linear, and its sizes
};

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_LORA_H
