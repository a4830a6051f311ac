//===- DerivedFacts.h - Derives the facts of a model from its layers ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The facts of a model, and the configuration that is saved beside its tensors,
// repeat properties of its ops and parameters. This file derives them from the
// ops and parameters, so that both can be compared.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FACTS_DERIVEDFACTS_H
#define DYNA_DIALECTS_DYNA_FACTS_DERIVEDFACTS_H

#include "dialects/dyna/facts/RopeScaling.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <string>

namespace mlir::dyna {

/// Values of one fact, each with the first op that has it. A map and not a hash
/// table: all keys must be allowed, and hash tables reserve some.
template <typename T> using Said = std::map<T, Operation *>;

struct DerivedFacts {
  /// Rows of tables.
  Said<int64_t> vocabulary, positions;
  Said<int64_t> width, heads, kvHeads, headDim;
  /// The widths that activation functions work on.
  Said<int64_t> feedForward;
  /// Number of attentions in all calls.
  Said<int64_t> depth;
  Said<double> layerNormEpsilon, rmsNormEpsilon, theta;
  Said<RopeScaling> scaling;
  /// Dropout probabilities in layers that look tokens up, and in layers with
  /// attention; 0 without dropout.
  Said<double> embeddingDropout, blockDropout;
  /// Standard deviation of the initial values of token tables.
  Said<double> initializerRange;
  /// Names of activation functions in configurations: see `activationForm`.
  Said<std::string> activation;
  /// True if products beside an attention, and all other products, have a bias.
  Said<bool> attentionBias, mlpBias;
  /// True if the head reads the table that tokens are looked up in.
  Said<bool> tied;
  /// The factors of adapters.
  Said<double> loraScaling;
  /// The names of ops in layers, without those of adapters (Adapters.h).
  Said<std::string> ops;
  /// An attention that looks ahead, or does not divide by the root of the head
  /// size.
  Operation *unusualAttention = nullptr;
};

/// Derives the facts of all layers that `model` calls. Returns nothing if a
/// call names no layer, or has the wrong number of parameters or inputs; CALL1
/// to CALL3 report these.
std::optional<DerivedFacts> deriveFacts(ModelOp model,
                                        SymbolTableCollection &symbols);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FACTS_DERIVEDFACTS_H
