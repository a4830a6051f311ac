//===- VerifyLocal.cpp - Verifies layers of tensor degrees ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies each layer of a tensor degree as a whole, and the module.
// LocalVerifier follows the bodies.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "passes/distribute/LocalVerifier.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/deduce/LayoutRules.h"
#include "passes/distribute/deduce/TensorDegree.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_VERIFYLOCAL
#include "passes/distribute/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::Layout;

namespace {

class VerifyLocal : public mlir::dyna::impl::VerifyLocalBase<VerifyLocal> {
public:
  using Base = mlir::dyna::impl::VerifyLocalBase<VerifyLocal>;
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerLayoutRules(registry);
  }
  using Base::Base;
  void runOnOperation() override {
    bool hasLocal =
        llvm::any_of(getOperation().getOps<LayerOp>(),
                     [](LayerOp layer) { return dist::kMesh.isOn(layer); });
    if (!hasLocal && !allowNone)
      warnOfNothing(getOperation(), getArgument(),
                    "layers of one rank; --dyna-distribute makes them");
    if (failed(verifyLocal(getOperation())))
      signalPassFailure();
  }
};

/// Checks one module.
class ModuleVerifier {
public:
  explicit ModuleVerifier(ModuleOp module)
      : module(module), symbols(module), groups{GroupTable(module), {}} {}
  LogicalResult run();

private:
  LogicalResult checkLogical(Operation *op);
  FailureOr<TensorDegree> degreeOf(LayerOp local, LayerOp logical);
  LogicalResult readLayouts(LocalLayer &layer);
  LogicalResult checkFunctions(LocalLayer &layer);
  LogicalResult checkGradients(const LocalLayer &layer);
  LogicalResult checkLayer(LayerOp local);
  LogicalResult checkEveryDegree();
  LogicalResult checkGroups();

  ModuleOp module;
  SymbolTable symbols;
  NeededGroups groups;
  /// By the name of the layer.
  llvm::DenseMap<Attribute, SmallVector<FunctionOp>> functionsOf;
  /// Tensor degrees that any layer has, with the first such layer.
  std::vector<std::pair<TensorDegree, LayerOp>> degrees;
};

} // namespace

static bool isLocal(LayerOp layer) { return layer && dist::kMesh.isOn(layer); }

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Checks that an op without a tensor degree has no layouts and exchanges
/// nothing.
LogicalResult ModuleVerifier::checkLogical(Operation *op) {
  WalkResult result = op->walk([](Operation *inner) {
    if (isa_and_present<dist::DistDialect>(inner->getDialect()))
      return WalkResult(inner->emitOpError()
                        << "stands in a function whose layer has no '"
                        << dist::kMesh.name << "'");
    for (NamedAttribute attribute : inner->getDiscardableAttrs())
      if (attribute.getName().strref().starts_with("dist."))
        return WalkResult(inner->emitOpError()
                          << "has '" << attribute.getName().strref()
                          << "', but its layer has no '" << dist::kMesh.name
                          << "'");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Returns the degree. Mesh, split of tokens, and name must agree.
FailureOr<TensorDegree> ModuleVerifier::degreeOf(LayerOp local,
                                                 LayerOp logical) {
  auto mesh = dist::kMesh.of(local);
  TensorDegree degree;
  if (mesh)
    degree.tp = mesh.getMesh().size();
  Attribute sequence = local->getAttr(dist::kSequence.name);
  degree.sequence = bool(sequence);
  std::string name = (logical.getSymName() + degree.suffix()).str();
  if (mesh && degree.tp > 1 &&
      mesh == dist::MeshAttr::get(&*module.getContext(), degree.mesh()) &&
      (!sequence || isa<UnitAttr>(sequence)) && local.getSymName() == name)
    return degree;
  return local.emitOpError()
         << "of @" << logical.getSymName() << " is on "
         << local->getAttr(dist::kMesh.name)
         << (sequence ? " with tokens split" : "")
         << "; expects the axis tp alone and, for "
         << (mesh ? mesh.getMesh().describe() : "it") << ", the name @" << name;
}

/// Reads the layouts of parameters and their gradients, from which all others
/// follow.
LogicalResult ModuleVerifier::readLayouts(LocalLayer &layer) {
  size_t numParameters = layer.logical.getNumParameters();
  auto read = [&](dist::PhaseAttribute<ArrayAttr> attribute,
                  std::vector<Layout> &layouts) {
    ArrayAttr list = attribute.of(layer.local);
    for (size_t i = 0; list && i < std::min(list.size(), numParameters); ++i) {
      auto layout = dyn_cast<dist::LayoutAttr>(list[i]);
      if (layout && layout.getMesh() == layer.meshAttr)
        layouts.push_back(layout.getLayout());
    }
    if (list && layouts.size() == numParameters &&
        (attribute.name == dist::kArguments.name ||
         list.size() == numParameters))
      return success();
    return LogicalResult(layer.local.emitOpError()
                         << "expects '" << attribute.name
                         << "' to begin with the "
                         << "layouts of " << numParameters << " parameters on "
                         << layer.meshAttr);
  };
  if (failed(read(dist::kArguments, layer.parameters)) ||
      failed(read(dist::kGradients, layer.gradients)))
    return failure();
  for (auto [index, layout, gradient] :
       llvm::enumerate(layer.parameters, layer.gradients)) {
    auto type = cast<RankedTensorType>(layer.logical.getArgumentTypes()[index]);
    bool isWhole =
        layout.partial.empty() && layout.dims.size() == size_t(type.getRank());
    Layout reduced = ::dyna::canonicalLayout(gradient);
    reduced.partial.clear();
    if (!isWhole || reduced != ::dyna::canonicalLayout(layout))
      return layer.local.emitOpError()
             << "lays parameter " << index << " out as "
             << describeLayout(layer.mesh, layout) << " and its gradient as "
             << describeLayout(layer.mesh, gradient) << "; expects parts of "
             << type << ", and of the gradient the same or a sum of such";
    layout = ::dyna::canonicalLayout(layout);
    gradient = ::dyna::canonicalLayout(gradient);
    // The plan reduces partial sums over this group.
    if (!gradient.partial.empty() &&
        !groups.find(layer.meshAttr, gradient.partial))
      return layer.local.emitOpError()
             << "has the gradient of parameter " << index << " as "
             << describeLayout(layer.mesh, gradient)
             << ", but that group is not in the module's '"
             << dist::kGroups.name << "'";
  }
  return success();
}

/// Saved values are laid out by the first two.
static constexpr int kLastTurn = 2;
static int turnOf(Role role) {
  return role == Role::Forward         ? 0
         : role == Role::BackwardInput ? 1
                                       : kLastTurn;
}

/// Checks that there is one function for each of the logical layer, and no
/// other.
LogicalResult ModuleVerifier::checkFunctions(LocalLayer &layer) {
  SmallVector<FunctionOp> locals =
      functionsOf.lookup(layer.local.getSymNameAttr());
  SmallVector<std::pair<FunctionOp, FunctionOp>> pairs;
  for (FunctionOp logical :
       functionsOf.lookup(layer.logical.getSymNameAttr())) {
    std::string name =
        (layer.local.getSymName() + "." + stringifyRole(logical.getRole()))
            .str();
    auto it = llvm::find_if(locals, [&](FunctionOp local) {
      return local.getRole() == logical.getRole() && local.getSymName() == name;
    });
    if (it == locals.end())
      return layer.local.emitOpError()
             << "has no function @" << name << " in role '"
             << stringifyRole(logical.getRole()) << "', which @"
             << logical.getSymName() << " would be the whole of";
    pairs.push_back({*it, logical});
    locals.erase(it);
  }
  if (!locals.empty())
    return locals.front().emitOpError()
           << "is a part of no function of @" << layer.logical.getSymName();
  for (int turn = 0; turn <= kLastTurn; ++turn)
    for (auto &[local, logical] : pairs)
      if (turnOf(local.getRole()) == turn &&
          failed(LocalVerifier(layer, groups, local, logical).run()))
        return failure();
  return success();
}

/// Checks the gradients of a layer. The additions of functions determine over
/// which ranks a gradient is partial. Without additions it is zero, and not
/// partial.
LogicalResult ModuleVerifier::checkGradients(const LocalLayer &layer) {
  for (auto [index, gradient] : llvm::enumerate(layer.gradients))
    if (!layer.isAddedTo[index] && !gradient.partial.empty())
      return LayerOp(layer.local).emitOpError()
             << "has the gradient of parameter " << index << " as "
             << describeLayout(layer.mesh, gradient)
             << ", but no function adds to it";
  return success();
}

LogicalResult ModuleVerifier::checkLayer(LayerOp local) {
  auto name = dist::kLogical.of(local);
  auto logical = name ? symbols.lookup<LayerOp>(name.getAttr()) : LayerOp();
  if (!logical || isLocal(logical) ||
      logical.getNumParameters() != local.getNumParameters())
    return local.emitOpError()
           << "expects '" << dist::kLogical.name
           << "' to name the layer that it is a part of, but got " << name;
  FailureOr<TensorDegree> degree = degreeOf(local, logical);
  if (failed(degree))
    return failure();
  bool isNew = llvm::none_of(
      degrees, [&](const auto &known) { return known.first == *degree; });
  if (isNew)
    degrees.push_back({*degree, local});
  LocalLayer layer;
  layer.local = local;
  layer.logical = logical;
  layer.mesh = degree->mesh();
  layer.meshAttr = dist::MeshAttr::get(local.getContext(), layer.mesh);
  if (degree->sequence)
    layer.tokens = {layer.mesh.wholeAxis(0)};
  layer.isAddedTo.resize(local.getNumParameters());
  if (failed(readLayouts(layer)) ||
      failed(LocalVerifier(layer, groups, local, logical).run()) ||
      failed(checkFunctions(layer)))
    return failure();
  return checkGradients(layer);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// Checks that a model runs at a degree only if all of its layers do.
LogicalResult ModuleVerifier::checkEveryDegree() {
  for (LayerOp layer : module.getOps<LayerOp>())
    for (auto &[degree, other] : degrees)
      if (std::string name = (layer.getSymName() + degree.suffix()).str();
          !isLocal(layer) && !isLocal(symbols.lookup<LayerOp>(name)))
        return layer.emitOpError()
               << "has no part @" << name << ", though there is @"
               << other.getSymName();
  return success();
}

/// Groups with indices from kFirstFactorGroup on: each once, at its place, and
/// needed.
LogicalResult ModuleVerifier::checkGroups() {
  for (NamedAttribute attribute : module->getDiscardableAttrs())
    if (attribute.getName() != dist::kGroups.name &&
        attribute.getName().strref().starts_with("dist."))
      return module.emitOpError() << "has '" << attribute.getName().strref()
                                  << "', which says nothing here";
  Attribute stated = module->getAttr(dist::kGroups.name);
  if (!stated)
    return success();
  auto list = dyn_cast<ArrayAttr>(stated);
  if (!list || list.empty())
    return module.emitOpError() << "expects '" << dist::kGroups.name
                                << "' to list groups, but got " << stated;
  for (auto [index, attribute] : llvm::enumerate(list)) {
    auto group = dyn_cast<dist::GroupAttr>(attribute);
    if (!group || group.getIndex() != dist::kFirstFactorGroup + int64_t(index))
      return module.emitOpError()
             << "expects '" << dist::kGroups.name << "' to list at " << index
             << " a group with index " << dist::kFirstFactorGroup + index
             << ", but got " << attribute;
    if (!groups.needed.contains(group))
      return module.emitOpError() << "lists in '" << dist::kGroups.name << "' "
                                  << group << ", which nothing needs";
  }
  return success();
}

LogicalResult ModuleVerifier::run() {
  for (FunctionOp function : module.getOps<FunctionOp>())
    functionsOf[function.getLayerAttr().getAttr()].push_back(function);
  for (Operation &op : module.getOps()) {
    auto layer = dyn_cast<LayerOp>(op);
    if (auto function = dyn_cast<FunctionOp>(op))
      layer = symbols.lookup<LayerOp>(function.getLayer());
    if (!isLocal(layer) && failed(checkLogical(&op)))
      return failure();
  }
  for (LayerOp layer : module.getOps<LayerOp>())
    if (isLocal(layer) && failed(checkLayer(layer)))
      return failure();
  return success(succeeded(checkEveryDegree()) && succeeded(checkGroups()));
}

LogicalResult mlir::dyna::verifyLocal(ModuleOp module) {
  return ModuleVerifier(module).run();
}
