//===- TextSource.cpp - Files as documents --------------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Sources.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;

StatusOr<ByteTokens> ByteTokens::create(int64_t vocabulary,
                                        const std::string &source) {
  if (vocabulary < 256)
    return Status::invalidArgument(
        source +
        " is text, which is read as bytes and needs a vocabulary of at "
        "least 257 (256 without end-of-document), but the model's is " +
        std::to_string(vocabulary));
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

/// Adds the files directly in `root`/`relative` to `files` and the directories
/// to `pending`. Links to files are followed, links to directories are not:
/// they could lead in circles.
Status listOne(const std::string &root, const std::string &relative,
               std::vector<std::string> &files,
               std::vector<std::string> &pending) {
  std::string path = relative.empty() ? root : joinPath(root, relative);
  DIR *directory = ::opendir(path.c_str());
  if (!directory)
    return fileFailure("list", path, errno);
  DirectoryCloser closer{directory};
  // Only errno tells the end from a failure, and what the loop does sets it
  // too.
  while (dirent *entry = (errno = 0, ::readdir(directory))) {
    if (entry->d_name[0] == '.')
      continue;
    std::string name =
        relative.empty() ? entry->d_name : joinPath(relative, entry->d_name);
    struct stat facts;
    int descriptor = ::dirfd(directory);
    if (::fstatat(descriptor, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
      continue; // gone since it was listed
    if (S_ISDIR(facts.st_mode)) {
      pending.push_back(std::move(name));
      continue;
    }
    if (S_ISLNK(facts.st_mode) &&
        ::fstatat(descriptor, entry->d_name, &facts, 0) != 0)
      continue; // a link to nothing
    if (S_ISREG(facts.st_mode) && facts.st_size > 0)
      files.push_back(std::move(name));
  }
  return errno == 0 ? Status::ok() : fileFailure("list", path, errno);
}

} // namespace

StatusOr<DatasetPointer> TextDataset::open(const std::string &path,
                                           const DataOptions &options) {
  auto result = std::make_shared<TextDataset>();
  StatusOr<ByteTokens> bytes = ByteTokens::create(options.vocabulary, path);
  if (!bytes.isOk())
    return bytes.status();
  result->bytes_ = *bytes;
  if (!isDirectory(path)) {
    StatusOr<MappedFile> file = MappedFile::open(path);
    if (!file.isOk())
      return file.status();
    if (file->bytes().empty())
      return Status::invalidArgument(path + " is empty; give a file or "
                                            "directory with text in it");
    result->files_.push_back(path);
    return DatasetPointer(result);
  }
  result->root_ = path;
  std::vector<std::string> pending = {""};
  while (!pending.empty()) {
    std::string next = std::move(pending.back());
    pending.pop_back();
    DYNA_RETURN_IF_ERROR(listOne(path, next, result->files_, pending));
  }
  if (result->files_.empty())
    return Status::invalidArgument(
        path +
        " holds no file with text in it (hidden and empty files are left "
        "out); give a directory with documents");
  std::sort(result->files_.begin(), result->files_.end());
  return DatasetPointer(result);
}

std::string TextDataset::describe(int64_t index) const {
  return root_.empty() ? files_[index] : joinPath(root_, files_[index]);
}

StatusOr<Document> TextDataset::read(int64_t index) const {
  StatusOr<std::string> text = readFile(describe(index));
  if (!text.isOk())
    return text.status();
  Document document;
  document.tokens.reserve(text->size() + 1);
  bytes_.append(document.tokens, *text);
  bytes_.end(document.tokens);
  return document;
}
