//===- SampleIndex.h - Numbers the samples of a data set --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Documents become samples of next-token prediction. All samples are numbered,
// and each can be read without those before it. Only sums are kept, eight bytes
// a document, for any number of samples.
//
// A document of n tokens has n-1 inputs t[0..n-2] and as many targets
// t[1..n-1]. Targets that are not in the loss are `ignoreTarget`: those in the
// input of a pair, and those of a conversation that are no answer. A document
// with more inputs than the limit is treated like this:
//
//     text   is split into the fewest samples, equally long but for one token,
//            each with positions from 0; or cut after the limit; or left out;
//            or an error
//     pair   stays one sample: an answer without its question teaches nothing.
//            Tokens are left out in the middle of the input, since the question
//            may stand at either end. If the target would leave the input less
//            than a quarter of the sample, the target's end is cut as well.
//            Left out, or an error, like text. A conversation is treated like a
//            pair; its input is what comes before the first answer.
//
// Documents without any target make no sample.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_SAMPLEINDEX_H
#define DYNA_RUNTIME_DATA_SAMPLEINDEX_H

#include "runtime/abi/Kernels.h"
#include "runtime/data/Dataset.h"

#include <string_view>

namespace dyna {

constexpr int32_t ignoreTarget = DYNA_NO_TARGET;

struct Sample {
  /// The number of samples that were read before it: the same in every run with
  /// this data and seed, whatever the mini-batches.
  int64_t id = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets; ///< as many as tokens
};

/// Treatment of documents that are too long.
enum class LongDocuments { Split, Truncate, Skip, Error };

/// Parses "split", "truncate", "skip" or "error".
StatusOr<LongDocuments> parseLongDocuments(std::string_view text);

struct SampleOptions {
  int64_t limit = 0; ///< tokens of the longest sample; 0: none
  LongDocuments longDocuments = LongDocuments::Split;
  /// The quantity that sets the limit, for people.
  std::string limitedBy = "positions";
};

/// Counts of documents by their treatment.
struct SampleStatistics {
  int64_t documents = 0;
  int64_t documentTokens = 0;
  int64_t samples = 0;
  int64_t tokens = 0;    ///< of all samples
  int64_t split = 0;     ///< documents that became several samples
  int64_t truncated = 0; ///< texts that were cut
  int64_t shortened = 0; ///< pairs that lost tokens
  int64_t targetCut = 0; ///< samples whose target lost its end
  int64_t skipped = 0;   ///< documents that were too long, and left out
  int64_t dropped = 0;   ///< documents with nothing to predict
  /// The longest document that was too long; -1: none was.
  int64_t longestDocument = -1;
  int64_t longestDocumentTokens = 0;
  /// counts[n] is the number of samples of n tokens, up to the longest.
  std::vector<int64_t> counts;

  /// Returns the number of documents that were too long.
  int64_t tooLong() const { return split + truncated + shortened + skipped; }
  int64_t longestSample() const {
    return static_cast<int64_t>(counts.size()) - 1;
  }
  double meanTokens() const {
    return static_cast<double>(tokens) / static_cast<double>(samples);
  }
  /// Returns the shortest length that at least `fraction` of the samples do not
  /// exceed.
  int64_t lengthAt(double fraction) const;
};

/// The samples of a data set. Several threads may use it at once.
class SampleIndex {
public:
  /// Fails if there is no sample, or if a document is too long and the options
  /// make that an error.
  static StatusOr<std::shared_ptr<const SampleIndex>>
  create(DatasetPointer dataset, const SampleOptions &options);

  const Dataset &dataset() const { return *dataset_; }
  int64_t documents() const { return statistics_.documents; }
  int64_t size() const { return statistics_.samples; }
  /// Returns the first sample of `document`; size() if `document` is
  /// documents().
  int64_t firstSample(int64_t document) const {
    return firstSample_[static_cast<size_t>(document)];
  }
  const SampleStatistics &statistics() const { return statistics_; }
  /// Returns the memory of the table, without that of the data set.
  static int64_t heldBytes(int64_t documents) { return 8 * (documents + 1); }

  /// Reads sample `number`, 0 <= number < size(), without id.
  StatusOr<Sample> read(int64_t number) const;

private:
  /// Tokens [begin, end) of a document without tokens [gap, gapEnd).
  struct Part {
    int64_t begin, gap, gapEnd, end;
    int64_t firstTarget; ///< in the part
    int64_t inputs() const { return end - begin - (gapEnd - gap) - 1; }
  };

  bool isTooLong(const DocumentShape &shape) const;
  bool isSkipped(const DocumentShape &shape) const;
  int64_t countSamples(const DocumentShape &shape) const;
  Part partOf(const DocumentShape &shape, int64_t piece) const;
  Part shortenPair(const DocumentShape &shape) const;
  Status add(int64_t document);
  Status ignoreRanges(int64_t document, const Part &part,
                      std::vector<int32_t> &targets) const;

  DatasetPointer dataset_;
  SampleOptions options_;
  std::vector<int64_t> firstSample_ = {0};
  SampleStatistics statistics_;
};

using SampleIndexPointer = std::shared_ptr<const SampleIndex>;

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_SAMPLEINDEX_H
