//===- Sources.h - Defines the kinds of data sets ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One class per kind of source behind `openDataset`. Tests and fuzz targets use
// them directly, with bytes instead of files.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_SOURCES_H
#define DYNA_RUNTIME_DATA_SOURCES_H

#include "runtime/base/file/Files.h"
#include "runtime/data/Dataset.h"

#include <mutex>
#include <string_view>

namespace dyna {

struct LineParts;

/// Text as byte tokens for a vocabulary (see Dataset.h).
class ByteTokens {
public:
  static StatusOr<ByteTokens> create(int64_t vocabulary,
                                     const std::string &source);
  void append(std::vector<int32_t> &tokens, std::string_view text) const;
  /// Returns the tokens after the bytes of a document: one `endOfDocumentToken`
  /// or none.
  int64_t endTokens() const { return hasEnd_ ? 1 : 0; }
  std::optional<int32_t> endToken() const {
    return hasEnd_ ? std::optional<int32_t>(endOfDocumentToken) : std::nullopt;
  }

private:
  bool hasEnd_ = true;
};

struct TextFile {
  std::string name;
  FileFacts facts; ///< when it was listed
};

/// The files below a folder, as documents.
struct TextFolder {
  std::vector<TextFile> files; ///< names relative to the folder, sorted
  /// Number of entries that are not hidden and are neither read nor searched.
  /// These are pipes, sockets, devices, links to folders, and dangling links.
  int64_t leftOut = 0;
  std::string firstLeftOut; ///< the first of them in the order of names
};

StatusOr<TextFolder> listTextFolder(const std::string &path);

/// Files as documents. Only the part that a sample needs is read, so a file may
/// have any size.
class TextDataset : public Dataset {
public:
  /// `path` is a directory or one file.
  static StatusOr<DatasetPointer> open(const std::string &path,
                                       const DataOptions &options);

  int64_t size() const override {
    return static_cast<int64_t>(listing_.files.size());
  }
  DocumentShape shape(int64_t index) const override;
  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override;
  std::string describe(int64_t index) const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  int64_t heldBytes() const override;
  std::optional<int32_t> endToken() const override { return bytes_.endToken(); }
  std::vector<std::string> notes() const override;

private:
  class PieceHashes;
  Status takeFingerprint();

  ByteTokens bytes_;
  std::string root_;   ///< the folder; empty: a file was given
  TextFolder listing_; ///< or that one file
  /// Number of files that are no text (FileContent.h) and are read as bytes;
  /// the first of them with its form.
  int64_t foreignFiles_ = 0;
  std::string firstForeign_;
  uint64_t fingerprint_ = 0;
};

/// Lines of JSON as documents. Opening reads every line once, on all cores. So
/// a bad line is reported before any work is done, and lengths are known.
class JsonLinesDataset : public Dataset {
public:
  static StatusOr<DatasetPointer> open(const std::string &path,
                                       const DataOptions &options);
  /// Opens bytes that outlive the result; `name` stands for them in messages.
  static StatusOr<DatasetPointer> fromBytes(std::string_view bytes,
                                            const std::string &name,
                                            const DataOptions &options);

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  DocumentShape shape(int64_t index) const override {
    return lines_[static_cast<size_t>(index)].shape;
  }
  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override;
  Status readIgnored(int64_t index,
                     std::vector<DocumentRange> &ranges) const override;
  std::string describe(int64_t index) const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  int64_t heldBytes() const override;
  std::optional<int32_t> endToken() const override { return bytes_.endToken(); }
  std::vector<std::string> notes() const override;
  /// Returns the number of lines that were left out because they cannot be
  /// read.
  int64_t skipped() const { return skipped_; }

private:
  /// Bad lines of a part of the text.
  struct BadLines {
    int64_t count = 0;
    std::vector<std::string> named; ///< the first of them
    Status failure;                 ///< of the file
  };
  struct Line {
    size_t begin;
    int64_t number; ///< from 1
    DocumentShape shape;
  };
  using LinePointer = std::shared_ptr<const LineParts>;

  static StatusOr<DatasetPointer> create(MappedFile file,
                                         std::string_view bytes,
                                         const std::string &name,
                                         const DataOptions &options);
  void findLines(int64_t mostBad);
  void checkPart(size_t part, size_t parts, int64_t mostBad, BadLines &bad);
  Status checkLines(int64_t mostBad);
  Status leaveOut(const std::vector<BadLines> &parts, int64_t mostBad);
  std::string_view textOf(int64_t index) const;
  /// Parses a line. The caller checks if the file has changed.
  StatusOr<LinePointer> parse(int64_t index) const;
  /// Parses a line, and fails if the file has changed. The check of its path
  /// takes about 1 us.
  StatusOr<LinePointer> parseUnchanged(int64_t index) const;
  StatusOr<LinePointer> parseOnce(int64_t index) const;

  ByteTokens bytes_;
  MappedFile file_;
  std::string name_;
  LineFields fields_;
  std::string_view text_;
  std::vector<Line> lines_; ///< lines that are neither blank nor left out
  int64_t skipped_ = 0;
  std::vector<std::string> skippedLines_; ///< faults of the first ones
  uint64_t fingerprint_ = 0;
  /// The long line that was read last: its next sample should not need another
  /// pass over it.
  mutable std::mutex mutex_;
  mutable int64_t keptIndex_ = -1;
  mutable LinePointer kept_;
};

/// A checked Megatron-LM `.idx` file. Has no copy of the bytes, which must
/// outlive it.
class MegatronIndex {
public:
  /// Parses an index. `binBytes` is the size of the .bin file; `name` is the
  /// name of the .idx file.
  static StatusOr<MegatronIndex> parse(std::string_view idx, int64_t binBytes,
                                       const std::string &name);

  int tokenType() const { return tokenType_; } ///< the format's code
  int tokenBytes() const { return tokenBytes_; }
  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return boundaries_ - 1; }
  int32_t length(int64_t sequence) const; ///< in tokens
  int64_t offset(int64_t sequence) const; ///< in bytes of the .bin file
  /// Returns the first sequence of `document`; the number of sequences if it is
  /// documents().
  int64_t firstSequence(int64_t document) const;

private:
  Status parseHeader();
  Status checkSequences(int64_t binBytes) const;
  Status checkDocuments() const;

  std::string_view bytes_;
  int tokenType_ = 0;
  int tokenBytes_ = 0;
  int64_t sequences_ = 0;
  int64_t boundaries_ = 0;
};

/// Documents of an indexed data set. Opening reads every token id once, on all
/// cores, at the speed of memory. The .idx file is not read after that, but a
/// change of it is noticed.
class MegatronDataset : public Dataset {
public:
  /// `path` is the prefix or either file.
  static StatusOr<DatasetPointer> open(const std::string &path,
                                       const DataOptions &options);
  /// Opens token bytes that outlive the result.
  static StatusOr<DatasetPointer> fromIndex(const MegatronIndex &index,
                                            std::string_view bin,
                                            const std::string &prefix,
                                            const DataOptions &options);

  int64_t size() const override {
    return static_cast<int64_t>(starts_.size()) - 1;
  }
  DocumentShape shape(int64_t index) const override {
    size_t at = static_cast<size_t>(index);
    return {starts_[at + 1] - starts_[at], 1};
  }
  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override;
  std::string describe(int64_t index) const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  int64_t heldBytes() const override {
    return static_cast<int64_t>(starts_.capacity() * sizeof(starts_[0]));
  }

private:
  static StatusOr<std::shared_ptr<MegatronDataset>>
  create(const MegatronIndex &index, MappedFile file, std::string_view bin,
         const std::string &prefix, const DataOptions &options);
  Status checkTokens();
  Status badToken(int64_t token) const;

  int tokenType_ = 0;
  int tokenBytes_ = 0;
  MappedFile file_; ///< the .bin file
  WatchedFile idx_;
  std::string_view bin_;
  std::string prefix_;
  int64_t vocabulary_ = 0;
  /// Tokens of all documents before each one; the last entry is the total.
  std::vector<int64_t> starts_;
  uint64_t fingerprint_ = 0;
};

/// Returns the prefix if `path` names an indexed data set: PREFIX.idx,
/// PREFIX.bin, or PREFIX if one of them exists. Returns an empty string
/// otherwise.
std::string megatronPrefix(const std::string &path);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_SOURCES_H
