//===- DeduceLayouts.cpp - Implements dyna-deduce-layouts -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "passes/differentiate/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/deduce/LayerDeducer.h"
#include "passes/distribute/deduce/LayoutRules.h"
#include "passes/distribute/deduce/ParameterLayouts.h"
#include "runtime/plan/graph/ExecutableGraph.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_DEDUCELAYOUTS
#define GEN_PASS_DEF_REPORTLAYOUTRULES
#include "passes/distribute/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

class DeduceLayouts
    : public mlir::dyna::impl::DeduceLayoutsBase<DeduceLayouts> {
public:
  using Base = mlir::dyna::impl::DeduceLayoutsBase<DeduceLayouts>;
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerLayoutRules(registry);
  }
  void runOnOperation() override;

private:
  LogicalResult deduce(LayerOp layer, const TensorDegree &degree);
  LogicalResult checkTies(const TensorDegree &degree);

  llvm::DenseMap<Operation *, Operation *> lastOf;
};

class ReportLayoutRules
    : public mlir::dyna::impl::ReportLayoutRulesBase<ReportLayoutRules> {
public:
  using Base = mlir::dyna::impl::ReportLayoutRulesBase<ReportLayoutRules>;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerLayoutRules(registry);
  }
  void runOnOperation() override;
};

} // namespace

static SmallVector<FunctionOp> functionsOf(ModuleOp module, StringRef layer) {
  return llvm::filter_to_vector(
      module.getOps<FunctionOp>(),
      [&](FunctionOp function) { return function.getLayer() == layer; });
}

/// Later functions take what these have settled.
static constexpr int kLastTurn = 3;
static int turnOf(Role role) {
  switch (role) {
  case Role::Forward:
    return 0;
  case Role::Backward:
    return 1;
  case Role::BackwardInput:
    return 2;
  default:
    return kLastTurn;
  }
}

/// Returns true if every rank does all work of a layer.
static bool isWhole(LayerOp local) {
  auto areWhole = [](Operation *op, dist::PhaseAttribute<ArrayAttr> list) {
    ArrayAttr layouts = list.of(op);
    return layouts && llvm::all_of(layouts, [](Attribute attribute) {
             auto layout = dyn_cast<dist::LayoutAttr>(attribute);
             return !layout ||
                    layout.getLayout() == ::dyna::Layout::replicated(
                                              layout.getLayout().dims.size());
           });
  };
  auto ops = local.getBody().front().without_terminator();
  return !ops.empty() && areWhole(local, dist::kArguments) &&
         llvm::all_of(
             ops, [&](Operation &op) { return areWhole(&op, dist::kLayouts); });
}

/// Warns of layers that are not split, and of linears that are whole beside
/// split ones. Each rank has all of them, so the tensor degree gains nothing
/// there. The user who chose it may not know this.
static void warnOfWhole(LayerOp layer, LayerOp local,
                        ArrayRef<::dyna::Layout> parameters,
                        const TensorDegree &degree) {
  SmallVector<LinearOp> whole = wholeLinears(layer, parameters);
  const size_t linears = llvm::range_size(layer.getBody().getOps<LinearOp>());
  const bool isSplit =
      llvm::any_of(parameters, [](const ::dyna::Layout &layout) {
        return layout != ::dyna::Layout::replicated(layout.dims.size());
      });
  const bool isAll = isWhole(local);
  if (!isAll && (whole.empty() || !isSplit))
    return;
  InFlightDiagnostic warning = mlir::emitWarning(layer.getLoc());
  warning << "layer @" << layer.getSymName();
  if (isAll)
    warning << " is split in nothing at tp=" << degree.tp;
  else
    warning << " keeps " << whole.size() << " of its " << linears
            << (linears == 1 ? " linear" : " linears")
            << " whole at tp=" << degree.tp << (degree.sequence ? ",sp=1" : "");
  const char *them = isAll ? "its" : "their";
  warning << ": each of the " << degree.tp << " ranks keeps all of " << them
          << " parameters";
  if (!degree.sequence)
    warning << " and does all of " << them << " work";
  explainWholeLinears(layer, whole, *warning.getUnderlyingDiagnostic());
}

LogicalResult DeduceLayouts::deduce(LayerOp layer, const TensorDegree &degree) {
  ::dyna::Mesh mesh = degree.mesh();
  auto parameters = chooseParameterLayouts(layer, mesh);
  if (failed(parameters))
    return failure();
  ModuleOp module = getOperation();
  SmallVector<FunctionOp> functions = functionsOf(module, layer.getSymName());

  OpBuilder builder(layer.getContext());
  // Insert after the ops that were made for the layer before.
  Operation *&last = lastOf[layer];
  if (!last)
    last = functions.empty() ? layer.getOperation() : functions.back();
  builder.setInsertionPointAfter(last);
  std::string name = (layer.getSymName() + degree.suffix()).str();
  if (Operation *other = module.lookupSymbol(name))
    return other->emitOpError() << "has the name of a layer that is to be made;"
                                   " distribute a module only once for each "
                                   "tensor degree";
  auto local = cast<LayerOp>(builder.clone(*layer));
  local.setSymName(name);
  dist::kMesh.set(local, dist::MeshAttr::get(&getContext(), mesh));
  dist::kLogical.set(local, FlatSymbolRefAttr::get(layer));
  if (degree.sequence)
    dist::kSequence.set(local, builder.getUnitAttr());
  SmallVector<FunctionOp> copies;
  FunctionOp backwardWeight;
  for (FunctionOp function : functions) {
    copies.push_back(cast<FunctionOp>(builder.clone(*function)));
    copies.back().setSymName(
        (name + "." + stringifyRole(function.getRole())).str());
    copies.back().setLayer(name);
    if (function.getRole() == Role::BackwardWeight)
      backwardWeight = copies.back();
  }

  last = copies.empty() ? local.getOperation() : copies.back();

  LayerDeducer deducer(&getContext(), degree, *parameters);
  deducer.setBackwardWeight(backwardWeight);
  if (failed(deducer.deduce(local)))
    return failure();
  warnOfWhole(layer, local, *parameters, degree);
  for (int turn = 0; turn <= kLastTurn; ++turn)
    for (FunctionOp function : copies) {
      if (turnOf(function.getRole()) != turn)
        continue;
      if (failed(deducer.deduce(function)))
        return failure();
      function.walk([&](dist::ReshardOp) { ++numReshards; });
    }
  dist::kGradients.set(local, deducer.getGradients());
  return success();
}

/// Calls that share a parameter must agree on how it is split.
LogicalResult DeduceLayouts::checkTies(const TensorDegree &degree) {
  ModuleOp module = getOperation();
  llvm::DenseMap<Attribute, std::pair<Attribute, CallOp>> layouts;
  WalkResult result = module.walk([&](CallOp call) {
    auto layer = module.lookupSymbol<LayerOp>(
        (call.getCallee() + degree.suffix()).str());
    if (!layer)
      return WalkResult::advance();
    auto arguments = dist::kArguments.of(layer);
    for (auto [i, parameter] : llvm::enumerate(call.getParameters())) {
      auto [it, isNew] = layouts.insert({parameter, {arguments[i], call}});
      if (it->second.first == arguments[i])
        continue;
      InFlightDiagnostic error =
          call.emitOpError() << "splits " << parameter << " as " << arguments[i]
                             << ", but another call as " << it->second.first
                             << "; tied parameters are split alike";
      error.attachNote(it->second.second.getLoc()) << "see the other call";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Stages change no code, but a strategy that no plan can follow is not worth
/// compiling for.
static LogicalResult checkStages(ModelOp model,
                                 const ::dyna::Strategy &strategy) {
  ::dyna::Status status =
      ::dyna::checkStages(strategy, llvm::range_size(model.getOps<CallOp>()));
  return status.isOk() ? success() : model.emitOpError() << status.message();
}

/// Sweeps and places are for local types.
static LogicalResult requireUnplaced(ModuleOp module) {
  for (FunctionOp function : module.getOps<FunctionOp>())
    if (function.getWorkspaceAttr() ||
        !function.getBody().front().getOps<RowsOp>().empty())
      return function.emitOpError("has been through the memory phase; run "
                                  "--dyna-distribute before --dyna-memory");
  return success();
}

void DeduceLayouts::runOnOperation() {
  auto strategies = strategiesOf(strategy);
  if (!strategies.isOk()) {
    getOperation().emitError() << strategies.status().message();
    return signalPassFailure();
  }
  for (ModelOp model : getOperation().getOps<ModelOp>())
    for (const ::dyna::Strategy &each : *strategies)
      if (mlir::failed(checkStages(model, each)))
        return signalPassFailure();
  // The code below relies on saved values, places and gradients as these checks
  // require them.
  auto isLogical = [](LayerOp layer) { return !dist::kMesh.isOn(layer); };
  if (mlir::failed(requireFunctions(getOperation())) ||
      mlir::failed(requireUnplaced(getOperation())) ||
      mlir::failed(verifyDifferentiated(getOperation(), isLogical)))
    return signalPassFailure();
  // Try all layers, so that one run reports the faults of all.
  bool failed = false;
  lastOf.clear();
  SmallVector<LayerOp> layers =
      llvm::filter_to_vector(getOperation().getOps<LayerOp>(), isLogical);
  for (const TensorDegree &degree : tensorDegreesOf(*strategies)) {
    for (LayerOp layer : layers)
      failed |= mlir::failed(deduce(layer, degree));
    failed = failed || mlir::failed(checkTies(degree));
  }
  if (failed)
    signalPassFailure();
}

void ReportLayoutRules::runOnOperation() {
  bool hasReported = false;
  getOperation().walk([&](Operation *op) {
    if (op->getNumResults() == 0 || isa<CallOp>(op))
      return;
    hasReported = true;
    FailureOr<dist::FactorRule> rule = getLayoutRule(op);
    if (failed(rule))
      return signalPassFailure();
    op->emitRemark() << "'" << describeRule(*rule) << "'";
  });
  if (!hasReported)
    warnOfNothing(getOperation(), getArgument(), "ops with results");
}
