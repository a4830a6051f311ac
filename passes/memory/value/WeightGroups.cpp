//===- WeightGroups.cpp - Finds heads and channels of a layer -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/value/WeightGroups.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// The ops that compute a value from products, feature by feature.
class FeatureCone {
public:
  /// `mayPair`: ops may also pair features of a head.
  explicit FeatureCone(bool mayPair) : mayPair(mayPair) {}

  /// Adds what computes `value`. Returns false if anything but products and ops on single
  /// features does.
  bool add(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto product = dyn_cast<LinearOp>(op)) {
      products.insert(product);
      return true;
    }
    if (!isByFeature(op))
      return false;
    if (!between.insert(op))
      return true;
    bool isFound = false;
    for (Value operand : op->getOperands()) {
      if (!isActivation(operand))
        continue;
      isFound = true;
      if (!add(operand))
        return false;
    }
    return isFound;
  }

  /// Returns true if no op but `reader` reads anything of it.
  bool isReadBy(Operation *reader) const {
    auto isInside = [&](Operation *user) {
      return user == reader || between.contains(user);
    };
    auto readsInside = [&](Operation *op) {
      return llvm::all_of(op->getUsers(), isInside);
    };
    return llvm::all_of(between, readsInside) &&
           llvm::all_of(products, [&](LinearOp product) {
             return readsInside(product.getOperation());
           });
  }

  llvm::SetVector<LinearOp> products;
  llvm::SetVector<Operation *> between;

private:
  bool isByFeature(Operation *op) const {
    return op->hasTrait<mlir::dyna::OpTrait::Elementwise>() ||
           (mayPair && op->hasTrait<mlir::dyna::OpTrait::PairsFeatures>());
  }
  static bool isActivation(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 2 && type.isDynamicDim(0);
  }

  const bool mayPair;
};

/// Adds the weight of a product. Returns false if it is no parameter of the layer, is used
/// elsewhere, or is not divided by the groups.
bool addPart(LayerOp layer, LinearOp product, int dimension,
             WeightGroups &groups) {
  auto weight = dyn_cast<BlockArgument>(product.getWeight());
  if (!weight || !weight.hasOneUse() ||
      !llvm::is_contained(layer.getParameterArguments(), weight))
    return false;
  groups.parts.push_back({weight.getArgNumber(), dimension});
  return cast<RankedTensorType>(weight.getType()).getDimSize(dimension) %
             groups.count ==
         0;
}

std::optional<WeightGroups> headsOf(LayerOp layer, AttentionOp attention) {
  WeightGroups groups;
  groups.areHeads = true;
  groups.count = static_cast<int64_t>(attention.getKvHeads());
  for (Value input :
       {attention.getQuery(), attention.getKey(), attention.getValue()}) {
    FeatureCone cone(/*mayPair=*/true);
    if (!cone.add(input) || !cone.isReadBy(attention))
      return std::nullopt;
    for (LinearOp product : cone.products)
      if (!addPart(layer, product, /*dimension=*/0, groups))
        return std::nullopt;
  }
  if (attention.getResult().use_empty())
    return std::nullopt;
  for (Operation *user : attention.getResult().getUsers()) {
    auto product = dyn_cast<LinearOp>(user);
    if (!product || product.getX() != attention.getResult() ||
        !addPart(layer, product, /*dimension=*/1, groups))
      return std::nullopt;
  }
  return groups;
}

std::optional<WeightGroups> channelsInto(LayerOp layer, LinearOp reader) {
  FeatureCone cone(/*mayPair=*/false);
  if (!cone.add(reader.getX()) || !cone.isReadBy(reader) ||
      cone.between.empty())
    return std::nullopt;
  WeightGroups groups{
      /*areHeads=*/false,
      cast<RankedTensorType>(reader.getX().getType()).getDimSize(1),
      {}};
  for (LinearOp product : cone.products)
    if (!addPart(layer, product, /*dimension=*/0, groups))
      return std::nullopt;
  if (!addPart(layer, reader, /*dimension=*/1, groups))
    return std::nullopt;
  return groups;
}

} // namespace

SmallVector<WeightGroups> mlir::dyna::weightGroupsOf(LayerOp layer) {
  SmallVector<WeightGroups> all;
  layer.walk([&](Operation *op) {
    std::optional<WeightGroups> found;
    if (auto attention = dyn_cast<AttentionOp>(op))
      found = headsOf(layer, attention);
    else if (auto product = dyn_cast<LinearOp>(op))
      found = channelsInto(layer, product);
    if (found)
      all.push_back(std::move(*found));
  });
  llvm::DenseMap<std::pair<int64_t, int>, int> uses;
  for (const WeightGroups &groups : all)
    for (const WeightGroups::Part &part : groups.parts)
      ++uses[{part.parameter, groups.areHeads}];
  llvm::erase_if(all, [&](const WeightGroups &groups) {
    return llvm::any_of(groups.parts, [&](const WeightGroups::Part &part) {
      return uses[{part.parameter, groups.areHeads}] > 1;
    });
  });
  return all;
}
