//===- Lora.cpp - Chooses the linears with low-rank adapters --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/Lora.h"
#include "mlir/IR/Diagnostics.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;

/// More would be no adapter of any model.
static constexpr int64_t maxRank = 1 << 16;

std::optional<LoraOptions> mlir::dyna::parseLora(StringRef text,
                                                 std::string &error) {
  LoraOptions options;
  auto refuse = [&](const std::string &why) {
    error =
        "--lora expects linears and a rank, as in \"q,v:16\", or with alpha "
        "behind it, as in \"q,v:16:32\", but got \"" +
        text.str() + "\": " + why;
    return std::nullopt;
  };
  SmallVector<StringRef> parts, names;
  text.split(parts, ':');
  if (parts.size() < 2 || parts.size() > 3)
    return refuse(parts.size() < 2 ? "the rank is missing"
                                   : "there are more than three parts");
  parts[0].split(names, ',');
  for (StringRef name : names) {
    name = name.trim();
    if (name.empty())
      return refuse("a linear has no name");
    if (llvm::is_contained(options.targets, name))
      return refuse("'" + name.str() + "' is there twice");
    options.targets.push_back(name.str());
  }
  StringRef rank = parts[1].trim();
  if (rank.getAsInteger(10, options.rank) || options.rank < 1 ||
      options.rank > maxRank)
    return refuse("the rank '" + rank.str() + "' is no number from 1 to " +
                  std::to_string(maxRank));
  if (parts.size() == 3 &&
      (parts[2].trim().getAsDouble(options.alpha) ||
       !std::isfinite(options.alpha) || !(options.alpha > 0)))
    return refuse("alpha '" + parts[2].trim().str() +
                  "' is no positive number");
  return options;
}

bool LoraTargets::add(const std::string &linear, int64_t out, int64_t in) {
  linears.push_back(linear);
  bool isTarget = false;
  for (const std::string &target : options.targets)
    if (target == linear || target == StringRef(linear).rsplit('.').second) {
      found.push_back(target);
      isTarget = true;
    }
  if (isTarget && tooSmall.empty() && options.rank >= std::min(out, in))
    tooSmall = "'" + linear + "', which is [" + std::to_string(out) + ", " +
               std::to_string(in) + "]";
  return isTarget;
}

LogicalResult LoraTargets::check(Location location) const {
  for (const std::string &target : options.targets) {
    if (llvm::is_contained(found, target))
      continue;
    InFlightDiagnostic diagnostic = emitError(location);
    diagnostic << "--lora names the linear '" << target
               << "', but the linears of this model are ";
    llvm::interleaveComma(linears, diagnostic);
    return diagnostic;
  }
  if (tooSmall.empty())
    return success();
  return emitError(location)
         << "--lora asks for adapters of rank " << options.rank
         << ", which are no smaller than the linear " << tooSmall
         << "; choose a smaller rank";
}
