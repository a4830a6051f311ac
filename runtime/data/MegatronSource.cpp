//===- MegatronSource.cpp - Reads Megatron-LM's indexed data sets ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads data sets of Megatron-LM. Layout of PREFIX.idx, little-endian, n
// sequences, d document boundaries:
//
//     0   9 bytes  "MMIDIDX" and two zeros
//     9   u64      version, 1
//     17  u8       type of the tokens in PREFIX.bin
//     18  u64      n
//     26  u64      d
//     34  i32[n]   tokens of each sequence
//         i64[n]   byte offset of each sequence in PREFIX.bin
//         i64[d]   document boundaries as sequence numbers, 0 to n
//         i8[n]    modes; multimodal sets only, known by the file's size alone
//
// The arrays start at an odd multiple of two bytes, so every load is a copy.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/ShareWork.h"
#include "runtime/data/Sources.h"

#include "runtime/abi/Random.h"

#include <algorithm>
#include <atomic>
#include <cstring>

using namespace dyna;

namespace {

constexpr size_t headerBytes = 34;
constexpr std::string_view magic("MMIDIDX\0\0", 9);

template <typename T> T load(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Bytes of a token of the format's type `code`; 0 for types that are no
/// tokens.
int bytesOfTokenType(int code) {
  switch (code) {
  case 1: // u8
  case 2: // i8
    return 1;
  case 3: // i16
  case 8: // u16
    return 2;
  case 4: // i32
    return 4;
  case 5: // i64
    return 8;
  default:
    return 0;
  }
}

/// Calls `body` with a value of the type that `code` stands for.
template <typename Body> auto withTokenType(int code, Body body) {
  switch (code) {
  case 1:
    return body(uint8_t());
  case 2:
    return body(int8_t());
  case 3:
    return body(int16_t());
  case 4:
    return body(int32_t());
  case 5:
    return body(int64_t());
  default:
    return body(uint16_t());
  }
}

/// Returns the first of `count` tokens that is no id of `vocabulary`; `count`
/// if all are.
template <typename Token>
int64_t firstForeign(std::string_view bytes, int64_t count,
                     int64_t vocabulary) {
  // Short blocks without a branch inside are vectorized, so memory is the
  // limit.
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < count; begin += block) {
    int64_t end = std::min(begin + block, count);
    Token low = 0, high = 0;
    for (int64_t i = begin; i < end; ++i) {
      Token token = load<Token>(bytes, i * sizeof(Token));
      low = std::min(low, token);
      high = std::max(high, token);
    }
    if (static_cast<int64_t>(low) >= 0 &&
        static_cast<int64_t>(high) < vocabulary)
      continue;
    for (int64_t i = begin; i < end; ++i) {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): i8 is a number here
      auto token = static_cast<int64_t>(load<Token>(bytes, i * sizeof(Token)));
      if (token < 0 || token >= vocabulary)
        return i;
    }
  }
  return count;
}

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() > end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

} // namespace

int32_t MegatronIndex::length(int64_t sequence) const {
  return load<int32_t>(bytes_, headerBytes + 4 * sequence);
}

int64_t MegatronIndex::offset(int64_t sequence) const {
  return load<int64_t>(bytes_, headerBytes + 4 * sequences_ + 8 * sequence);
}

int64_t MegatronIndex::firstSequence(int64_t document) const {
  return load<int64_t>(bytes_, headerBytes + 12 * sequences_ + 8 * document);
}

/// Parses the token type, n and d, and checks each against the size.
Status MegatronIndex::parseHeader() {
  auto failure = [](const std::string &what) {
    return Status::invalidArgument(what);
  };
  std::string size = "has " + std::to_string(bytes_.size()) + " bytes, ";
  if (bytes_.size() < headerBytes)
    return failure(size +
                   "less than the header's 34; it is truncated or not an "
                   "index");
  if (bytes_.substr(0, magic.size()) != magic)
    return failure("does not start with MMIDIDX; it is not an index");
  if (uint64_t version = load<uint64_t>(bytes_, 9); version != 1)
    return failure("expected version 1, but got " + std::to_string(version));
  tokenType_ = load<uint8_t>(bytes_, 17);
  tokenBytes_ = bytesOfTokenType(tokenType_);
  if (tokenBytes_ == 0)
    return failure("token type " + std::to_string(tokenType_) +
                   " is none of u8 (1), i8 (2), i16 (3), i32 (4), i64 (5) and "
                   "u16 (8)");
  uint64_t n = load<uint64_t>(bytes_, 18), d = load<uint64_t>(bytes_, 26);
  uint64_t rest = bytes_.size() - headerBytes;
  // Bounding n and d first keeps the sum below from overflowing.
  bool fits = n <= rest / 12 && d <= rest / 8;
  uint64_t expected = fits ? 12 * n + 8 * d : 0;
  if (!fits || (rest != expected && rest != expected + n))
    return failure(size + "which does not fit its " + std::to_string(n) +
                   " sequences and " + std::to_string(d) +
                   " document boundaries; it is truncated or damaged");
  sequences_ = static_cast<int64_t>(n);
  boundaries_ = static_cast<int64_t>(d);
  return Status::ok();
}

Status MegatronIndex::checkSequences(int64_t binBytes) const {
  int64_t end = 0;
  for (int64_t i = 0; i < sequences_; ++i) {
    auto failure = [&](const std::string &what) {
      return Status::invalidArgument("sequence " + std::to_string(i) + " " +
                                     what);
    };
    if (length(i) < 0)
      return failure("has the negative length " + std::to_string(length(i)));
    if (offset(i) != end)
      return failure("starts at byte " + std::to_string(offset(i)) +
                     ", but the sequences before it end at byte " +
                     std::to_string(end));
    // This cannot overflow, because `end` is checked against a file size each
    // time.
    end += int64_t(length(i)) * tokenBytes_;
    if (end > binBytes)
      return failure("ends at byte " + std::to_string(end) +
                     ", but the .bin file has " + std::to_string(binBytes) +
                     " bytes; it is truncated or belongs to another .idx");
  }
  return Status::ok();
}

Status MegatronIndex::checkDocuments() const {
  if (boundaries_ < 2)
    return Status::invalidArgument("holds no document");
  if (firstSequence(0) != 0 || firstSequence(documents()) != sequences_)
    return Status::invalidArgument("expected document boundaries from 0 to " +
                                   std::to_string(sequences_) + ", but got " +
                                   std::to_string(firstSequence(0)) + " to " +
                                   std::to_string(firstSequence(documents())));
  for (int64_t i = 1; i < boundaries_; ++i)
    if (firstSequence(i) < firstSequence(i - 1))
      return Status::invalidArgument("document boundary " + std::to_string(i) +
                                     " lies before the one before it");
  return Status::ok();
}

StatusOr<MegatronIndex> MegatronIndex::parse(std::string_view idx,
                                             int64_t binBytes,
                                             const std::string &name) {
  MegatronIndex index;
  index.bytes_ = idx;
  Status status = index.parseHeader();
  if (status.isOk())
    status = index.checkSequences(binBytes);
  if (status.isOk())
    status = index.checkDocuments();
  if (!status.isOk())
    return Status(status.code(), name + ": " + status.message());
  return index;
}

std::string dyna::megatronPrefix(const std::string &path) {
  if (endsWith(path, ".idx") || endsWith(path, ".bin"))
    return path.substr(0, path.size() - 4);
  if (!fileExists(path) &&
      (fileExists(path + ".idx") || fileExists(path + ".bin")))
    return path;
  return "";
}

StatusOr<DatasetPointer> MegatronDataset::open(const std::string &path,
                                               const DataOptions &options) {
  std::string prefix = megatronPrefix(path);
  if (prefix.empty())
    return Status::invalidArgument("cannot open " + path +
                                   ".idx: No such file or directory");
  DYNA_ASSIGN_OR_RETURN(MappedFile idx, MappedFile::open(prefix + ".idx"));
  DYNA_ASSIGN_OR_RETURN(MappedFile bin, MappedFile::open(prefix + ".bin"));
  StatusOr<MegatronIndex> index = MegatronIndex::parse(
      idx.bytes(), static_cast<int64_t>(bin.bytes().size()), idx.path());
  // Data that were read while the file changed may be wrong.
  DYNA_RETURN_IF_ERROR(idx.checkUnchanged());
  DYNA_RETURN_IF_ERROR(index.status());
  std::string_view bytes = bin.bytes();
  auto result = create(*index, std::move(bin), bytes, prefix, options);
  DYNA_RETURN_IF_ERROR(idx.checkUnchanged());
  DYNA_RETURN_IF_ERROR(result.status());
  (*result)->idx_ = idx.watched();
  return DatasetPointer(std::move(*result));
}

StatusOr<DatasetPointer>
MegatronDataset::fromIndex(const MegatronIndex &index, std::string_view bin,
                           const std::string &prefix,
                           const DataOptions &options) {
  DYNA_ASSIGN_OR_RETURN(auto result,
                        create(index, MappedFile(), bin, prefix, options));
  return DatasetPointer(std::move(result));
}

StatusOr<std::shared_ptr<MegatronDataset>>
MegatronDataset::create(const MegatronIndex &index, MappedFile file,
                        std::string_view bin, const std::string &prefix,
                        const DataOptions &options) {
  auto result = std::make_shared<MegatronDataset>();
  result->tokenType_ = index.tokenType();
  result->tokenBytes_ = index.tokenBytes();
  result->file_ = std::move(file);
  result->bin_ = bin;
  result->prefix_ = prefix;
  result->vocabulary_ = options.vocabulary;
  result->starts_.reserve(static_cast<size_t>(index.documents()) + 1);
  // Sequences are contiguous, so their lengths give their places.
  int64_t start = 0, sequence = 0;
  for (int64_t document = 0; document <= index.documents(); ++document) {
    for (; sequence < index.firstSequence(document); ++sequence)
      start += index.length(sequence);
    result->starts_.push_back(start);
  }
  Status checked = result->checkTokens();
  DYNA_RETURN_IF_ERROR(result->file_.checkUnchanged());
  DYNA_RETURN_IF_ERROR(checked);
  result->file_.dropPages();
  return result;
}

/// Looks at every id, and hashes what it passes. Threads take blocks in turn;
/// of several bad ids the first is reported.
Status MegatronDataset::checkTokens() {
  constexpr int64_t blockTokens = 256 << 10; // stays in the cache
  int64_t tokens = starts_.back(), width = tokenBytes_;
  int64_t blocks = (tokens + blockTokens - 1) / blockTokens;
  std::vector<uint64_t> hashes(static_cast<size_t>(blocks));
  std::atomic<int64_t> next{0}, foreign{tokens};
  shareWork(blocks, [&] {
    for (int64_t block; (block = next++) < blocks;) {
      int64_t begin = block * blockTokens;
      int64_t count = std::min(blockTokens, tokens - begin);
      std::string_view bytes = bin_.substr(begin * width, count * width);
      hashes[static_cast<size_t>(block)] = hashBytes(bytes, 0);
      int64_t at = withTokenType(tokenType_, [&](auto type) {
        return firstForeign<decltype(type)>(bytes, count, vocabulary_);
      });
      int64_t found = foreign;
      while (at < count && begin + at < found &&
             !foreign.compare_exchange_weak(found, begin + at)) {
      }
    }
  });
  if (foreign < tokens)
    return badToken(foreign);
  for (int64_t start : starts_)
    fingerprint_ = dyna_mix64(fingerprint_ ^ static_cast<uint64_t>(start));
  for (uint64_t hash : hashes)
    fingerprint_ = dyna_mix64(fingerprint_ ^ hash);
  return Status::ok();
}

/// `token` counts from the start of the data.
Status MegatronDataset::badToken(int64_t token) const {
  auto after = std::upper_bound(starts_.begin(), starts_.end(), token);
  int64_t document = after - starts_.begin() - 1;
  int64_t id = withTokenType(tokenType_, [&](auto type) {
    return static_cast<int64_t>(
        load<decltype(type)>(bin_, token * tokenBytes_));
  });
  return Status::invalidArgument(
      describe(document) + ": token " + std::to_string(token - *(after - 1)) +
      " has id " + std::to_string(id) + ", but the model's vocabulary has " +
      std::to_string(vocabulary_) +
      " entries; use data made with the model's tokenizer");
}

std::string MegatronDataset::describe(int64_t index) const {
  return prefix_ + ".bin, document " + std::to_string(index);
}

Status MegatronDataset::readTokens(int64_t index, int64_t begin, int64_t end,
                                   std::vector<int32_t> &tokens) const {
  DYNA_RETURN_IF_ERROR(idx_.checkUnchanged());
  DYNA_RETURN_IF_ERROR(file_.checkUnchanged());
  int64_t first = starts_[static_cast<size_t>(index)] + begin;
  withTokenType(tokenType_, [&](auto type) {
    using Token = decltype(type);
    for (int64_t i = first; i < first + end - begin; ++i)
      tokens.push_back(
          static_cast<int32_t>(load<Token>(bin_, i * sizeof(Token))));
  });
  return file_.checkUnchanged();
}
