//===- Frontends.cpp - Builds models from configurations --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"

#include "frontends/FamilyConfig.h"

using namespace mlir;
using namespace mlir::dyna;

Activation mlir::dyna::readActivation(ConfigReader &reader, StringRef field,
                                      StringRef fallback) {
  std::string name = reader.string(field, fallback);
  StringRef form = activationForm(name);
  if (form == "gelu")
    return Activation::GeluErf;
  if (form == "gelu_new")
    return Activation::GeluTanh;
  if (form == "silu")
    return Activation::Silu;
  if (form == "relu")
    return Activation::Relu;
  InFlightDiagnostic diagnostic = reader.error(field);
  diagnostic << "expects one of ";
  llvm::interleaveComma(activationForms(), diagnostic, [&](const auto &known) {
    diagnostic << "'" << known.first << "'";
  });
  diagnostic << ", but got '" << name << "'";
  return Activation::Relu;
}

void mlir::dyna::refuseAttentionDropout(ConfigReader &reader, StringRef field,
                                        double fallback) {
  double probability = reader.number(field, fallback, 0, 1);
  if (probability == 0)
    return;
  reader.warning(field) << "dropout inside attention is not supported: "
                        << printNumber(probability)
                        << (reader.has(field) ? ""
                                              : ", the default of the family,")
                        << " is treated as 0; write 0 to accept that";
}

LogicalResult mlir::dyna::addLoraScaling(ConfigReader &reader,
                                         const LoraOptions &lora,
                                         std::string &config) {
  if (!lora.isAsked())
    return success();
  if (reader.has("lora_scaling"))
    return reader.error("lora_scaling")
           << "is written by --lora, but this configuration has it already; "
              "leave it out";
  std::string factor;
  llvm::raw_string_ostream(factor)
      << llvm::json::Value(lora.alpha / static_cast<double>(lora.rank));
  config.insert(config.find('{') + 1, "\"lora_scaling\":" + factor + ",");
  return success();
}
