//===- Exits.cpp - Heads behind inner layers of a model -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/Exits.h"
#include "mlir/IR/Diagnostics.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;

const Exit *ExitOptions::find(StringRef layer) const {
  const auto *found = llvm::find_if(
      exits, [&](const Exit &exit) { return exit.layer == layer; });
  return found == exits.end() ? nullptr : found;
}

/// Reads one exit; returns why it is none.
static std::string parseExit(StringRef text, Exit &exit) {
  SmallVector<StringRef> parts;
  text.split(parts, ':');
  exit.layer = parts[0].trim().str();
  if (exit.layer.empty())
    return "an exit names no layer";
  if (parts.size() < 2)
    return "the weight of '" + exit.layer + "' is missing";
  StringRef weight = parts[1].trim();
  if (weight.getAsDouble(exit.weight) || !std::isfinite(exit.weight) ||
      exit.weight < 0 || std::signbit(exit.weight))
    return "the weight '" + weight.str() + "' of '" + exit.layer +
           "' is no finite number that is not negative";
  exit.hasOwnTable = parts.size() == 3 && parts[2].trim() == "own";
  if (parts.size() > 2 && !exit.hasOwnTable)
    return "behind the weight of '" + exit.layer +
           "' only 'own' may stand, for a vocabulary table of its own";
  return {};
}

std::optional<ExitOptions> mlir::dyna::parseExits(StringRef text,
                                                  std::string &error) {
  ExitOptions options;
  SmallVector<StringRef> entries;
  text.split(entries, ';');
  for (StringRef entry : entries) {
    Exit exit;
    std::string why = parseExit(entry, exit);
    if (why.empty() && options.find(exit.layer))
      why = "'" + exit.layer + "' is there twice";
    if (!why.empty()) {
      error = "--exits expects layers and the weights of their losses, as in "
              "\"h.3:0.3; h.7:0.3\", but got \"" +
              text.str() + "\": " + why;
      return std::nullopt;
    }
    options.exits.push_back(exit);
  }
  return options;
}

LogicalResult mlir::dyna::checkExits(Location location,
                                     const ExitOptions &options,
                                     ArrayRef<std::string> blocks) {
  for (const Exit &exit : options.exits) {
    const auto *found = llvm::find(blocks, exit.layer);
    if (found != blocks.end() && found + 1 != blocks.end())
      continue;
    InFlightDiagnostic diagnostic = emitError(location);
    diagnostic << "--exits names the layer '" << exit.layer << "', ";
    if (found != blocks.end())
      diagnostic << "but behind the last block the model has its head";
    else
      diagnostic << "which is no block of this model";
    if (blocks.size() < 2)
      return diagnostic << "; a model of " << blocks.size()
                        << " block has no place for an exit";
    return diagnostic << "; exits may be behind " << blocks.front() << " to "
                      << blocks[blocks.size() - 2];
  }
  return success();
}
