//===- Adapters.h - Finds low-rank adapters beside linears ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An adapter adds `scale(linear(linear(x, A), B))` to `linear(x, W)` (Hu et al. 2021).
// Its parameters are named as those of the linear: beside `attn.q.weight` lie
// `attn.q.lora_A.weight` and `attn.q.lora_B.weight`. The model of a family stays one
// with adapters: it starts as that model, and its weights can be merged.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FACTS_ADAPTERS_H
#define DYNA_DIALECTS_DYNA_FACTS_ADAPTERS_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// A linear with its adapter.
struct AdaptedLinear {
  LinearOp base, down, up;
  ScaleOp scale;
};

/// Returns the linear that `sum` adds an adapter to, by the shape of the ops alone; all
/// null if it adds something else.
AdaptedLinear adaptedLinearOf(AddOp sum);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FACTS_ADAPTERS_H
