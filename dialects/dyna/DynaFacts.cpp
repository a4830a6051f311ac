//===- DynaFacts.cpp - A model's facts against its layers -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime admits token ids and sample lengths by the facts, and the code of
// the layers indexes tables with them.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/FamilyConfig.h"
#include "dialects/dyna/FamilyWiring.h"
#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/TextInput.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::dyna;

namespace {

class FactsVerifier {
public:
  FactsVerifier(ModelOp model, const DerivedFacts &layers,
                SymbolTableCollection &symbols)
      : model(model), facts(model.getFacts()), layers(layers),
        symbols(symbols) {}

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
    if (failed(checkFamilyName()) || failed(checkFamily(model, layers)))
      return failure();
    // MODEL11
    if (failed(checkConfig()))
      return failure();
    // MODEL12
    return isNamedFamily(facts.getFamily())
               ? checkFamilyWiring(model, layers, symbols)
               : success();
  }

private:
  LogicalResult checkFamilyName() {
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
    if (auto twice = findDuplicateKeys(text); !twice.empty())
      return refuse() << "'" << twice.front().name << "' twice";
    return isNamedFamily(facts.getFamily())
               ? checkFamilyConfig(model, layers, *config)
               : checkCustomConfig(*config);
  }

  /// As people write it, "GPT-2" is gpt2.
  static std::string plainName(StringRef name) {
    std::string plain;
    for (char c : name)
      if (llvm::isAlnum(c))
        plain.push_back(llvm::toLower(c));
    return plain;
  }

  /// It may say anything, but not what families mean by their fields.
  LogicalResult checkCustomConfig(const llvm::json::Object &config) {
    if (std::optional<StringRef> type = config.getString("model_type");
        type && isNamedFamily(plainName(*type)))
      return model.emitOpError()
             << "expects 'model_type' in the fact 'config' not to be a family "
                "by whose names the tensors are not stored, as the fact "
                "'family' is "
             << facts.getFamily() << ", but got "
             << printExcerpt(llvm::json::Value(*type))
             << (isNamedFamily(*type) ? ""
                                      : ", which people and programs take for ")
             << (isNamedFamily(*type) ? "" : plainName(*type));
    int64_t vocabulary = facts.getVocabulary(), width = facts.getWidth(),
            positions = facts.getPositions();
    return failure(
        failed(checkSize(config, "vocab_size", "vocabulary", vocabulary,
                         mostOf(layers.vocabulary, INT32_MAX))) ||
        failed(checkSize(config, "n_positions", "positions", positions,
                         mostOf(layers.positions, INT64_MAX))) ||
        failed(checkSize(config, "max_position_embeddings", "positions",
                         positions, mostOf(layers.positions, INT64_MAX))) ||
        failed(checkSize(config, "n_embd", "width", width, width)) ||
        failed(checkSize(config, "hidden_size", "width", width, width)));
  }

  /// The rows of the smallest table.
  static int64_t mostOf(const Said<int64_t> &tables, int64_t ifNone) {
    return tables.empty() ? ifNone : tables.begin()->first;
  }

  /// What the config says is the fact, or more as far as the tables go: they
  /// may be padded. A fact of 0 says nothing.
  LogicalResult checkSize(const llvm::json::Object &config, StringRef field,
                          StringRef name, int64_t fact, int64_t most) {
    const llvm::json::Value *value = config.get(field);
    if (!value || value->kind() == llvm::json::Value::Null || fact == 0)
      return success();
    std::optional<int64_t> size = readInteger(*value);
    if (size && *size >= fact && *size <= most)
      return success();
    InFlightDiagnostic diagnostic = model.emitOpError()
                                    << "expects '" << field
                                    << "' in the fact 'config' to be " << fact
                                    << ", the fact '" << name << "'";
    if (most > fact)
      diagnostic << ", or more as far as the tables go";
    return diagnostic << ", but got " << printExcerpt(*value);
  }

  /// The fact is at least 1 and at most the rows of each table.
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

  /// The fact is 0, or what all layers say. In a family whose models others
  /// load all are alike, and 0 says what is not so.
  LogicalResult checkAll(StringRef name, int64_t fact,
                         const Said<int64_t> &said, StringRef what) {
    bool maySkip = !isNamedFamily(facts.getFamily());
    if (fact == 0 && (maySkip || said.empty()))
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
          << ", as its layers say" << (maySkip ? ", or 0" : "") << ", but got "
          << fact;
      diagnostic.attachNote(op->getLoc()) << "see " << what;
      return diagnostic;
    }
    return success();
  }

  ModelOp model;
  FactsAttr facts;
  const DerivedFacts &layers;
  SymbolTableCollection &symbols;
};

} // namespace

LogicalResult ModelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // The calls have a name for what is wrong with them.
  std::optional<DerivedFacts> layers = deriveFacts(*this, symbols);
  return layers ? FactsVerifier(*this, *layers, symbols).run() : success();
}
