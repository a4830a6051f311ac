//===- SpecializeLayers.cpp - Layers that need less of backward -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/SpecializeLayers.h"

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// Places in models
//===----------------------------------------------------------------------===//

namespace {

/// A call, and what its place in the model asks of its layer.
struct PlacedCall {
  CallOp call;
  LayerOp layer;
  bool stops = false; ///< no layer before learns, and there is one
};

} // namespace

/// Returns the calls of all models. Calls of what is no layer are left out.
static SmallVector<PlacedCall> placeCalls(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<PlacedCall> placed;
  for (ModelOp model : module.getOps<ModelOp>()) {
    llvm::DenseSet<Value> learned; // results of layers that learn
    for (CallOp call : model.getBody().getOps<CallOp>()) {
      auto layer = symbols.lookup<LayerOp>(call.getCallee());
      if (!layer)
        continue;
      const bool isBehindLearned =
          llvm::any_of(call.getInputs(),
                       [&](Value input) { return learned.contains(input); });
      auto names = call.getParameters().getAsRange<FlatSymbolRefAttr>();
      const bool learns =
          isBehindLearned || llvm::any_of(names, [&](FlatSymbolRefAttr name) {
            ParameterOp parameter = parameterOf(call, name);
            return parameter && !parameter.getFrozen();
          });
      if (learns)
        learned.insert(call.getResult());
      placed.push_back(
          {call, layer, takesActivation(layer) && !isBehindLearned});
    }
  }
  return placed;
}

LogicalResult mlir::dyna::verifyVariants(ModuleOp module) {
  for (PlacedCall &placed : placeCalls(module)) {
    if (placed.stops == placed.layer.getStopsGradient())
      continue;
    return placed.call.emitOpError("calls @") // DIFF8
           << placed.layer.getSymName()
           << (placed.stops ? ", which gives a gradient of its input, but all "
                              "layers before are frozen"
                            : ", which gives no gradient of its input, but a "
                              "layer before is trained");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

namespace {

class Specializer {
public:
  explicit Specializer(ModuleOp module) : module(module), symbols(module) {}

  LogicalResult fitCalls();
  void addVariants(LayerOp layer, ArrayRef<CallOp> calls);

private:
  LayerOp addVariant(LayerOp layer, bool isFrozen, bool stops,
                     StringRef suffix);

  ModuleOp module;
  SymbolTable symbols;
};

} // namespace

static bool areAll(ArrayRef<bool> frozen) {
  return llvm::all_of(frozen, [](bool isFrozen) { return isFrozen; });
}

static StringRef suffixOf(bool isFrozen, bool stops) {
  return !isFrozen ? ".first" : stops ? ".alone" : ".passing";
}

/// Copies the layer, unless there is such a variant already.
LayerOp Specializer::addVariant(LayerOp layer, bool isFrozen, bool stops,
                                StringRef suffix) {
  std::string name = (layer.getSymName() + suffix).str();
  if (auto known = symbols.lookup<LayerOp>(name))
    return known;
  LayerOp variant = layer.clone();
  variant.setSymName(name);
  variant.setFrozen(isFrozen);
  variant.setStopsGradient(stops);
  variant.setVariantOfAttr(FlatSymbolRefAttr::get(layer));
  symbols.insert(variant, std::next(Block::iterator(layer)));
  return variant;
}

/// Gives each call the variant that its place asks for. A layer all calls of which ask for
/// one becomes it.
LogicalResult Specializer::fitCalls() {
  llvm::MapVector<LayerOp, SmallVector<PlacedCall>> callsOf;
  for (PlacedCall &placed : placeCalls(module)) {
    if (placed.layer.getStopsGradient() || placed.layer.getFrozen())
      return placed.layer.emitOpError(
          "says what it needs of backward, which dyna-differentiate finds out: "
          "leave out 'frozen' and 'stops_gradient'");
    callsOf[placed.layer].push_back(placed);
  }
  CallsOfLayers all = callsOfLayers(module);
  for (auto &[layer, calls] : callsOf) {
    auto stops = [](const PlacedCall &placed) { return placed.stops; };
    if (llvm::none_of(calls, stops))
      continue;
    if (llvm::all_of(calls, stops)) {
      LayerOp(layer).setStopsGradient(true);
      continue;
    }
    const bool isFrozen = areAll(frozenOf(layer, all[getBaseName(layer)]));
    LayerOp variant = addVariant(layer, /*isFrozen=*/false, /*stops=*/true,
                                 suffixOf(isFrozen, true));
    for (PlacedCall &placed : calls)
      if (placed.stops)
        placed.call.setCallee(variant.getSymName());
  }
  return success();
}

/// If no layer before any call learns, none ever does: what is frozen in the module stays
/// so. A head that runs forward alone would be the end of a model that learns nothing.
void Specializer::addVariants(LayerOp layer, ArrayRef<CallOp> calls) {
  const bool isFrozen = areAll(frozenOf(layer, calls));
  const bool hasBorder = takesActivation(layer);
  for (bool frozen : {false, true})
    for (bool stops : {false, true}) {
      const bool isItself =
          frozen == isFrozen && stops == layer.getStopsGradient();
      const bool canBe =
          (frozen || !isFrozen) && (!stops || hasBorder) &&
          (stops || !layer.getStopsGradient()) &&
          !(frozen && stops && isLoss(layer.getResultTypes().front()));
      if (!isItself && canBe)
        addVariant(layer, frozen && !isFrozen, stops,
                   suffixOf(frozen, stops || !hasBorder));
    }
}

LogicalResult mlir::dyna::specializeLayers(ModuleOp module, bool freezable) {
  Specializer specializer(module);
  if (failed(specializer.fitCalls()))
    return failure();
  if (!freezable)
    return success();
  CallsOfLayers calls = callsOfLayers(module);
  for (LayerOp layer : llvm::to_vector(module.getOps<LayerOp>()))
    if (!layer.getVariantOf() && calls.contains(layer.getSymNameAttr()))
      specializer.addVariants(layer, calls[layer.getSymNameAttr()]);
  return success();
}
