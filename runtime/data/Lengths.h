//===- Lengths.h - Makes synthetic data of real lengths ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The project includes quantile tables of real lengths, and makes data sets of
// random tokens with these lengths. Benchmarks use them if no real data are
// available.
//
//     synthetic:multitask     a mixture of 1,900 tasks, input and target joined
//     synthetic:code          source files, cut at 32,768 tokens
//     synthetic:equal=256     256 each
//     synthetic:lengths=FILE  one length per line of FILE (a line "a,b" means
//                             a + b)
//
// A suffix ":documents=N" sets the number of documents; the default is 100,000.
// A length is the number of tokens that a sample has in the model. The document
// is one token longer, because its last token is only a target. All tokens but
// the first are targets.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_LENGTHS_H
#define DYNA_RUNTIME_DATA_LENGTHS_H

#include "runtime/data/Dataset.h"

namespace dyna {

/// A length, and its place among the sorted lengths in parts of 10,000.
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

/// Returns the length at `fraction` in [0,1]. Between quantiles the logarithm
/// of the length is linear, which keeps the means within 1 % of the measured
/// ones.
int64_t lengthAt(const LengthTable &table, double fraction);

/// Opens "synthetic:..." (see above).
StatusOr<DatasetPointer> openSynthetic(const std::string &name,
                                       const DataOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_LENGTHS_H
