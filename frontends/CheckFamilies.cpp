//===- CheckFamilies.cpp - Checks models against their families -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/facts/StoredTensors.h"
#include "dialects/dyna/text/JsonText.h"
#include "dialects/dyna/text/TextInput.h"
#include "frontends/FamilyConfig.h"
#include "frontends/FamilyWiring.h"
#include "frontends/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_CHECKFAMILIES
#include "frontends/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

class FamilyChecker {
public:
  FamilyChecker(ModelOp model, const DerivedFacts &layers,
                SymbolTableCollection &symbols)
      : model(model), facts(model.getFacts()), layers(layers), symbols(symbols),
        family(findFamily(facts.getFamily())) {}

  LogicalResult run() {
    // FAMILY1
    if (!family)
      return failure(failed(checkFamilyName()) || failed(checkCustomConfig()));
    // FAMILY2 and FAMILY3
    if (failed(checkFacts()) || failed(checkFamilyOps(model, *family, layers)))
      return failure();
    // FAMILY4
    if (std::optional<llvm::json::Object> config = readConfig())
      if (failed(checkFamilyConfig(model, *family, layers, *config)))
        return failure();
    // FAMILY5
    if (failed(checkFamilyWiring(model, *family, layers, symbols)))
      return failure();
    // FAMILY6
    return checkStoredNames();
  }

  /// Says of the model what it does not say itself of files.
  void complete();

private:
  LogicalResult checkFamilyName();
  LogicalResult checkFacts();
  LogicalResult checkFact(StringRef name, int64_t fact,
                          const Said<int64_t> &said, StringRef what);
  LogicalResult checkCustomConfig();
  LogicalResult checkSize(const llvm::json::Object &config, StringRef field,
                          StringRef name, int64_t fact, int64_t most);
  LogicalResult checkStoredNames();

  /// Reads the configuration; nothing if it is empty.
  std::optional<llvm::json::Object> readConfig() {
    if (facts.getConfig().empty())
      return std::nullopt;
    // The model's verifier has found a JSON object.
    return *llvm::cantFail(llvm::json::parse(facts.getConfig())).getAsObject();
  }
  bool isTied() const { return layers.tied.count(true) > 0; }

  ModelOp model;
  FactsAttr facts;
  const DerivedFacts &layers;
  SymbolTableCollection &symbols;
  const Family *family;
};

} // namespace

LogicalResult FamilyChecker::checkFamilyName() {
  SmallVector<StringRef> known = {"custom"};
  for (const Family *other : families())
    known.push_back(other->name);
  StringRef given = facts.getFamily();
  if (llvm::is_contained(known, given))
    return success();
  InFlightDiagnostic diagnostic = model.emitOpError()
                                  << "expects the fact 'family' to be "
                                  << listFamilies("", "custom")
                                  << ", but got \"" << given << "\"";
  StringRef nearest = nearestName(given.lower(), known, /*most=*/2);
  if (!nearest.empty())
    diagnostic << "; did you mean '" << nearest << "'";
  return diagnostic;
}

/// Checks a fact. In a family that other programs load all layers are equal,
/// and 0 means that they are not.
LogicalResult FamilyChecker::checkFact(StringRef name, int64_t fact,
                                       const Said<int64_t> &said,
                                       StringRef what) {
  if (fact != 0 || said.empty())
    return success();
  auto [number, op] = *said.begin();
  InFlightDiagnostic diagnostic =
      model.emitOpError() << "expects the fact '" << name << "' to be "
                          << number << ", as its layers say, but got " << fact;
  diagnostic.attachNote(op->getLoc()) << "see " << what;
  return diagnostic;
}

LogicalResult FamilyChecker::checkFacts() {
  return failure(
      failed(checkFact("width", facts.getWidth(), layers.width,
                       "the width of this layer's result")) ||
      failed(checkFact("heads", facts.getHeads(), layers.heads,
                       "the heads of this attention")) ||
      failed(checkFact("kv_heads", facts.getKvHeads(), layers.kvHeads,
                       "the key/value heads of this attention")) ||
      failed(checkFact("head_dim", facts.getHeadDim(), layers.headDim,
                       "the head size of this attention")) ||
      failed(checkFact("feed_forward", facts.getFeedForward(),
                       layers.feedForward,
                       "the width that this activation function works on")));
}

/// Returns the plain form of a name: people write "GPT-2" for gpt2.
static std::string plainName(StringRef name) {
  std::string plain;
  for (char c : name)
    if (llvm::isAlnum(c))
      plain.push_back(llvm::toLower(c));
  return plain;
}

/// Returns the rows of the smallest table.
static int64_t mostOf(const Said<int64_t> &tables, int64_t ifNone) {
  return tables.empty() ? ifNone : tables.begin()->first;
}

/// Checks a custom configuration, which must not use the fields of families
/// with other meanings.
LogicalResult FamilyChecker::checkCustomConfig() {
  std::optional<llvm::json::Object> config = readConfig();
  if (!config)
    return success();
  if (std::optional<StringRef> type = config->getString("model_type");
      type && findFamily(plainName(*type)))
    return model.emitOpError()
           << "expects 'model_type' in the fact 'config' not to be a family "
              "by whose names the tensors are not stored, as the fact "
              "'family' is "
           << facts.getFamily() << ", but got "
           << printExcerpt(llvm::json::Value(*type))
           << (findFamily(*type) ? "" : ", which people and programs take for ")
           << (findFamily(*type) ? "" : plainName(*type));
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

/// Fails if the config has another size than the fact. It may have a larger one, up to
/// `most`, because tables may be padded. A fact of 0 accepts any size.
LogicalResult FamilyChecker::checkSize(const llvm::json::Object &config,
                                       StringRef field, StringRef name,
                                       int64_t fact, int64_t most) {
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

LogicalResult FamilyChecker::checkStoredNames() {
  for (ParameterOp parameter : parametersOf(model, symbols)) {
    if (!parameter.getStored())
      continue;
    StoredAttr expected = storedAs(model.getContext(), family->format,
                                   parameter.getSymName(), isTied());
    if (!expected)
      expected = StoredAttr::get(model.getContext(), parameter.getSymName(), 0,
                                 1, false, {});
    if (*parameter.getStored() != expected)
      return parameter.emitOpError()
             << "expects to be stored as in files of " << family->name << ", "
             << expected << ", or to say nothing of it, but got "
             << *parameter.getStored();
  }
  return success();
}

void FamilyChecker::complete() {
  if (!family)
    return;
  model.setFactsAttr(withFormat(facts, family->format));
  for (ParameterOp parameter : parametersOf(model, symbols))
    if (!parameter.getStored())
      if (StoredAttr stored = storedAs(model.getContext(), family->format,
                                       parameter.getSymName(), isTied()))
        parameter.setStoredAttr(stored);
}

/// Checks all models, and gives each to `then` if it is what its family says.
static LogicalResult walkModels(ModuleOp module,
                                function_ref<void(FamilyChecker &)> then) {
  SymbolTableCollection symbols;
  auto result = module.walk([&](ModelOp model) {
    std::optional<DerivedFacts> layers = deriveFacts(model, symbols);
    if (!layers)
      return WalkResult::advance();
    FamilyChecker checker(model, *layers, symbols);
    if (failed(checker.run()))
      return WalkResult::interrupt();
    then(checker);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::dyna::checkFamilies(ModuleOp module) {
  return walkModels(module, [](FamilyChecker &) {});
}

namespace {
struct CheckFamilies : mlir::dyna::impl::CheckFamiliesBase<CheckFamilies> {
  void runOnOperation() override {
    if (failed(walkModels(getOperation(),
                          [](FamilyChecker &checker) { checker.complete(); })))
      signalPassFailure();
  }
};
} // namespace
