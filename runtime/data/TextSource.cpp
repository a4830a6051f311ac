//===- TextSource.cpp - Reads files as documents --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/Sources.h"

#include "runtime/abi/Random.h"
#include "runtime/base/error/Guard.h"
#include "runtime/base/thread/ShareWork.h"
#include "runtime/data/FileContent.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;

StatusOr<ByteTokens> ByteTokens::create(int64_t vocabulary,
                                        const std::string &source) {
  // In a larger vocabulary the ids of bytes are other tokens.
  if (vocabulary != endOfDocumentToken && vocabulary != endOfDocumentToken + 1)
    return Status::invalidArgument(
        source +
        " is text, which is read as bytes and needs a model with a vocabulary "
        "of 257 (or 256, without an end of documents), but the model's is " +
        std::to_string(vocabulary) +
        "; give token ids made with the model's tokenizer (Megatron-LM .idx "
        "and .bin), or compile a model with vocab_size 257");
  ByteTokens result;
  result.hasEnd_ = vocabulary > endOfDocumentToken;
  return result;
}

void ByteTokens::append(std::vector<int32_t> &tokens,
                        std::string_view text) const {
  size_t begin = tokens.size();
  tokens.resize(begin + text.size());
  std::transform(text.begin(), text.end(), tokens.begin() + begin,
                 [](char c) { return static_cast<unsigned char>(c); });
}

namespace {

struct DirectoryCloser {
  DIR *directory;
  ~DirectoryCloser() { ::closedir(directory); }
};

/// Adds what is directly in `root`/`relative` to `folder` and the directories
/// to `pending`. Links to files are followed, links to directories are not:
/// they could lead in circles.
Status listOne(const std::string &root, const std::string &relative,
               TextFolder &folder, std::vector<std::string> &pending) {
  std::string path = relative.empty() ? root : joinPath(root, relative);
  DIR *directory = ::opendir(path.c_str());
  if (!directory)
    return fileFailure("list", path, errno);
  DirectoryCloser closer{directory};
  // Only errno tells the end from a failure, so clear it before each call.
  while (dirent *entry = (errno = 0, ::readdir(directory))) {
    if (entry->d_name[0] == '.')
      continue;
    std::string name =
        relative.empty() ? entry->d_name : joinPath(relative, entry->d_name);
    struct stat facts;
    int descriptor = ::dirfd(directory);
    if (::fstatat(descriptor, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
      continue; // it was removed after it was listed
    if (S_ISDIR(facts.st_mode)) {
      pending.push_back(std::move(name));
      continue;
    }
    if (S_ISLNK(facts.st_mode))
      (void)::fstatat(descriptor, entry->d_name, &facts,
                      0); // a link may lead nowhere
    if (!S_ISREG(facts.st_mode)) {
      if (folder.leftOut++ == 0 || name < folder.firstLeftOut)
        folder.firstLeftOut = std::move(name);
    } else if (facts.st_size > 0) {
      folder.files.push_back({std::move(name), factsOf(facts)});
    }
  }
  return errno == 0 ? Status::ok() : fileFailure("list", path, errno);
}

} // namespace

StatusOr<TextFolder> dyna::listTextFolder(const std::string &path) {
  TextFolder folder;
  std::vector<std::string> pending = {""};
  while (!pending.empty()) {
    std::string next = std::move(pending.back());
    pending.pop_back();
    DYNA_RETURN_IF_ERROR(listOne(path, next, folder, pending));
  }
  std::sort(
      folder.files.begin(), folder.files.end(),
      [](const TextFile &a, const TextFile &b) { return a.name < b.name; });
  return folder;
}

StatusOr<DatasetPointer> TextDataset::open(const std::string &path,
                                           const DataOptions &options) {
  auto result = std::make_shared<TextDataset>();
  DYNA_ASSIGN_OR_RETURN(ByteTokens bytes,
                        ByteTokens::create(options.vocabulary, path));
  result->bytes_ = bytes;
  if (!isDirectory(path)) {
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0)
      return fileFailure("open", path, errno);
    if (!S_ISREG(facts.st_mode))
      return Status::invalidArgument("cannot read " + path +
                                     ": it is not a regular file");
    if (facts.st_size == 0)
      return Status::invalidArgument(path + " is empty; give a file or "
                                            "directory with text in it");
    result->listing_.files.push_back({path, factsOf(facts)});
  } else {
    result->root_ = path;
    DYNA_ASSIGN_OR_RETURN(TextFolder listing, listTextFolder(path));
    result->listing_ = std::move(listing);
    if (result->listing_.files.empty())
      return Status::invalidArgument(
          path +
          " holds no file with text in it (hidden and empty files, pipes and "
          "links to folders are left out); give a directory with documents");
  }
  DYNA_RETURN_IF_ERROR(result->takeFingerprint());
  return DatasetPointer(result);
}

std::string TextDataset::describe(int64_t index) const {
  const std::string &name = listing_.files[static_cast<size_t>(index)].name;
  return root_.empty() ? name : joinPath(root_, name);
}

DocumentShape TextDataset::shape(int64_t index) const {
  return {listing_.files[static_cast<size_t>(index)].facts.bytes +
              bytes_.endTokens(),
          1};
}

/// The pieces of all files, hashed by threads that take them in turn; of several
/// that cannot be read the first is reported.
class TextDataset::PieceHashes {
public:
  explicit PieceHashes(const TextDataset &dataset) : dataset_(dataset) {
    for (const TextFile &file : dataset.listing_.files)
      first_.push_back(first_.back() +
                       (file.facts.bytes + pieceBytes - 1) / pieceBytes);
    hashes_.resize(static_cast<size_t>(first_.back()));
    firstFailed_ = first_.back();
  }

  StatusOr<std::vector<uint64_t>> take() {
    shareWork(first_.back(), [this] { work(); });
    DYNA_RETURN_IF_ERROR(failure_);
    return std::move(hashes_);
  }

  int64_t foreignFiles() const { return foreignFiles_; }
  int64_t firstForeign() const { return firstForeign_; }
  const std::string &foreignName() const { return foreignName_; }

private:
  static constexpr int64_t pieceBytes = 4 << 20;

  void work() {
    std::string bytes;
    for (int64_t piece; (piece = next_++) < firstFailed_;) {
      Status status = guarded([&] { return look(piece, bytes); });
      std::lock_guard<std::mutex> lock(mutex_);
      if (!status.isOk() && piece < firstFailed_) {
        firstFailed_ = piece;
        failure_ = std::move(status);
      }
    }
  }
  Status look(int64_t piece, std::string &bytes) {
    const int64_t file = std::upper_bound(first_.begin(), first_.end(), piece) -
                         first_.begin() - 1;
    const FileFacts &facts =
        dataset_.listing_.files[static_cast<size_t>(file)].facts;
    const int64_t begin =
        (piece - first_[static_cast<size_t>(file)]) * pieceBytes;
    bytes.resize(
        static_cast<size_t>(std::min(pieceBytes, facts.bytes - begin)));
    DYNA_RETURN_IF_ERROR(readPart(dataset_.describe(file), facts, begin,
                                  bytes.data(),
                                  static_cast<int64_t>(bytes.size())));
    hashes_[static_cast<size_t>(piece)] = hashBytes(bytes, 0);
    if (begin == 0)
      note(file, contentOf(std::string_view(bytes).substr(0, contentBytes)));
    return Status::ok();
  }
  void note(int64_t file, const FileContent &content) {
    if (content.kind != FileContent::Kind::Foreign)
      return;
    std::lock_guard<std::mutex> lock(mutex_);
    ++foreignFiles_;
    if (file >= firstForeign_)
      return;
    firstForeign_ = file;
    foreignName_ = content.name;
  }

  const TextDataset &dataset_;
  std::vector<int64_t> first_ = {0}; ///< of each file, then of none
  std::vector<uint64_t> hashes_;
  std::atomic<int64_t> next_{0}, firstFailed_{0};
  std::mutex mutex_;
  Status failure_;
  int64_t foreignFiles_ = 0, firstForeign_ = INT64_MAX;
  std::string foreignName_;
};

/// Computes the fingerprint of all sizes and contents.
Status TextDataset::takeFingerprint() {
  PieceHashes pieces(*this);
  DYNA_ASSIGN_OR_RETURN(auto hashes, pieces.take());
  foreignFiles_ = pieces.foreignFiles();
  if (foreignFiles_ > 0)
    firstForeign_ =
        describe(pieces.firstForeign()) + ", " + pieces.foreignName();
  fingerprint_ = 0;
  for (const TextFile &file : listing_.files)
    fingerprint_ =
        dyna_mix64(fingerprint_ ^ static_cast<uint64_t>(file.facts.bytes));
  for (uint64_t hash : hashes)
    fingerprint_ = dyna_mix64(fingerprint_ ^ hash);
  return Status::ok();
}

std::vector<std::string> TextDataset::notes() const {
  std::vector<std::string> notes;
  if (listing_.leftOut > 0)
    notes.push_back(
        std::to_string(listing_.leftOut) +
        (listing_.leftOut == 1 ? " entry" : " entries") + " of " + root_ +
        " left out, being neither files nor folders: pipes, sockets, devices, "
        "links to folders or to nothing (" +
        (listing_.leftOut == 1 ? "" : "the first is ") + listing_.firstLeftOut +
        ")");
  if (foreignFiles_ > 0)
    notes.push_back(std::to_string(foreignFiles_) +
                    (foreignFiles_ == 1 ? " file" : " files") + " of " + root_ +
                    " read as bytes, but no text (" +
                    (foreignFiles_ == 1 ? "" : "the first is ") +
                    firstForeign_ + ")");
  return notes;
}

int64_t TextDataset::heldBytes() const {
  int64_t bytes = 0;
  for (const TextFile &file : listing_.files)
    bytes += static_cast<int64_t>(sizeof(TextFile) + file.name.capacity());
  return bytes;
}

Status TextDataset::readTokens(int64_t index, int64_t begin, int64_t end,
                               std::vector<int32_t> &tokens) const {
  const FileFacts &facts = listing_.files[static_cast<size_t>(index)].facts;
  int64_t bytes = std::max<int64_t>(0, std::min(end, facts.bytes) - begin);
  std::string text(static_cast<size_t>(bytes), '\0');
  DYNA_RETURN_IF_ERROR(
      readPart(describe(index), facts, begin, text.data(), bytes));
  bytes_.append(tokens, text);
  if (begin <= facts.bytes && end > facts.bytes)
    tokens.push_back(endOfDocumentToken);
  return Status::ok();
}
