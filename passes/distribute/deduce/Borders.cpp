//===- Borders.cpp - Derives layouts of arguments and results -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/Borders.h"

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::Layout;

bool mlir::dyna::isOptimizer(Role role) {
  return role == Role::Update || role == Role::GradNorm || role == Role::Cast;
}

/// Ids and the loss are the same on all ranks.
Layout Borders::ofActivation(Type type) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Layout layout = Layout::replicated(tensor ? tensor.getRank() : 0);
  if (isActivation(type))
    layout.dims.front() = layer.tokens;
  return layout;
}

/// Returns the layout of an argument or result by its place. Optimizer
/// functions read gradients that the plan has reduced, and only the rank's own
/// elements of them. So these have the parameter's layout, and sums over them
/// are partial over all ranks.
std::optional<Layout> Borders::ofPlace(PlaceAttr place, Type type) {
  Role role = cast<FunctionOp>(function.getOperation()).getRole();
  size_t index = place.getIndex();
  auto ofParameter = [&](const std::vector<Layout> &layouts,
                         size_t index) -> std::optional<Layout> {
    if (index >= layouts.size())
      return std::nullopt;
    return layouts[index];
  };
  switch (place.getMemory()) {
  case Memory::Parameter:
    return ofParameter(layer.parameters, index);
  case Memory::Gradient:
    return ofParameter(isOptimizer(role) ? layer.parameters : layer.gradients,
                       index);
  case Memory::Input:
    if (isOptimizer(role)) // master, m and v of each parameter
      return ofParameter(layer.parameters,
                         role == Role::Update ? index / 3 : index);
    return ofActivation(type);
  case Memory::Output:
    if (role == Role::GradNorm)
      return Layout{{{}}, {layer.mesh.wholeAxis(0)}};
    return ofActivation(type);
  default:
    return ofActivation(type);
  }
}

bool mlir::dyna::isSaved(Memory memory) {
  return memory == Memory::Products || memory == Memory::Elementwise ||
         memory == Memory::Deferred;
}

std::optional<Layout> Borders::ofArgument(unsigned index) {
  Type type = function.getArgumentTypes()[index];
  auto layerFunction = dyn_cast<FunctionOp>(function.getOperation());
  if (!layerFunction)
    return index < layer.parameters.size() ? layer.parameters[index]
                                           : ofActivation(type);
  PlaceAttr place = layerFunction.getArgPlace(index);
  Memory memory = place.getMemory();
  if (!isSaved(memory))
    return ofPlace(place, type);
  const std::vector<Layout> &tier = layer.saved[memory];
  size_t number = numTaken[memory]++;
  if (number >= tier.size())
    return std::nullopt;
  return tier[number];
}

std::optional<Layout> Borders::ofResult(unsigned index, const Layout &found) {
  Type type = function.getResultTypes()[index];
  auto layerFunction = dyn_cast<FunctionOp>(function.getOperation());
  if (!layerFunction)
    return ofActivation(type);
  PlaceAttr place = layerFunction.getResultPlace(index);
  Memory memory = place.getMemory();
  if (!isSaved(memory))
    return ofPlace(place, type);
  std::vector<Layout> &tier = layer.saved[memory];
  size_t number = numGiven[memory]++;
  Role maker = memory == Memory::Deferred ? Role::BackwardInput : Role::Forward;
  if (layerFunction.getRole() == maker && number == tier.size())
    tier.push_back(found);
  if (number >= tier.size())
    return std::nullopt;
  return tier[number];
}
