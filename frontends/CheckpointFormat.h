//===- CheckpointFormat.h - Describes tensors and defaults of a family ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A family's table of the tensors that HuggingFace's files have for its parameters, and
// of what they assume. Front ends write by it what `dyna.parameter` and the facts of a
// model say of checkpoints.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_CHECKPOINTFORMAT_H
#define DYNA_FRONTENDS_CHECKPOINTFORMAT_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// Name and layout of a weight, and of its bias, in files.
struct StoredRule {
  StringLiteral ours; ///< without ".weight" or ".bias"
  StringLiteral theirs;
  bool isTransposed = false; ///< of the weight alone
  int64_t part = 0, parts = 1;
};

struct CheckpointFormat {
  StringLiteral ourLayers, theirLayers; ///< before a layer's number
  ArrayRef<StoredRule> layer;           ///< behind the number
  /// Rules of parameters outside layers. The first one is the table of tokens, which files
  /// of tied models may repeat as the head.
  ArrayRef<StoredRule> model;
  /// Stands before all names but the head's. Files that are read may lack it.
  StringLiteral prefix;
  ArrayRef<StringLiteral> buffers; ///< ends of names that are no parameters
  /// JSON of the fields that programs assume if a saved configuration lacks them:
  /// `vocab_size`, tokens and `rope_theta`.
  StringLiteral defaults;
};

/// Returns where files have the parameter of this name; null if the model need not say
/// it. `isTied`: the head reads the table of tokens.
StoredAttr storedAs(MLIRContext *context, const CheckpointFormat &format,
                    StringRef parameter, bool isTied);

/// Returns the facts with what the format says of files, where they say nothing.
FactsAttr withFormat(FactsAttr facts, const CheckpointFormat &format);

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_CHECKPOINTFORMAT_H
