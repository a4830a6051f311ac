//===- DerivedFacts.cpp - Derives the facts of a model from its layers ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/facts/DerivedFacts.h"
#include "dialects/dyna/facts/Adapters.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// Parameters of a layer, by their numbers.
struct Tables {
  SmallVector<unsigned, 1> tokens, heads;
  int64_t attentions = 0;
};

class Deriver {
public:
  std::optional<DerivedFacts> run(ModelOp model,
                                  SymbolTableCollection &symbols);

private:
  Tables addLayer(LayerOp layer);
  void addOp(Operation *op, Tables &tables);
  void addAttention(AttentionOp attention);
  void addLinear(LinearOp linear);
  void addActivation(Operation *op, StringRef name);
  void addParameters(CallOp call, const Tables &tables,
                     SymbolTableCollection &symbols);

  static int64_t rowsOf(Value table, ShardAttr shard) {
    return shard ? shard.getRows()
                 : cast<RankedTensorType>(table.getType()).getDimSize(0);
  }
  static void note(SmallVector<unsigned, 1> &numbers, Value table) {
    if (auto argument = dyn_cast<BlockArgument>(table))
      numbers.push_back(argument.getArgNumber());
  }

  DerivedFacts facts;
  llvm::DenseMap<Operation *, Tables> layers;
  Said<StringRef> tokenTables, headTables;
};

} // namespace

/// Returns the result of the linear, with what its adapter adds.
static Value adaptedResult(LinearOp linear) {
  for (Operation *user : linear.getResult().getUsers())
    if (auto sum = dyn_cast<AddOp>(user))
      if (adaptedLinearOf(sum).base == linear)
        return sum.getResult();
  return linear.getResult();
}

/// Returns true if an attention reads the result of the product, or the product
/// reads that of an attention.
static bool isBesideAttention(LinearOp linear) {
  if (linear.getX().getDefiningOp<AttentionOp>())
    return true;
  for (Operation *user : adaptedResult(linear).getUsers()) {
    if (isa<AttentionOp>(user))
      return true;
    if (isa<RotaryOp>(user) && llvm::any_of(user->getUsers(), [](Operation *o) {
          return isa<AttentionOp>(o);
        }))
      return true;
  }
  return false;
}

void Deriver::addLinear(LinearOp linear) {
  bool hasBias = static_cast<bool>(linear.getBias());
  (isBesideAttention(linear) ? facts.attentionBias : facts.mlpBias)
      .insert({hasBias, linear});
}

void Deriver::addAttention(AttentionOp attention) {
  facts.heads.insert({attention.getHeads(), attention});
  facts.kvHeads.insert({attention.getKvHeads(), attention});
  int64_t size = attention.getHeadDim();
  facts.headDim.insert({size, attention});
  double scale = attention.getScale().convertToDouble();
  double usual = 1 / std::sqrt(static_cast<double>(size));
  // A scale that was written with fewer digits is still the usual one.
  if (!attention.getCausal() || std::abs(scale - usual) > 1e-6 * usual)
    facts.unusualAttention = attention;
}

void Deriver::addActivation(Operation *op, StringRef name) {
  facts.activation.insert({name.str(), op});
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  facts.feedForward.insert({type.getDimSize(1), op});
}

void Deriver::addOp(Operation *op, Tables &tables) {
  facts.ops.insert({op->getName().getStringRef().str(), op});
  if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
    facts.vocabulary.insert(
        {rowsOf(embedding.getTable(), embedding.getShardAttr()), op});
    note(tables.tokens, embedding.getTable());
  } else if (auto head = dyn_cast<LinearCrossEntropyOp>(op)) {
    facts.vocabulary.insert(
        {rowsOf(head.getWeight(), head.getShardAttr()), op});
    // An exit may have a table of its own, which says nothing of the model's head.
    if (!op->getParentOfType<LayerOp>().givesActivation())
      note(tables.heads, head.getWeight());
  } else if (auto lookup = dyn_cast<PositionsOp>(op)) {
    facts.positions.insert({rowsOf(lookup.getTable(), ShardAttr()), op});
  } else if (auto linear = dyn_cast<LinearOp>(op)) {
    addLinear(linear);
  } else if (auto attention = dyn_cast<AttentionOp>(op)) {
    addAttention(attention);
    ++tables.attentions;
  } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
    facts.layerNormEpsilon.insert({norm.getEpsilon().convertToDouble(), op});
  } else if (auto norm = dyn_cast<RmsNormOp>(op)) {
    facts.rmsNormEpsilon.insert({norm.getEpsilon().convertToDouble(), op});
  } else if (auto rotary = dyn_cast<RotaryOp>(op)) {
    facts.theta.insert({rotary.getTheta().convertToDouble(), op});
    facts.scaling.insert({RopeScaling::of(rotary.getScalingAttr()), op});
  } else if (auto gelu = dyn_cast<GeluOp>(op)) {
    addActivation(op, gelu.getForm() == GeluForm::Tanh ? "gelu_new" : "gelu");
  } else if (isa<SiluOp>(op)) {
    addActivation(op, "silu");
  } else if (isa<ReluOp>(op)) {
    addActivation(op, "relu");
  }
}

Tables Deriver::addLayer(LayerOp layer) {
  Type result = layer.getResultTypes().front();
  if (isActivation(result))
    facts.width.insert({cast<RankedTensorType>(result).getDimSize(1), layer});
  Tables tables;
  Said<double> dropouts;
  // Adapters are no linears of the family, so no facts are derived from them.
  llvm::DenseSet<Operation *> adapters;
  layer.getBody().walk([&](AddOp sum) {
    if (AdaptedLinear adapted = adaptedLinearOf(sum); adapted.base) {
      facts.loraScaling.insert(
          {adapted.scale.getFactor().convertToDouble(), adapted.scale});
      for (Operation *op :
           {adapted.down.getOperation(), adapted.up.getOperation(),
            adapted.scale.getOperation()})
        adapters.insert(op);
    }
  });
  layer.getBody().walk([&](Operation *op) {
    if (adapters.contains(op))
      return;
    addOp(op, tables);
    if (auto dropout = dyn_cast<DropoutOp>(op))
      dropouts.insert({dropout.getProbability().convertToDouble(), op});
  });
  if (dropouts.empty())
    dropouts.insert({0, layer});
  if (!tables.tokens.empty())
    facts.embeddingDropout.insert(dropouts.begin(), dropouts.end());
  if (tables.attentions > 0)
    facts.blockDropout.insert(dropouts.begin(), dropouts.end());
  return tables;
}

void Deriver::addParameters(CallOp call, const Tables &tables,
                            SymbolTableCollection &symbols) {
  auto parameterAt = [&](unsigned number) -> FlatSymbolRefAttr {
    // The ops allow a table as input, too.
    return number < call.getParameters().size()
               ? cast<FlatSymbolRefAttr>(call.getParameters()[number])
               : FlatSymbolRefAttr();
  };
  for (unsigned number : tables.tokens)
    if (FlatSymbolRefAttr name = parameterAt(number)) {
      tokenTables.insert({name.getValue(), call});
      if (auto parameter =
              symbols.lookupNearestSymbolFrom<ParameterOp>(call, name))
        facts.initializerRange.insert(
            {parameter.getNormal().convertToDouble(), parameter});
    }
  for (unsigned number : tables.heads)
    if (FlatSymbolRefAttr name = parameterAt(number))
      headTables.insert({name.getValue(), call});
}

std::optional<DerivedFacts> Deriver::run(ModelOp model,
                                         SymbolTableCollection &symbols) {
  int64_t depth = 0;
  for (CallOp call : model.getBody().getOps<CallOp>()) {
    auto layer = dyn_cast_or_null<LayerOp>(
        symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr()));
    if (!layer || call.getParameters().size() != layer.getNumParameters() ||
        call.getInputs().size() != layer.getInputArguments().size() ||
        !llvm::all_of(call.getParameters(), [&](Attribute name) {
          return symbols.lookupNearestSymbolFrom<ParameterOp>(
              call, cast<FlatSymbolRefAttr>(name));
        }))
      return std::nullopt;
    auto [entry, isNew] = layers.try_emplace(layer);
    if (isNew)
      entry->second = addLayer(layer);
    const Tables &tables = entry->second;
    depth += tables.attentions;
    addParameters(call, tables, symbols);
  }
  facts.depth.insert({depth, model});
  for (auto [name, call] : headTables)
    if (!tokenTables.empty())
      facts.tied.insert({tokenTables.count(name) > 0, call});
  return std::move(facts);
}

std::optional<DerivedFacts>
mlir::dyna::deriveFacts(ModelOp model, SymbolTableCollection &symbols) {
  return Deriver().run(model, symbols);
}
