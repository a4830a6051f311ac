//===- DynaFacts.cpp - Checks a model's facts against its layers ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime admits token ids and sample lengths by the facts, and the code of
// the layers indexes tables with them.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/facts/DerivedFacts.h"
#include "dialects/dyna/facts/StoredTensors.h"
#include "dialects/dyna/text/JsonText.h"
#include "dialects/dyna/text/TextInput.h"

using namespace mlir;
using namespace mlir::dyna;

namespace {

class FactsVerifier {
public:
  FactsVerifier(ModelOp model, const DerivedFacts &layers)
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
                        "the head size of this attention")) ||
        failed(checkAll("feed_forward", facts.getFeedForward(),
                        layers.feedForward,
                        "the width that this activation function works on")))
      return failure();
    // MODEL10
    StringAttr defaults = facts.getDefaults();
    return failure(
        failed(checkJson("config", facts.getConfig())) ||
        failed(checkJson("defaults", defaults ? defaults.getValue() : "")));
  }

private:
  /// Checks JSON. Saved models carry the configuration, and other programs read
  /// it in place of the facts.
  LogicalResult checkJson(StringRef name, StringRef text) {
    if (text.empty())
      return success();
    auto refuse = [&]() {
      return model.emitOpError() << "expects the fact '" << name
                                 << "' to be empty or a JSON object, but got ";
    };
    // LLVM's JSON parser recurses for each bracket, so limit the depth first.
    if (findTextFault(text))
      return refuse() << "more than " << kMaxNesting << " open brackets";
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    if (!value)
      return refuse() << "an error: " << llvm::toString(value.takeError());
    if (!value->getAsObject())
      return refuse() << "another value";
    if (auto twice = findDuplicateKeys(text); !twice.empty())
      return refuse() << "'" << twice.front().name << "' twice";
    return success();
  }

  /// Checks that the fact is at least 1 and at most the rows of each table.
  LogicalResult checkLimit(StringRef name, int64_t fact,
                           const Said<int64_t> &tables) {
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

  /// Checks that the fact is 0, or the value of all layers.
  LogicalResult checkAll(StringRef name, int64_t fact,
                         const Said<int64_t> &said, StringRef what) {
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
  const DerivedFacts &layers;
};

} // namespace

LogicalResult ModelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // The verifier of calls reports calls that are wrong.
  std::optional<DerivedFacts> layers = deriveFacts(*this, symbols);
  if (!layers)
    return success();
  return failure(failed(FactsVerifier(*this, *layers).run()) ||
                 failed(checkStored(*this, symbols)));
}
