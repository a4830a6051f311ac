//===- FreezeLayers.h - Models with some layers frozen ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run freezes layers by going over to another model: the compiled one with other kinds of
// layers. `dynac --freezable` compiles each layer in variants (Manifest.proto):
//
//     parameters    some layer before learns      no layer before learns
//     trained       all of backward               no gradient of the input
//     frozen        gradient of the input alone   forward alone
//
// So costs, memory, plans and their verification follow from the kinds. The parameters of
// frozen layers are parked: they keep masters and moments.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_FREEZELAYERS_H
#define DYNA_RUNTIME_PLAN_FREEZELAYERS_H

#include "runtime/plan/model/Model.h"

namespace dyna {

/// True for each layer that a run has frozen, in the order of the model; empty: none.
using FrozenLayers = std::vector<bool>;

/// Returns the compiled model with these layers frozen, and no others beside those that
/// were compiled as frozen. Fails if only some of the layers that use a parameter are frozen,
/// or nothing is left to train. Fails if the binary lacks the functions.
StatusOr<Model> freezeLayers(const Model &compiled, const FrozenLayers &frozen);

/// Returns how many layers at the beginning of a model run forward alone.
int layersForwardAlone(const Model &model);

/// Returns the layers of a list: names with '+' between them, and ranges FIRST-LAST. Fails
/// with the names that there are.
StatusOr<FrozenLayers> parseLayers(const Model &model, const std::string &list);

/// Returns the names of layers as `parseLayers` reads them, with ranges where several follow
/// each other.
std::string describeLayers(const Model &model, const FrozenLayers &layers);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_FREEZELAYERS_H
