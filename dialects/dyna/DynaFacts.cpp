//===- DynaFacts.cpp - A model's facts against its layers -----------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime admits token ids and sample lengths by the facts, and the code of
// the layers indexes tables with them.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/TextInput.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// Numbers of layers, each with the first op that says it. Any number may be
/// asked for: hash tables keep some for themselves.
using Numbers = std::map<int64_t, Operation *>;

/// What the layers of a model say.
struct LayerFacts {
  Numbers vocabulary, positions, width, heads, kvHeads, headDim, features;

  void add(LayerOp layer) {
    Type result = layer.getResultTypes().front();
    if (isActivation(result))
      width.insert({cast<RankedTensorType>(result).getDimSize(1), layer});
    layer.getBody().walk([&](Operation *op) { add(op); });
  }

private:
  static int64_t rowsOf(Value table, ShardAttr shard) {
    return shard ? shard.getRows()
                 : cast<RankedTensorType>(table.getType()).getDimSize(0);
  }

  void add(Operation *op) {
    if (auto embedding = dyn_cast<EmbeddingOp>(op))
      vocabulary.insert(
          {rowsOf(embedding.getTable(), embedding.getShardAttr()), op});
    else if (auto head = dyn_cast<LinearCrossEntropyOp>(op))
      vocabulary.insert({rowsOf(head.getWeight(), head.getShardAttr()), op});
    else if (auto lookup = dyn_cast<PositionsOp>(op))
      positions.insert({rowsOf(lookup.getTable(), ShardAttr()), op});
    else if (auto linear = dyn_cast<LinearOp>(op))
      features.insert({rowsOf(linear.getWeight(), ShardAttr()), op});
    else if (auto attention = dyn_cast<AttentionOp>(op)) {
      heads.insert({attention.getHeads(), op});
      kvHeads.insert({attention.getKvHeads(), op});
      headDim.insert({attention.getHeadDim(), op});
    }
  }
};

class FactsVerifier {
public:
  FactsVerifier(ModelOp model, const LayerFacts &layers)
      : model(model), facts(model.getFacts()), layers(layers) {}

  LogicalResult run() {
    // MODEL7
    if (failed(
            checkLimit("vocabulary", facts.getVocabulary(), layers.vocabulary)))
      return failure();
    // MODEL8
    if (failed(checkLimit("positions", facts.getPositions(), layers.positions)))
      return failure();
    // MODEL9
    if (failed(checkAll("width", facts.getWidth(), layers.width,
                        "the width of this layer's result")) ||
        failed(checkAll("heads", facts.getHeads(), layers.heads,
                        "the heads of this attention")) ||
        failed(checkAll("kv_heads", facts.getKvHeads(), layers.kvHeads,
                        "the key/value heads of this attention")) ||
        failed(checkAll("head_dim", facts.getHeadDim(), layers.headDim,
                        "the head size of this attention")))
      return failure();
    int64_t inner = facts.getFeedForward();
    if (inner != 0 && !layers.features.count(inner))
      return model.emitOpError()
             << "expects the fact 'feed_forward' to be 0 or the outputs of "
                "some 'dyna.linear' of its layers, but got "
             << inner;
    // MODEL10
    return failure(failed(checkFamily()) || failed(checkConfig()));
  }

private:
  LogicalResult checkFamily() {
    static constexpr StringRef families[] = {"gpt2", "llama", "custom"};
    StringRef family = facts.getFamily();
    if (llvm::is_contained(families, family))
      return success();
    InFlightDiagnostic diagnostic =
        model.emitOpError()
        << "expects the fact 'family' to be gpt2, llama or custom, but got \""
        << family << "\"";
    StringRef nearest = nearestName(family.lower(), families, /*most=*/2);
    if (!nearest.empty())
      diagnostic << "; did you mean '" << nearest << "'";
    return diagnostic;
  }

  /// Saved models carry it; others read it in place of the facts.
  LogicalResult checkConfig() {
    StringRef text = facts.getConfig();
    if (text.empty())
      return success();
    auto refuse = [&]() {
      return model.emitOpError() << "expects the fact 'config' to be empty or "
                                    "a JSON object, but got ";
    };
    // JSON's parser calls itself for each bracket.
    if (findTextFault(text))
      return refuse() << "more than " << kMaxNesting << " open brackets";
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    if (!value)
      return refuse() << "an error: " << llvm::toString(value.takeError());
    const llvm::json::Object *config = value->getAsObject();
    if (!config)
      return refuse() << "another value";
    int64_t vocabulary = facts.getVocabulary(), width = facts.getWidth(),
            positions = facts.getPositions();
    return failure(
        failed(checkSize(*config, "vocab_size", "vocabulary", vocabulary,
                         mostOf(layers.vocabulary, INT32_MAX))) ||
        failed(checkSize(*config, "n_positions", "positions", positions,
                         mostOf(layers.positions, INT64_MAX))) ||
        failed(checkSize(*config, "max_position_embeddings", "positions",
                         positions, mostOf(layers.positions, INT64_MAX))) ||
        failed(checkSize(*config, "n_embd", "width", width, width)) ||
        failed(checkSize(*config, "hidden_size", "width", width, width)));
  }

  /// The rows of the smallest table.
  static int64_t mostOf(const Numbers &tables, int64_t ifNone) {
    return tables.empty() ? ifNone : tables.begin()->first;
  }

  /// What the config says is the fact, or more as far as the tables go: they
  /// may be padded. A fact of 0 says nothing.
  LogicalResult checkSize(const llvm::json::Object &config, StringRef field,
                          StringRef name, int64_t fact, int64_t most) {
    const llvm::json::Value *value = config.get(field);
    if (!value || value->kind() == llvm::json::Value::Null || fact == 0)
      return success();
    std::optional<int64_t> size = value->getAsInteger();
    if (size && *size >= fact && *size <= most)
      return success();
    std::string text;
    llvm::raw_string_ostream(text) << *value;
    InFlightDiagnostic diagnostic = model.emitOpError()
                                    << "expects '" << field
                                    << "' in the fact 'config' to be " << fact
                                    << ", the fact '" << name << "'";
    if (most > fact)
      diagnostic << ", or more as far as the tables go";
    return diagnostic << ", but got " << text;
  }

  /// The fact is at least 1 and at most the rows of each table.
  LogicalResult checkLimit(StringRef name, int64_t fact,
                           const Numbers &tables) {
    for (auto [rows, op] : tables) {
      if (fact > 0 && fact <= rows)
        continue;
      InFlightDiagnostic diagnostic =
          model.emitOpError()
          << "expects the fact '" << name << "' to be from 1 to " << rows
          << ", the rows of a table that its layers look "
             "it up in, but got "
          << fact;
      diagnostic.attachNote(op->getLoc()) << "see where it is looked up";
      return diagnostic;
    }
    return success();
  }

  /// The fact is 0, or what all layers say.
  LogicalResult checkAll(StringRef name, int64_t fact, const Numbers &said,
                         StringRef what) {
    if (fact == 0)
      return success();
    if (said.empty())
      return model.emitOpError()
             << "expects the fact '" << name
             << "' to be 0, as no layer has any, but got " << fact;
    for (auto [number, op] : said) {
      if (number == fact)
        continue;
      InFlightDiagnostic diagnostic =
          model.emitOpError()
          << "expects the fact '" << name << "' to be " << number
          << ", as its layers say, or 0, but got " << fact;
      diagnostic.attachNote(op->getLoc()) << "see " << what;
      return diagnostic;
    }
    return success();
  }

  ModelOp model;
  FactsAttr facts;
  const LayerFacts &layers;
};

} // namespace

LogicalResult ModelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  LayerFacts layers;
  llvm::SmallPtrSet<Operation *, 8> seen;
  for (CallOp call : getBody().getOps<CallOp>()) {
    // CALL1 has another name for a callee that is no layer.
    auto layer = dyn_cast_or_null<LayerOp>(
        symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr()));
    if (!layer)
      return success();
    if (seen.insert(layer).second)
      layers.add(layer);
  }
  return FactsVerifier(*this, layers).run();
}
