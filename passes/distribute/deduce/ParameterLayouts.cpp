//===- ParameterLayouts.cpp - Chooses how a layer's parameters are split --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/ParameterLayouts.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::AxisParts;
using ::dyna::Layout;
using ::dyna::Mesh;

namespace {

/// Values whose features can stay split between linears.
struct FeatureRegion {
  llvm::SetVector<Value> values;
  llvm::SetVector<Operation *> columns, rows, attentions, joints;
};

class ParameterChooser {
public:
  ParameterChooser(LayerOp layer, const Mesh &mesh)
      : layer(layer), tp(mesh.axes()[0].size), whole{mesh.wholeAxis(0)} {
    for (BlockArgument parameter : layer.getParameterArguments())
      layouts.push_back(Layout::replicated(
          cast<RankedTensorType>(parameter.getType()).getRank()));
    isSet.resize(layouts.size());
  }

  LogicalResult run();
  std::vector<Layout> take() { return std::move(layouts); }

private:
  LogicalResult splitTables();
  LogicalResult splitRegion(const FeatureRegion &region);
  LogicalResult checkHeads(AttentionOp attention);
  LogicalResult split(Operation *user, Value parameter, Layout layout);
  /// Splits the vectors that go with the features which the op keeps.
  LogicalResult splitAlong(Operation *op, const AxisParts &features);
  /// Returns the parts of the features of a region's values.
  llvm::DenseMap<Value, AxisParts> partsOfValues(const FeatureRegion &region);

  LayerOp layer;
  int64_t tp;
  AxisParts whole;
  std::vector<Layout> layouts;
  std::vector<bool> isSet;
};

} // namespace

/// Returns the factor of the features that the op keeps, by its rule. Each
/// feature of its first result then follows from the same feature of its
/// activations (for attention: the same head).
static std::optional<int> keptFeatures(Operation *op,
                                       const dist::FactorRule &rule) {
  if (rule.results.empty() || rule.results[0].size() != 2)
    return std::nullopt;
  int features = rule.results[0][1].front();
  bool takesAny = false;
  for (auto [operand, factors] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    if (!isActivation(operand.getType()))
      continue;
    takesAny = true;
    if (factors.size() != 2 || factors[1].front() != features)
      return std::nullopt;
  }
  if (!takesAny || rule.factors[features].kind == dist::Factor::Whole)
    return std::nullopt;
  return features;
}

static bool keepsFeatures(Operation *op) {
  auto ruled = dyn_cast<dist::LayoutRuleOpInterface>(op);
  return ruled && keptFeatures(op, ruled.getLayoutRule());
}

static SmallVector<Value> activationsOf(Operation *op) {
  return llvm::filter_to_vector(op->getOperands(), [](Value operand) {
    return isActivation(operand.getType());
  });
}

/// Adds everything that must be split with `value` to the region. If it cannot
/// be split, returns the op that has it whole, or that joins it with an input
/// of the layer.
static Operation *visitValue(Value value, FeatureRegion &region) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return *llvm::find_if(value.getUsers(), [&](Operation *user) {
      return llvm::is_contained(region.joints, user);
    });
  if (isa<LinearOp>(def))
    region.columns.insert(def);
  else if (!keepsFeatures(def))
    return def;
  else
    region.values.insert_range(activationsOf(def));
  if (keepsFeatures(def))
    region.joints.insert(def);
  if (isa<AttentionOp>(def))
    region.attentions.insert(def);
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<LinearOp>(user) && use.getOperandNumber() == 0)
      region.rows.insert(user);
    else if (keepsFeatures(user))
      region.values.insert(user->getResult(0));
    else
      return user;
  }
  return value.use_empty() ? def : nullptr;
}

/// Grows the region that begins with the result of `linear`. Returns the op
/// that prevents a region; null if there is none.
static Operation *growRegion(LinearOp linear, FeatureRegion &region) {
  region.values.insert(linear.getResult());
  // The set grows while it is walked.
  for (size_t i = 0; i < region.values.size(); ++i)
    if (Operation *obstacle = visitValue(region.values[i], region))
      return obstacle;
  for (Operation *row : region.rows)
    if (region.columns.contains(row))
      return row;
  return nullptr;
}

LogicalResult ParameterChooser::split(Operation *user, Value parameter,
                                      Layout layout) {
  auto argument = dyn_cast_or_null<BlockArgument>(parameter);
  if (!argument || argument.getArgNumber() >= layouts.size())
    return user->emitOpError("expects a parameter of the layer as its weight, "
                             "so that it can be split over ranks");
  size_t index = argument.getArgNumber();
  if (isSet[index] && layouts[index] != layout)
    return user->emitOpError("needs parameter ")
           << index
           << " of the layer split in another way than an op before it; "
              "use two parameters, or tp=1";
  isSet[index] = true;
  layouts[index] = std::move(layout);
  return success();
}

LogicalResult ParameterChooser::splitAlong(Operation *op,
                                           const AxisParts &features) {
  dist::FactorRule rule = cast<dist::LayoutRuleOpInterface>(op).getLayoutRule();
  std::optional<int> kept = keptFeatures(op, rule);
  for (auto [operand, factors] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    if (!isParameterType(operand.getType()))
      continue;
    Layout layout = Layout::replicated(factors.size());
    bool isAlong = false;
    for (auto [dim, list] : llvm::enumerate(factors))
      if (list.front() == kept) {
        layout.dims[dim] = features;
        isAlong = true;
      }
    if (isAlong && failed(split(op, operand, std::move(layout))))
      return failure();
  }
  return success();
}

LogicalResult ParameterChooser::splitTables() {
  WalkResult result = layer.walk([&](TableOpInterface op) -> WalkResult {
    return split(op, op.getTable(), {{whole, {}}, {}});
  });
  return failure(result.wasInterrupted());
}

LogicalResult ParameterChooser::checkHeads(AttentionOp attention) {
  int64_t heads = attention.getHeads(), kvHeads = attention.getKvHeads();
  if (heads % tp != 0)
    return attention.emitOpError()
           << "has " << heads << " heads, which tp=" << tp
           << " does not divide; choose a tensor degree that divides " << heads;
  if (kvHeads % tp != 0 && tp % kvHeads != 0)
    return attention.emitOpError()
           << "has " << kvHeads << " key/value heads: tp=" << tp
           << " must divide them, or they must divide it";
  return success();
}

llvm::DenseMap<Value, AxisParts>
ParameterChooser::partsOfValues(const FeatureRegion &region) {
  llvm::DenseMap<Value, AxisParts> parts;
  for (Value value : region.values)
    parts[value] = whole;
  for (Operation *op : region.attentions) {
    auto attention = cast<AttentionOp>(op);
    int64_t kvHeads = attention.getKvHeads();
    if (kvHeads >= tp)
      continue;
    AxisParts major = ::dyna::canonicalParts({{0, tp / kvHeads, kvHeads}});
    SmallVector<Value> pending{attention.getKey(), attention.getValue()};
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      parts[value] = major;
      Operation *def = value.getDefiningOp();
      if (keepsFeatures(def) && !isa<AttentionOp>(def))
        llvm::append_range(pending, activationsOf(def));
    }
  }
  return parts;
}

LogicalResult ParameterChooser::splitRegion(const FeatureRegion &region) {
  for (Operation *attention : region.attentions)
    if (failed(checkHeads(cast<AttentionOp>(attention))))
      return failure();
  llvm::DenseMap<Value, AxisParts> parts = partsOfValues(region);
  for (Operation *op : region.columns) {
    auto linear = cast<LinearOp>(op);
    const AxisParts &out = parts[linear.getResult()];
    int64_t features = linear.getWeight().getType().getDimSize(0);
    if (features % ::dyna::groupSize(out) != 0)
      return op->emitOpError()
             << "has " << features << " output features, which "
             << ::dyna::groupSize(out)
             << " tensor-parallel ranks cannot share evenly";
    if (failed(split(op, linear.getWeight(), {{out, {}}, {}})) ||
        (linear.getBias() && failed(split(op, linear.getBias(), {{out}, {}}))))
      return failure();
  }
  for (Operation *op : region.rows) {
    auto linear = cast<LinearOp>(op);
    if (failed(split(op, linear.getWeight(), {{{}, parts[linear.getX()]}, {}})))
      return failure();
  }
  for (Value value : region.values)
    if (Operation *op = value.getDefiningOp(); op && keepsFeatures(op))
      if (failed(splitAlong(op, parts[value])))
        return failure();
  return success();
}

LogicalResult ParameterChooser::run() {
  if (failed(splitTables()))
    return failure();
  llvm::DenseSet<Operation *> seen;
  for (auto linear : layer.getBody().getOps<LinearOp>()) {
    if (seen.contains(linear))
      continue;
    FeatureRegion region;
    auto isSeen = [&](Operation *op) { return seen.contains(op); };
    // The few features in the middle of an adapter stay whole. Its second
    // linear has split output features, together with the linear that it adds
    // to.
    if (growRegion(linear, region) || llvm::any_of(region.columns, isSeen) ||
        llvm::any_of(region.rows, isSeen))
      continue;
    if (failed(splitRegion(region)))
      return failure();
    seen.insert_range(region.columns);
    seen.insert_range(region.rows);
  }
  return success();
}

FailureOr<std::vector<Layout>>
mlir::dyna::chooseParameterLayouts(LayerOp layer, const Mesh &mesh) {
  ParameterChooser chooser(layer, mesh);
  if (failed(chooser.run()))
    return failure();
  return chooser.take();
}

SmallVector<LinearOp>
mlir::dyna::wholeLinears(LayerOp layer,
                         llvm::ArrayRef<::dyna::Layout> layouts) {
  return llvm::filter_to_vector(
      layer.getBody().getOps<LinearOp>(), [&](LinearOp linear) {
        auto weight = dyn_cast<BlockArgument>(linear.getWeight());
        return !weight || weight.getArgNumber() >= layouts.size() ||
               layouts[weight.getArgNumber()] == Layout::replicated(2);
      });
}

void mlir::dyna::explainWholeLinears(LayerOp layer,
                                     llvm::ArrayRef<LinearOp> linears,
                                     Diagnostic &diagnostic) {
  for (LinearOp linear : linears) {
    FeatureRegion region;
    Operation *obstacle = growRegion(linear, region);
    Diagnostic &note = diagnostic.attachNote(linear.getLoc());
    note << "the output features of this linear stay whole, ";
    if (obstacle)
      note << "as '" << obstacle->getName() << "' needs them so";
    else
      note << "as they meet those of a linear whose input features are split";
    note << "; a pair of linears is split that has only attention and "
            "element-wise ops in between";
  }
  if (layer.getBody().getOps<LinearOp>().empty())
    diagnostic.attachNote(layer.getLoc()) << "it has no linear to split";
}
