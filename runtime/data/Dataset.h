//===- Dataset.h - Reads documents of token ids -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A data set is a numbered list of documents. A document is a list of token
// ids, and the index of the first token that is a target of the loss.
//
// All lengths are known after opening. Tokens are read in parts, when they are
// needed, so no document is too large. Opening checks everything that could end
// a run hours later. It reads each JSON line and each id of an indexed set
// once, on all cores.
//
// The next read notices a file that has changed since opening (size, time of
// writing, time of change). A fingerprint of the contents lets a resumed run
// recognize its data.
//
// Tokens of text
// --------------
// Text is read as bytes: token ids 0 to 255. With a vocabulary of 257 the token
// 256 ends every document; with one of 256 nothing does. Any other vocabulary
// is an error, because its ids are not bytes. Indexed data are used unchanged.
// Their end token, if they have one, is the last token of each document.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_DATASET_H
#define DYNA_RUNTIME_DATA_DATASET_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// The token that ends a document of bytes.
constexpr int32_t endOfDocumentToken = 256;

struct Document {
  std::vector<int32_t> tokens;
  /// Tokens before this index are not targets. The token at index 0 never is:
  /// nothing predicts it.
  int64_t firstTarget = 1;
};

/// Properties of a document that are known without reading it.
struct DocumentShape {
  int64_t tokens = 0;
  int64_t firstTarget = 1; ///< as in Document
  /// True if some tokens after the first target are no targets
  /// (`Dataset::readIgnored`).
  bool hasIgnored = false;
};

/// Tokens [begin, end) of a document.
struct DocumentRange {
  int64_t begin, end;
};

inline bool operator==(const DocumentRange &a, const DocumentRange &b) {
  return a.begin == b.begin && a.end == b.end;
}

/// Documents by index, 0 <= index < size(). All functions may be called from
/// several threads at once.
class Dataset {
public:
  virtual ~Dataset() = default;

  /// Returns the number of documents, at least one.
  virtual int64_t size() const = 0;
  virtual DocumentShape shape(int64_t index) const = 0;
  /// Appends the tokens [begin, end) of a document, 0 <= begin <= end <= its
  /// number of tokens. Ids are below the vocabulary. Fails if the files have
  /// changed.
  virtual Status readTokens(int64_t index, int64_t begin, int64_t end,
                            std::vector<int32_t> &tokens) const = 0;
  /// Appends the ranges after a document's first target that are no targets, in
  /// order. An example is the user's text between two answers.
  virtual Status readIgnored(int64_t index,
                             std::vector<DocumentRange> &ranges) const {
    (void)index, (void)ranges;
    return Status::ok();
  }
  /// Returns the origin of a document, for messages: "corpus.jsonl:12".
  virtual std::string describe(int64_t index) const = 0;
  /// Returns a hash of the documents' lengths, order and contents, the same on
  /// every machine. It reads all contents, once.
  virtual uint64_t fingerprint() const = 0;
  /// Returns the memory of the set: tables, and the largest temporary copy of a
  /// read. Mapped files are not counted: their pages belong to the system,
  /// which drops them if memory is needed.
  virtual int64_t heldBytes() const = 0;
  /// Returns the token that ends every document, if it is known.
  virtual std::optional<int32_t> endToken() const { return std::nullopt; }
  /// Returns notes about inputs that were left out, for people.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Reads a whole document.
  StatusOr<Document> read(int64_t index) const;
};

using DatasetPointer = std::shared_ptr<const Dataset>;

/// Names of the members of a line of JSON, by the part of a document that they
/// become (LineFields.h).
struct LineFields {
  std::vector<std::string> text = {"text"}, input = {"input"},
                           target = {"target"}, messages = {"messages"};
  bool isGiven = false; ///< the user names it, and means one form
};

struct DataOptions {
  /// Entries of the model's vocabulary; every token id is below it.
  int64_t vocabulary = 257;
  /// Seed of synthetic data.
  uint64_t seed = 0;
  /// Limit of unreadable lines of JSON that may be left out, over all files.
  int64_t skipBadLines = 0;
  LineFields fields;
};

/// Returns the documents of all `parts`, one part after the other.
DatasetPointer concatenate(std::vector<DatasetPointer> parts);

/// Returns documents that are an input followed by a target, with the loss on
/// the target. Both sets must have the same number of documents.
StatusOr<DatasetPointer> pairDatasets(DatasetPointer inputs,
                                      DatasetPointer targets);

/// Splits off `count` documents, chosen by `seed`. Returns {the others, these}.
/// Fails unless 0 < count < size.
StatusOr<std::pair<DatasetPointer, DatasetPointer>>
holdOut(const DatasetPointer &all, int64_t count, uint64_t seed);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_DATASET_H
