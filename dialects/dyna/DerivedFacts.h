//===- DerivedFacts.h - What a model's layers say of it -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The facts of a model, and the configuration that is saved beside its tensors,
// say again what its ops and parameters say. Here is what those say.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DERIVEDFACTS_H
#define DYNA_DIALECTS_DYNA_DERIVEDFACTS_H

#include "dialects/dyna/RopeScaling.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <string>

namespace mlir::dyna {

/// Values of one fact, each with the first op that says it. Any number may be
/// asked for: hash tables keep some for themselves.
template <typename T> using Said = std::map<T, Operation *>;

struct DerivedFacts {
  /// Rows of tables.
  Said<int64_t> vocabulary, positions;
  Said<int64_t> width, heads, kvHeads, headDim;
  /// The widths that activation functions work on.
  Said<int64_t> feedForward;
  /// Attentions of all calls.
  Said<int64_t> depth;
  Said<double> layerNormEpsilon, rmsNormEpsilon, theta;
  Said<RopeScaling> scaling;
  /// Probabilities in layers that look tokens up, and in those with attention; 0
  /// where there is no dropout.
  Said<double> embeddingDropout, blockDropout;
  /// Deviation with which the tables of tokens begin.
  Said<double> initializerRange;
  /// As the activations are called in configurations: see `activationForm`.
  Said<std::string> activation;
  /// Whether products beside an attention, and all others, have a bias.
  Said<bool> attentionBias, mlpBias;
  /// Whether the head reads the table that tokens are looked up in.
  Said<bool> tied;
  /// The names of ops in layers, without those of adapters (Adapters.h).
  Said<std::string> ops;
  /// One that looks ahead, or does not divide by the root of the head size.
  Operation *unusualAttention = nullptr;
};

/// Of all layers that `model` calls; nothing if a call names no layer, or gives
/// it not as many parameters and inputs as it takes, of which CALL1 to CALL3
/// speak.
std::optional<DerivedFacts> deriveFacts(ModelOp model,
                                        SymbolTableCollection &symbols);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_DERIVEDFACTS_H
