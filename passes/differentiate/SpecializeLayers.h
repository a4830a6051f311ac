//===- SpecializeLayers.h - Layers that need less of backward ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A layer learns if it has a parameter that is not frozen, or if a layer before it
// learns. Layers at the beginning of a model that do not learn run forward alone. The
// layer behind them needs no gradient of its input. So one layer can be needed in up to
// four variants:
//
//     its parameters   the layer before learns      no layer before learns
//     trained          @block                       @block.first
//     frozen           @block.passing               @block.alone
//
// A variant is a copy of the layer with attributes. Everything that follows treats it as
// a layer of its own: its functions, what it keeps, its costs.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_SPECIALIZELAYERS_H
#define DYNA_PASSES_DIFFERENTIATE_SPECIALIZELAYERS_H

#include "dialects/dyna/facts/LayerVariants.h"

namespace mlir::dyna {

/// Makes the variants that the models of a module need, and has calls name them. With
/// `freezable`, makes all variants of all layers that are called. Fails if a layer says
/// what its place in a model contradicts. Linear in the calls.
LogicalResult specializeLayers(ModuleOp module, bool freezable);

/// Fails unless each call names a variant that fits its place: layers take gradients from
/// layers that give them (DIFF8).
LogicalResult verifyVariants(ModuleOp module);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_SPECIALIZELAYERS_H
