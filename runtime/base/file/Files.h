//===- Files.h - Maps files and notices changes -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Readers of files share these read-only mappings.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_FILES_H
#define DYNA_RUNTIME_BASE_FILE_FILES_H

#include "runtime/base/file/FileFailure.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/file/LostPages.h"

#include <cstdint>
#include <string>
#include <string_view>

struct stat;

namespace dyna {

/// Facts that show if a file has changed. Times are nanoseconds since 1970. The
/// number of the file is left out, because some network file systems change the
/// number of a file in use. A different file has a different time of change.
struct FileFacts {
  int64_t bytes = 0;
  int64_t modified = 0; ///< set by its owner: `touch -r` restores it
  int64_t changed = 0;  ///< set by the system: also for rights and names
};

FileFacts factsOf(const struct stat &status);

/// Fails if `now` differs from `before`.
Status checkUnchanged(const std::string &path, const FileFacts &before,
                      const FileFacts &now);

/// Reads `size` bytes from `offset` of a file. Checks before and after that the
/// file has these `facts`.
Status readPart(const std::string &path, const FileFacts &facts, int64_t offset,
                char *to, int64_t size);

/// Returns a hash of bytes at the speed of memory, the same on every machine.
/// It does not protect against contents that are made to deceive.
uint64_t hashBytes(std::string_view bytes, uint64_t seed);

/// A file that was read and must not change.
struct WatchedFile {
  std::string path; ///< empty: none
  FileFacts facts;

  /// Fails if the file at the path has changed.
  Status checkUnchanged() const;
};

/// A regular file mapped read-only. The mapping ends with the object. It keeps
/// no descriptor open, so any number of files can be mapped. A page may be
/// lost, because the file was shortened or the disk has failed. Its bytes are
/// then zeros, so call one of the checks after reading.
class MappedFile {
public:
  static StatusOr<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  std::string_view bytes() const {
    return {static_cast<const char *>(data_), size_};
  }
  const std::string &path() const { return path_; }
  /// Fails if an earlier read found a lost page, or if the file at the path is
  /// shorter than it was when it was mapped. The file may have been removed.
  Status checkReadable() const;
  /// Fails if the file at the path has changed since it was mapped.
  Status checkUnchanged() const;
  /// Returns the file without its mapping.
  WatchedFile watched() const { return {path_, facts_}; }
  /// Releases the pages that were read; call it after reading all of them once.
  void dropPages() const;

private:
  std::string path_;
  void *data_ = nullptr;
  size_t size_ = 0;
  FileFacts facts_;
  LostPages lost_;
};

/// Returns true if `path` exists; false also if it cannot be checked.
bool fileExists(const std::string &path);
bool isDirectory(const std::string &path);

/// Joins `directory` and `name` with exactly one slash.
std::string joinPath(const std::string &directory, const std::string &name);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_FILES_H
