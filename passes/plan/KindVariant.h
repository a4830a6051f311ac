//===- KindVariant.h - What a kind of layer lacks of backward ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_KINDVARIANT_H
#define DYNA_PASSES_PLAN_KINDVARIANT_H

#include "dialects/dist/Dist.h"
#include "passes/differentiate/SpecializeLayers.h"
#include "runtime/plan/Manifest.pb.h"

namespace mlir::dyna {

/// Says in the manifest what the functions of a layer lack of backward. A layer of a tensor
/// degree is like the whole layer. `callsOf` are those of the module.
inline void setVariant(::dyna::plan::LayerKind *kind, LayerOp layer,
                       const CallsOfLayers &callsOf) {
  if (std::optional<FlatSymbolRefAttr> base = layer.getVariantOf())
    kind->set_variant_of(base->getValue().str());
  LayerOp whole = layer;
  if (auto logical = dist::kLogical.of(layer))
    whole = SymbolTable::lookupNearestSymbolFrom<LayerOp>(layer, logical);
  SmallVector<bool> frozen =
      frozenOf(whole, callsOf.lookup(getBaseName(whole)));
  kind->set_frozen(!frozen.empty() &&
                   !llvm::is_contained(frozen, /*trained*/ false));
  kind->set_stops_gradient(layer.getStopsGradient());
}

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_KINDVARIANT_H
