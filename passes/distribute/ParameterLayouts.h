//===- ParameterLayouts.h - How a layer's parameters are split --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rule, over the forward graph of a layer kind:
//
// - tables of embedding and head are split over the vocabulary;
// - a *feature region* is a set of values that lie between linear layers with
//   nothing in between that needs whole rows: attention, activations, rotary,
//   element-wise ops. All linears that lead into a region are split over their
//   output features (column), all that lead out of it over their input features
//   (row). Regions are found in the order of the linears; a linear whose input
//   is split does not begin another;
// - everything else is replicated.
//
//     GPT-2 block    norm -> [q k v -> attention] -> proj -> + -> norm ->
//                    [fc -> gelu] -> proj -> +            two regions
//
// With tp ranks, key and value are split at head boundaries. Where there are
// fewer key/value heads than ranks, they are split over the major factor of tp
// and replicated over the minor one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_PARAMETERLAYOUTS_H
#define DYNA_PASSES_DISTRIBUTE_PARAMETERLAYOUTS_H

#include "dialects/dist/Dist.h"

namespace mlir::dyna {

/// One layout per parameter on a mesh whose axis 0 is tp; a diagnostic where a
/// kernel cannot take the parts.
FailureOr<std::vector<::dyna::Layout>>
chooseParameterLayouts(LayerOp layer, const ::dyna::Mesh &mesh);

/// The linears whose weights the layouts of the layer's parameters leave whole.
SmallVector<LinearOp> wholeLinears(LayerOp layer,
                                   llvm::ArrayRef<::dyna::Layout> layouts);

/// Attaches a note for each of these linears with the op that prevents its split;
/// or one that the layer has no linear at all.
void explainWholeLinears(LayerOp layer, llvm::ArrayRef<LinearOp> linears,
                         Diagnostic &diagnostic);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_PARAMETERLAYOUTS_H
