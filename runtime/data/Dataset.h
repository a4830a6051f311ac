//===- Dataset.h - Documents of token ids -----------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A data set is a numbered list of documents; a document is a list of token ids
// and a mark from which token on its tokens are targets of the loss. Documents
// are read one by one when they are needed: opening a data set lists and maps
// files. Only JSON lines are read through when they are opened, each once and
// on all cores, since any of them may be malformed.
//
// Sources (`openDataset`)
// -----------------------
//   directory       every regular file below it, in byte order of the paths, is
//                   one document of byte tokens; hidden and empty ones are left
//                   out
//   NAME.jsonl      one JSON object per line: {"text"}, or {"input","target"}
//                   with the loss on the target only; other keys are ignored
//   PREFIX, .idx    Megatron-LM's indexed format, PREFIX.idx and PREFIX.bin;
//                   two of them whose names differ in "inputs"/"targets" only
//                   are a pair with the loss on the targets only
//   synthetic:...   random tokens with given lengths, see Lengths.h
//   any other file  one document of byte tokens
//
// Several paths are read one after the other; "A,B" means the same as two
// paths.
//
// Tokens of text
// --------------
// Text is read as bytes: token ids 0 to 255, and 256 ends every document if the
// vocabulary has at least 257 entries. A vocabulary below 256 is an error.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_DATASET_H
#define DYNA_RUNTIME_DATA_DATASET_H

#include "runtime/abi/Status.h"

#include <cstdint>
#include <memory>
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

/// All functions may be called from several threads at once.
class Dataset {
public:
  virtual ~Dataset() = default;

  /// The number of documents, at least one.
  virtual int64_t size() const = 0;
  /// Document `index`, 0 <= index < size(). Its ids are below the vocabulary.
  virtual StatusOr<Document> read(int64_t index) const = 0;
  /// Where document `index` comes from, for messages: "corpus.jsonl:12".
  virtual std::string describe(int64_t index) const = 0;
};

using DatasetPointer = std::shared_ptr<const Dataset>;

struct DataOptions {
  /// Entries of the model's vocabulary; every token id is below it.
  int64_t vocabulary = 257;
  /// Of synthetic data.
  uint64_t seed = 0;
};

/// Opens what `paths` name (see above).
StatusOr<DatasetPointer> openDataset(const std::vector<std::string> &paths,
                                     const DataOptions &options);

/// The documents of all `parts`, one part after the other.
DatasetPointer concatenate(std::vector<DatasetPointer> parts);

/// Sets `count` documents, chosen by `seed`, apart: {the others, those}. Fails
/// unless 0 < count < size.
StatusOr<std::pair<DatasetPointer, DatasetPointer>>
holdOut(const DatasetPointer &all, int64_t count, uint64_t seed);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_DATASET_H
