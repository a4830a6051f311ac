//===- OrderSamples.h - Orders samples to cut micro-batches ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// DynaPipe (EuroSys'24), section 4. Neighbouring samples share a padded
// micro-batch, so they should be alike. Samples with one length are sorted.
// Pairs of lengths (encoder, decoder) are sorted by the first and then the
// second length. Or they are points in the plane, which a travelling salesman
// visits without returning.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ORDERSAMPLES_H
#define DYNA_RUNTIME_PLANNER_ORDERSAMPLES_H

#include <cstdint>
#include <vector>

namespace dyna {

/// Tokens of one sample.
struct SampleLength {
  /// All of them; of an encoder-decoder model the encoder's.
  int64_t tokens = 0;
  /// The decoder's of an encoder-decoder model.
  int64_t decoderTokens = 0;

  bool operator==(const SampleLength &other) const {
    return tokens == other.tokens && decoderTokens == other.decoderTokens;
  }
};

enum class SampleOrder {
  /// Ascending by both keys.
  Length,
  /// The salesman's shortest way: the sum of distances between neighbours.
  ShortestWay,
  /// The salesman's shortest longest step, then the next longest, and so on.
  ShortestStep,
};

/// Returns a permutation of the samples. Deterministic; equal samples keep
/// their order.
///
/// The distance of two samples is the sum of the differences of their lengths.
/// It is the padding that one sample adds to the other. (The paper names no
/// distance, and leaves the order to a solver.)
std::vector<int64_t> orderSamples(const std::vector<SampleLength> &lengths,
                                  SampleOrder order);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ORDERSAMPLES_H
