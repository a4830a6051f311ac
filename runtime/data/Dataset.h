//===- Dataset.h - Documents of token ids -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A data set is a numbered list of documents; a document is a list of token ids
// and a mark from which token on its tokens are targets of the loss. How long
// each is, is known when the set is open; its tokens are read in parts, when
// they are needed, so no document is too large. Opening looks at everything
// that could end a run hours later: each JSON line and each id of an indexed
// set is read once, on all cores.
//
// Files that change while they are open are noticed at the next read (size,
// time of writing and time of change), and what a set holds has a fingerprint, for
// runs that go on another day.
//
// Tokens of text
// --------------
// Text is read as bytes: token ids 0 to 255. With a vocabulary of 257 the token
// 256 ends every document; with one of 256 nothing does. Any other vocabulary
// is an error: its ids are not bytes. Indexed data are taken as they are, so
// their end token, if they have one, is the last token of each document.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_DATASET_H
#define DYNA_RUNTIME_DATA_DATASET_H

#include "runtime/base/Status.h"

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

/// What is known of a document without reading it.
struct DocumentShape {
  int64_t tokens = 0;
  int64_t firstTarget = 1; ///< as in Document
  /// Tokens behind the first target are no targets (`Dataset::readIgnored`).
  bool hasIgnored = false;
};

/// Tokens [begin, end) of a document.
struct DocumentRange {
  int64_t begin, end;
};

inline bool operator==(const DocumentRange &a, const DocumentRange &b) {
  return a.begin == b.begin && a.end == b.end;
}

/// All functions may be called from several threads at once. A document is
/// given by its index, 0 <= index < size().
class Dataset {
public:
  virtual ~Dataset() = default;

  /// The number of documents, at least one.
  virtual int64_t size() const = 0;
  virtual DocumentShape shape(int64_t index) const = 0;
  /// Appends the tokens [begin, end) of a document, 0 <= begin <= end <= its
  /// number of tokens. Ids are below the vocabulary. Fails if what was opened
  /// has changed.
  virtual Status readTokens(int64_t index, int64_t begin, int64_t end,
                            std::vector<int32_t> &tokens) const = 0;
  /// Appends the ranges behind a document's first target that are no targets, in
  /// order, as what a user says between two answers.
  virtual Status readIgnored(int64_t index,
                             std::vector<DocumentRange> &ranges) const {
    (void)index, (void)ranges;
    return Status::ok();
  }
  /// Where a document comes from, for messages: "corpus.jsonl:12".
  virtual std::string describe(int64_t index) const = 0;
  /// A hash of the documents' lengths, order and contents, the same on every
  /// machine. All contents are read for it, once.
  virtual uint64_t fingerprint() const = 0;
  /// Memory that the set takes: tables, and the largest copy that a read makes
  /// for a while. Mapped files are not part of it: their pages are the
  /// system's, which drops them when others need the memory.
  virtual int64_t heldBytes() const = 0;
  /// The token that ends every document, where that is known.
  virtual std::optional<int32_t> endToken() const { return std::nullopt; }
  /// What was given and is left out, for people.
  virtual std::vector<std::string> notes() const { return {}; }

  /// A whole document.
  StatusOr<Document> read(int64_t index) const;
};

using DatasetPointer = std::shared_ptr<const Dataset>;

/// Names of the members of a line of JSON, by the part that they make of a document
/// (LineFields.h).
struct LineFields {
  std::vector<std::string> text = {"text"}, input = {"input"},
                           target = {"target"}, messages = {"messages"};
  bool isGiven = false; ///< by the user, who means one form
};

struct DataOptions {
  /// Entries of the model's vocabulary; every token id is below it.
  int64_t vocabulary = 257;
  /// Of synthetic data.
  uint64_t seed = 0;
  /// Lines of JSON that may be left out as they cannot be read, of all files
  /// together.
  int64_t skipBadLines = 0;
  LineFields fields;
};

/// The documents of all `parts`, one part after the other.
DatasetPointer concatenate(std::vector<DatasetPointer> parts);

/// Documents that are an input followed by a target, with the loss on the
/// target. Both sets must have equally many documents.
StatusOr<DatasetPointer> pairDatasets(DatasetPointer inputs,
                                      DatasetPointer targets);

/// Sets `count` documents, chosen by `seed`, apart: {the others, those}. Fails
/// unless 0 < count < size.
StatusOr<std::pair<DatasetPointer, DatasetPointer>>
holdOut(const DatasetPointer &all, int64_t count, uint64_t seed);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_DATASET_H
