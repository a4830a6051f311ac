//===- BatchReader.h - Reads mini-batches of samples in a seeded order ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Puts the samples of a data set into mini-batches, in an order given by a
// seed:
//
//     samples    all samples of the set in random order
//     documents  documents in random order, the samples of each in sequence
//     none       the order of the data
//
// Every epoch visits every sample once, in an order of its own. A `DataCursor`
// is the reader's whole state: a reader that is set to a cursor continues bit
// for bit like the reader that gave it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_BATCHREADER_H
#define DYNA_RUNTIME_DATA_BATCHREADER_H

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/data/SampleIndex.h"

#include <optional>

namespace dyna {

struct MiniBatch {
  std::vector<Sample> samples;
  int64_t tokens = 0;  ///< of all samples
  int64_t targets = 0; ///< tokens that are in the loss

  /// Returns the tokens of each sample; plans are made from these.
  std::vector<int64_t> lengths() const;
};

enum class Shuffle { Samples, Documents, None };

/// Parses "samples", "documents" or "none".
StatusOr<Shuffle> parseShuffle(std::string_view text);

/// A position between two samples, and a description of the data that it
/// belongs to.
struct DataCursor {
  int64_t epoch = 0;
  int64_t place = 0; ///< samples, or documents, of the epoch's order before
  int64_t piece = 0; ///< samples before in the document, if those are in order
  int64_t samples = 0; ///< samples read before, in all epochs
  Shuffle shuffle = Shuffle::Samples;
  int64_t documents = 0;    ///< of the data set
  int64_t epochSamples = 0; ///< samples of the data set
  uint64_t fingerprint = 0; ///< of the data set

  JsonObject toJson() const;
  static StatusOr<DataCursor> fromJson(const JsonValue &value);
};

bool operator==(const DataCursor &a, const DataCursor &b);

struct BatchOptions {
  Shuffle shuffle = Shuffle::Samples;
  uint64_t seed = 0;
  int64_t epochs = 0; ///< passes over the data; 0: endless
};

/// Reads mini-batches. Use it from one thread at a time.
class BatchReader {
public:
  BatchReader(SampleIndexPointer index, const BatchOptions &options);

  /// Returns the next samples: as many as fit into `tokens`, but at least one.
  /// Empty at the end of the last epoch.
  StatusOr<MiniBatch> next(int64_t tokens);

  /// Returns the position at which the next mini-batch starts.
  const DataCursor &cursor() const { return cursor_; }
  /// Continues at `cursor`; fails if it belongs to other data, or to another
  /// order.
  Status seek(const DataCursor &cursor);
  /// Continues a run whose data have changed: starts the epoch after the epoch
  /// of `cursor`.
  void seekNextEpoch(const DataCursor &cursor);

private:
  std::optional<int64_t> nextNumber();
  StatusOr<std::optional<Sample>> nextSample();
  void setCursor(const DataCursor &cursor);

  SampleIndexPointer index_;
  BatchOptions options_;
  DataCursor cursor_;             ///< after the samples given out
  DataCursor head_;               ///< after those read, `pending_` included
  std::optional<Sample> pending_; ///< read, did not fit
};

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_BATCHREADER_H
