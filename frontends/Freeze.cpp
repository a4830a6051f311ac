//===- Freeze.cpp - Freezes layers of a model -----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/Freeze.h"
#include "dialects/dyna/Dyna.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::dyna;

namespace {

class Freezer {
public:
  explicit Freezer(ModuleOp module) : module(module), symbols(module) {
    for (ModelOp model : module.getOps<ModelOp>())
      for (CallOp call : model.getBody().getOps<CallOp>())
        calls.push_back(call);
    frozen.assign(calls.size(), false);
  }

  LogicalResult choose(StringRef list);
  LogicalResult freezeParameters();
  void splitLayers();

private:
  /// Returns the number of the call of this layer; fails if there is none.
  FailureOr<size_t> find(StringRef name);

  ModuleOp module;
  SymbolTable symbols;
  SmallVector<CallOp> calls;
  SmallVector<bool> frozen; ///< by call
};

} // namespace

FailureOr<size_t> Freezer::find(StringRef name) {
  for (auto [i, call] : llvm::enumerate(calls))
    if (call.getLayerName() == name)
      return i;
  InFlightDiagnostic diagnostic = module.emitError();
  diagnostic << "--freeze names the layer '" << name << "', but the layers are "
             << calls.front().getLayerName();
  // Blocks are numbered, so the first and the last name suffice.
  if (calls.size() > 2)
    diagnostic << ", " << calls[1].getLayerName();
  if (calls.size() > 3)
    diagnostic << " to " << calls[calls.size() - 2].getLayerName();
  diagnostic << ", " << calls.back().getLayerName();
  return diagnostic;
}

LogicalResult Freezer::choose(StringRef list) {
  SmallVector<StringRef> entries;
  list.split(entries, '+');
  for (StringRef entry : entries) {
    auto [first, last] = entry.trim().split('-');
    FailureOr<size_t> begin = find(first.trim());
    if (failed(begin))
      return failure();
    FailureOr<size_t> end =
        entry.contains('-') ? find(last.trim()) : FailureOr<size_t>(begin);
    if (failed(end))
      return failure();
    if (*end < *begin)
      return module.emitError()
             << "--freeze has the range '" << entry.trim()
             << "', whose last layer comes before the first one";
    for (size_t i = *begin; i <= *end; ++i)
      frozen[i] = true;
  }
  return success();
}

LogicalResult Freezer::freezeParameters() {
  llvm::MapVector<StringAttr, size_t> firstUse;
  bool isAnyTrained = false;
  for (auto [i, call] : llvm::enumerate(calls))
    for (auto name : call.getParameters().getAsRange<FlatSymbolRefAttr>()) {
      const size_t first = firstUse.insert({name.getAttr(), i}).first->second;
      if (frozen[first] != frozen[i])
        return module.emitError()
               << "--freeze freezes '"
               << calls[frozen[i] ? i : first].getLayerName() << "' and not '"
               << calls[frozen[i] ? first : i].getLayerName()
               << "', but both use @" << name.getValue()
               << "; freeze both layers or neither";
      isAnyTrained |= !frozen[i];
      if (frozen[i])
        symbols.lookup<ParameterOp>(name.getValue()).setFrozen(true);
    }
  return isAnyTrained ? success()
                      : LogicalResult(module.emitError(
                            "--freeze freezes all layers that have "
                            "parameters, so nothing is left to train"));
}

void Freezer::splitLayers() {
  llvm::StringMap<bool> isTrained; // by name of the layer
  for (auto [i, call] : llvm::enumerate(calls))
    isTrained[call.getCallee()] |= !frozen[i];
  llvm::StringMap<LayerOp> copies;
  for (auto [i, call] : llvm::enumerate(calls)) {
    if (!frozen[i] || !isTrained[call.getCallee()])
      continue;
    LayerOp &copy = copies[call.getCallee()];
    if (!copy) {
      auto layer = symbols.lookup<LayerOp>(call.getCallee());
      copy = layer.clone();
      copy.setSymName((layer.getSymName() + "_frozen").str());
      symbols.insert(copy, std::next(Block::iterator(layer)));
    }
    call.setCallee(copy.getSymName());
  }
}

LogicalResult mlir::dyna::freezeLayers(ModuleOp module, StringRef list) {
  Freezer freezer(module);
  if (failed(freezer.choose(list)) || failed(freezer.freezeParameters()))
    return failure();
  freezer.splitLayers();
  return success();
}
