//===- ParameterLayouts.h - Chooses how a layer's parameters are split ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Three rules apply to the forward graph of a layer kind:
//
// - tables of embedding and head are split over the vocabulary;
// - *Feature regions.* A region is a set of values between linear layers in
//   which no op needs whole rows: attention, activations, rotary, element-wise
//   ops. Linears that lead into a region are split over their output features
//   (column), and those that lead out of it over their input features (row).
//   Regions are found in the order of the linears. A linear whose input is
//   split does not begin another.
// - Everything else is replicated.
//
//     GPT-2 block    norm -> [q k v -> attention] -> proj -> + -> norm ->
//                    [fc -> gelu] -> proj -> +            two regions
//
// With tp ranks, key and value are split at head boundaries. If there are fewer
// key/value heads than ranks, they are split over the major factor of tp and
// replicated over the minor one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_PARAMETERLAYOUTS_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_PARAMETERLAYOUTS_H

#include "dialects/dist/Dist.h"

namespace mlir::dyna {

/// Returns one layout per parameter on a mesh whose axis 0 is tp. Reports an
/// error if a kernel does not support the parts.
FailureOr<std::vector<::dyna::Layout>>
chooseParameterLayouts(LayerOp layer, const ::dyna::Mesh &mesh);

/// Returns the linears whose weights stay whole under these layouts.
SmallVector<LinearOp> wholeLinears(LayerOp layer,
                                   llvm::ArrayRef<::dyna::Layout> layouts);

/// Attaches a note for each of these linears, with the op that prevents its
/// split. If the layer has no linear at all, attaches a note that says so.
void explainWholeLinears(LayerOp layer, llvm::ArrayRef<LinearOp> linears,
                         Diagnostic &diagnostic);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_PARAMETERLAYOUTS_H
