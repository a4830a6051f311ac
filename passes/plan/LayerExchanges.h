//===- LayerExchanges.h - Lists the exchanges of a layer function -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_LAYEREXCHANGES_H
#define DYNA_PASSES_PLAN_LAYEREXCHANGES_H

#include "dialects/dyna/Dyna.h"
#include "runtime/plan/Manifest.pb.h"

namespace mlir::dyna {

/// Adds to `role` what `function` exchanges with other ranks, in the order of
/// its calls: groups, kinds and bytes. `function` has passed the memory phase.
void listExchanges(FunctionOp function, ::dyna::plan::LayerKind::Role *role);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_LAYEREXCHANGES_H
