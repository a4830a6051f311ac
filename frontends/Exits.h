//===- Exits.h - Heads behind inner layers of a model -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `--exits "h.3:0.3; h.7:0.3"` puts a head behind the blocks h.3 and h.7. An exit is a
// layer of its own (`h.3.exit`): it passes its activation on and gives a loss, which is
// trained with its weight. It has a norm of its own. It scores targets with the table of
// the model's head, or with a table of its own (`h.3:0.3:own`).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_EXITS_H
#define DYNA_FRONTENDS_EXITS_H

#include "frontends/Lora.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace mlir::dyna {

struct Exit {
  std::string layer; ///< block before it
  double weight = 1; ///< of its loss
  bool hasOwnTable = false;
};

struct ExitOptions {
  SmallVector<Exit> exits; ///< as they were given; none: the model has no exits

  /// Returns the exit after this block, or null.
  const Exit *find(StringRef layer) const;
};

/// Parts that options add to the model of a configuration.
struct ModelParts {
  LoraOptions lora;
  ExitOptions exits;
};

/// Reads "LAYER:WEIGHT" or "LAYER:WEIGHT:own", several with `;` between them. Returns
/// nothing, and says why in `error`, for any other text.
std::optional<ExitOptions> parseExits(StringRef text, std::string &error);

/// Fails if an exit is not behind one of the blocks before the last. `blocks` are their
/// names, in order.
LogicalResult checkExits(Location location, const ExitOptions &options,
                         ArrayRef<std::string> blocks);

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_EXITS_H
