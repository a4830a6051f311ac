//===- Lengths.h - Real length distributions and synthetic data -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lengths as they occur in practice, as quantile tables that ship with the
// project, and data sets of random tokens with such lengths. Benchmarks use
// them where no real data lie at hand.
//
//   synthetic:multitask     a mixture of 1,900 tasks, input and target together
//   synthetic:code          source files, cut at 32,768 tokens
//   synthetic:equal=256     256 each
//   synthetic:lengths=FILE  one length per line of FILE (of a line "a,b": a +
//   b)
//
// followed by ":documents=N", default 100,000. A length is the number of tokens
// a sample has in the model: the document is one token longer, as its last
// token is a target only. All tokens but the first are targets.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_LENGTHS_H
#define DYNA_RUNTIME_DATA_LENGTHS_H

#include "runtime/data/Dataset.h"

namespace dyna {

/// A length at `place` parts of 10,000 of the sorted lengths.
struct LengthQuantile {
  int32_t place;
  int32_t length;
};

struct LengthTable {
  const char *name;
  const LengthQuantile *quantiles; ///< from place 0 to place 10,000
  int count;
};

/// GPT-2 tokens of 100,000 multi-task samples; mean 227.
extern const LengthTable multitaskLengths;
/// GPT-2 tokens of 80,000 source files; mean 2,541.
extern const LengthTable codeLengths;

/// The length at `fraction` in [0,1]; between quantiles the logarithm of the
/// length is linear, which keeps the means within 1 % of those measured.
int64_t lengthAt(const LengthTable &table, double fraction);

/// Opens "synthetic:..." (see above).
StatusOr<DatasetPointer> openSynthetic(const std::string &name,
                                       const DataOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_LENGTHS_H
