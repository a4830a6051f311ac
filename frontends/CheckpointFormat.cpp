//===- CheckpointFormat.cpp - Describes tensors and defaults of a family --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/CheckpointFormat.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::dyna;

static constexpr StringLiteral headStem = "lm_head";

/// The name of a tensor, and the rule that says so; null if none does.
namespace {
struct Place {
  std::string name;
  const StoredRule *rule = nullptr;
};
} // namespace

/// Returns the place by the rule for `stem`, or `otherwise`.
static Place applyRules(ArrayRef<StoredRule> rules, StringRef stem,
                        StringRef kind, const Twine &prefix,
                        const Twine &otherwise) {
  for (const StoredRule &rule : rules)
    if (stem == rule.ours)
      return {(prefix + rule.theirs + kind).str(), &rule};
  return {otherwise.str()};
}

static Place placeOf(const CheckpointFormat &format, StringRef parameter,
                     StringRef stem, StringRef kind) {
  StringRef rest = stem;
  if (!rest.consume_front(format.ourLayers))
    return applyRules(format.model, stem, kind, "", parameter);
  auto [number, inLayer] = rest.split('.');
  const bool isNumber = !number.empty() && llvm::all_of(number, [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!isNumber || number.size() == rest.size())
    return {parameter.str()};
  const std::string prefix = (format.theirLayers + number + ".").str();
  // Names without a rule remain after the number.
  const StringRef behind =
      parameter.drop_front(format.ourLayers.size() + number.size() + 1);
  return applyRules(format.layer, inLayer, kind, prefix, prefix + behind);
}

StoredAttr mlir::dyna::storedAs(MLIRContext *context,
                                const CheckpointFormat &format,
                                StringRef parameter, bool isTied) {
  StringRef stem = parameter, kind = ".weight";
  for (StringRef end : {".weight", ".bias"})
    if (stem.consume_back(end)) {
      kind = end;
      break;
    }
  auto [name, rule] = placeOf(format, parameter, stem, kind);
  if (!StringRef(name).starts_with(headStem))
    name.insert(0, format.prefix.str());
  const bool isCopied = isTied && rule == format.model.begin();
  if (name == parameter && !rule)
    return {};
  return StoredAttr::get(
      context, name, rule ? rule->part : 0, rule ? rule->parts : 1,
      rule && rule->isTransposed && kind == ".weight",
      isCopied ? StringAttr::get(context, headStem + ".weight") : StringAttr());
}

FactsAttr mlir::dyna::withFormat(FactsAttr facts,
                                 const CheckpointFormat &format) {
  Builder builder(facts.getContext());
  StringAttr prefix = facts.getPrefix();
  ArrayAttr buffers = facts.getBuffers();
  if (!prefix && !format.prefix.empty())
    prefix = builder.getStringAttr(format.prefix);
  if (!buffers && !format.buffers.empty())
    buffers = builder.getStrArrayAttr(
        SmallVector<StringRef>(format.buffers.begin(), format.buffers.end()));
  StringAttr defaults = facts.getDefaults();
  if (!defaults && !format.defaults.empty())
    defaults = builder.getStringAttr(format.defaults);
  return FactsAttr::get(facts.getContext(), facts.getFamily(),
                        facts.getVocabulary(), facts.getPositions(),
                        facts.getWidth(), facts.getHeads(), facts.getKvHeads(),
                        facts.getHeadDim(), facts.getFeedForward(),
                        facts.getConfig(), prefix, buffers, defaults);
}
