//===- Files.h - Mapped files and file errors -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What all readers of files share: read-only mappings.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILES_H
#define DYNA_RUNTIME_BASE_FILES_H

#include "runtime/base/FileFailure.h"
#include "runtime/base/InputFile.h"
#include "runtime/base/LostPages.h"

#include <cstdint>
#include <string>
#include <string_view>

struct stat;

namespace dyna {

/// What tells that somebody has changed a file. Times are nanoseconds since
/// 1970. The number of a file is left out: some network file systems number one
/// file anew while it is in use, and another file has another time of change.
struct FileFacts {
  int64_t bytes = 0;
  int64_t modified = 0; ///< as its owner says: `touch -r` puts it back
  int64_t changed = 0;  ///< as the system says: also of rights and names
};

FileFacts factsOf(const struct stat &status);

/// Fails if `now` is not `before`.
Status checkUnchanged(const std::string &path, const FileFacts &before,
                      const FileFacts &now);

/// Reads `size` bytes from `offset` of a file that is as `facts` say, before
/// and after.
Status readPart(const std::string &path, const FileFacts &facts, int64_t offset,
                char *to, int64_t size);

/// A hash of bytes at the speed of memory, the same on every machine. Not for
/// contents that are chosen to deceive.
uint64_t hashBytes(std::string_view bytes, uint64_t seed);

/// A file that was read and must stay as it was.
struct WatchedFile {
  std::string path; ///< empty: none
  FileFacts facts;

  /// Fails if what stands at the path now is not as it was.
  Status checkUnchanged() const;
};

/// A regular file mapped read-only. The mapping ends with the object, and holds no
/// descriptor, so that any number of files can be mapped. A page may be lost, because
/// somebody has shortened the file or the disk has failed. Its bytes are zeros then:
/// whoever reads calls one of the checks behind it.
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
  /// Fails if a page that was read could not be, or if the file at the path is shorter
  /// than it was when it was mapped. It may have been removed.
  Status checkReadable() const;
  /// Fails if the file at the path is not as it was when it was mapped.
  Status checkUnchanged() const;
  /// The file without its mapping.
  WatchedFile watched() const { return {path_, facts_}; }
  /// Gives the pages back that were read, after reading all of it once.
  void dropPages() const;

private:
  std::string path_;
  void *data_ = nullptr;
  size_t size_ = 0;
  FileFacts facts_;
  LostPages lost_;
};

/// Whether `path` names something; false also where it cannot be looked at.
bool fileExists(const std::string &path);
bool isDirectory(const std::string &path);

/// `directory` and `name` with exactly one slash between them.
std::string joinPath(const std::string &directory, const std::string &name);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILES_H
