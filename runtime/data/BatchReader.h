//===- BatchReader.h - Samples and mini-batches -----------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns documents into samples of next-token prediction, and samples into
// mini-batches, in an order given by a seed.
//
// A document of n tokens has n-1 inputs t[0..n-2] and as many targets
// t[1..n-1]; targets that are not in the loss (the input part of an
// input/target pair) are `ignoreTarget`. A document longer than the model's
// positions becomes several samples, each with positions from 0, or is cut, or
// is an error. Samples without any target in the loss are left out: they would
// cost time and teach nothing.
//
// Every epoch visits every document once, in an order of its own. The reader's
// whole state is a `DataCursor`: a reader set to a cursor continues bit for bit
// as the one that gave it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_BATCHREADER_H
#define DYNA_RUNTIME_DATA_BATCHREADER_H

#include "runtime/data/Dataset.h"

#include <optional>
#include <string_view>

namespace dyna {

constexpr int32_t ignoreTarget = -1;

struct Sample {
  /// The number of samples that were read before it: the same in every run with
  /// this data and seed, whatever the mini-batches.
  int64_t id = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets; ///< as many as tokens
};

struct MiniBatch {
  std::vector<Sample> samples;
  int64_t tokens = 0;  ///< of all samples
  int64_t targets = 0; ///< those that are in the loss
};

/// What to do with documents longer than the model's positions.
enum class LongDocuments { Split, Truncate, Error };

/// From "split", "truncate" or "error".
StatusOr<LongDocuments> parseLongDocuments(std::string_view text);

/// A place between two samples.
struct DataCursor {
  int64_t epoch = 0;
  int64_t document = 0; ///< place in the order of the epoch
  int64_t offset = 0;   ///< tokens of that document already taken
  int64_t samples = 0;  ///< samples read before
  /// Documents of the data set, to notice another one; 0: not known.
  int64_t documents = 0;

  std::string toJson() const;
  static StatusOr<DataCursor> fromJson(std::string_view text);

  friend bool operator==(const DataCursor &a, const DataCursor &b) {
    return a.epoch == b.epoch && a.document == b.document &&
           a.offset == b.offset && a.samples == b.samples &&
           a.documents == b.documents;
  }
};

struct BatchOptions {
  int64_t positions = 0; ///< the model's; 0: unlimited
  LongDocuments longDocuments = LongDocuments::Split;
  bool shuffle = true;
  uint64_t seed = 0;
  int64_t epochs = 0; ///< how often to go through the data; 0: without end
};

/// Not to be used by two threads at once.
class BatchReader {
public:
  BatchReader(DatasetPointer dataset, const BatchOptions &options);

  /// The next samples, as many as fit `tokens`, but at least one. Empty at the
  /// end of the last epoch.
  StatusOr<MiniBatch> next(int64_t tokens);

  /// Where the next mini-batch starts.
  const DataCursor &cursor() const { return cursor_; }
  /// Continues at `cursor`; fails if it belongs to other data.
  Status seek(const DataCursor &cursor);

private:
  StatusOr<std::optional<Sample>> nextSample();
  Status loadDocument();
  void leaveDocument();
  std::optional<Sample> cutSample(int64_t begin, int64_t end);

  DatasetPointer dataset_;
  BatchOptions options_;
  DataCursor cursor_;                ///< after the samples given out
  DataCursor head_;                  ///< after those read, `pending_` included
  std::optional<Document> document_; ///< the one at head_
  std::optional<Sample> pending_;    ///< read, did not fit
};

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_BATCHREADER_H
