//===- FamilyConfig.cpp - Checks configurations against layers ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/FamilyConfig.h"
#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/text/JsonText.h"
#include "frontends/ConfigReader.h"
#include "frontends/FamilyFields.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::dyna;
using llvm::json::Object;
using Json = llvm::json::Value;

ArrayRef<std::pair<StringRef, StringRef>> mlir::dyna::activationForms() {
  // gelu_fast is the tanh form with its factors multiplied out.
  static const std::pair<StringRef, StringRef> forms[] = {
      {"gelu", "gelu"},
      {"gelu_new", "gelu_new"},
      {"gelu_pytorch_tanh", "gelu_new"},
      {"gelu_fast", "gelu_new"},
      {"silu", "silu"},
      {"swish", "silu"},
      {"relu", "relu"}};
  return forms;
}

StringRef mlir::dyna::activationForm(StringRef name) {
  for (auto [known, form] : activationForms())
    if (known == name)
      return form;
  return {};
}

Json fields::readActivation(const Object &config, StringRef name) {
  Json value = readPlain(config, name);
  if (std::optional<StringRef> text = value.getAsString())
    if (StringRef form = activationForm(*text); !form.empty())
      return Json(form.str());
  return value;
}

void fields::take(Activation &field, const Said<std::string> &said) {
  static const std::pair<StringRef, Activation> forms[] = {
      {"gelu", Activation::GeluErf},
      {"gelu_new", Activation::GeluTanh},
      {"silu", Activation::Silu},
      {"relu", Activation::Relu}};
  if (!said.empty())
    for (auto [name, form] : forms)
      if (said.begin()->first == name)
        field = form;
}

/// Returns why the layers are not of a family; empty if they are.
static std::string otherThan(const Family &family, const DerivedFacts &layers,
                             Operation *&where) {
  for (const auto &[name, op] : layers.ops) {
    if (llvm::is_contained(family.needed, name) ||
        llvm::is_contained(family.allowed, name))
      continue;
    where = op;
    return "its layers have '" + name + "', which " + family.name.str() +
           " has not";
  }
  for (StringRef name : family.needed)
    if (!layers.ops.count(name.str()))
      return "its layers have no '" + name.str() + "', which " +
             family.name.str() + " has";
  if ((where = layers.unusualAttention))
    return "an attention of its layers is not causal, or its 'scale' is not "
           "1 over the root of the head size";
  return family.findOther ? family.findOther(layers, where) : std::string();
}

LogicalResult mlir::dyna::checkFamilyOps(ModelOp model, const Family &given,
                                         const DerivedFacts &layers) {
  Operation *where = nullptr;
  std::string why = otherThan(given, layers, where);
  if (why.empty())
    return success();
  std::string expected;
  for (const Family *family : families()) {
    Operation *ignored = nullptr;
    if (family != &given && otherThan(*family, layers, ignored).empty())
      expected = family->name.str() + " or ";
  }
  InFlightDiagnostic diagnostic = model.emitOpError()
                                  << "expects the fact 'family' to be "
                                  << expected << "custom, as " << why
                                  << ", but got \"" << given.name << "\"";
  if (where)
    diagnostic.attachNote(where->getLoc()) << "see this op";
  return diagnostic;
}

LogicalResult mlir::dyna::checkFamilyConfig(ModelOp op, const Family &family,
                                            const DerivedFacts &layers,
                                            const Object &config) {
  FamilyMember model{op, op.getFacts(), layers};
  for (const FamilyField &field : family.fields) {
    Json given = field.read(config, field.name);
    bool isMissing = given.kind() == Json::Null;
    Json meant = isMissing ? field.ifMissing(model) : given;
    for (const auto &[value, where] : field.derive(model)) {
      if (meant == value)
        continue;
      InFlightDiagnostic diagnostic = op.emitOpError()
                                      << "expects '" << field.name
                                      << "' in the fact 'config' to be "
                                      << printExcerpt(value) << field.source
                                      << ", but got ";
      if (!isMissing)
        diagnostic << printExcerpt(given);
      else if (meant.kind() == Json::Null)
        diagnostic << "none";
      else
        diagnostic << "none, which means " << printExcerpt(meant);
      if (where != op)
        diagnostic.attachNote(where->getLoc()) << "see where it is said";
      return diagnostic;
    }
  }
  return success();
}
