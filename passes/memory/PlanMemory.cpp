//===- PlanMemory.cpp - Gives every value of the layer functions a place --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Requirements.h"
#include "mlir/IR/Builders.h"
#include "passes/memory/Passes.h"
#include "passes/memory/place/MemoryPlan.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

static ArrayAttr arrayOf(MLIRContext *context, ArrayRef<PlaceAttr> places) {
  return ArrayAttr::get(context,
                        SmallVector<Attribute>(places.begin(), places.end()));
}

static void apply(FunctionOp function, const FunctionPlan &plan) {
  MLIRContext *context = function.getContext();
  function.setArgPlacesAttr(arrayOf(context, plan.arguments));
  function.setResultPlacesAttr(arrayOf(context, plan.results));
  function.setWorkspaceAttr(
      PlaceAttr::get(context, Memory::Workspace, 0, plan.workspace));
  for (const auto &[op, places] : plan.places)
    cast<PlacedOpInterface>(op).setPlacesAttr(arrayOf(context, places));
}

static void apply(LayerOp layer, const TierPlan &plan) {
  SmallVector<PlaceAttr> tiers;
  for (auto [memory, size] : llvm::zip_equal(tierMemories, plan.sizes))
    tiers.push_back(PlaceAttr::get(layer.getContext(), memory, 0, size));
  layer.setTiersAttr(arrayOf(layer.getContext(), tiers));
}

/// Results of every op of a function can be given places.
static LogicalResult requirePlaceable(ModuleOp module) {
  for (FunctionOp function : module.getOps<FunctionOp>())
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<dist::ReshardOp>(op))
        return op.emitOpError("has no place: it says where data goes, not how; "
                              "run --dyna-materialize-collectives first");
      if (!isa<PlacedOpInterface>(op))
        return op.emitOpError("has results that cannot be given places");
    }
  return success();
}

namespace {

struct PlanMemory : mlir::dyna::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    if (failed(requireFunctions(getOperation())) ||
        failed(requirePlaceable(getOperation())))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto &[name, functions] : functionsByLayer(getOperation())) {
      auto layer = symbols.lookup<LayerOp>(name);
      FailureOr<TierPlan> tiers = planTiers(layer, functions);
      if (failed(tiers))
        return signalPassFailure();
      if (layer)
        apply(layer, *tiers);
      for (FunctionOp function : functions) {
        FailureOr<FunctionPlan> plan = planFunction(function, *tiers);
        if (failed(plan))
          return signalPassFailure();
        apply(function, *plan);
      }
    }
  }
};

} // namespace
