//===- OutputFile.h - Writes files that must be complete --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A file is written front to back, with a checksum of its contents, and flushed
// to the disk before anyone relies on it.
//
// Every file that a user names goes through here (docs/decisions/0026):
//
//     existing entry           what happens
//     nothing                  the file appears when it is complete
//     a regular file           is replaced in one step by the complete file
//     a device, a pipe         is written into; a pipe needs its reader first
//     a symbolic link          an error, except for those of /dev and /proc
//     a folder, anything else  an error
//
// Until it is complete the file has no name at all. So a killed run leaves
// nothing behind, and two runs that write one file do not collide.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_OUTPUTFILE_H
#define DYNA_RUNTIME_BASE_FILE_OUTPUTFILE_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace dyna {

/// A 64-bit checksum that finds damage, not forgery. Four lanes process 8-byte
/// words in turn. Every step is a bijection of lane and word, so a change
/// within one word always changes the result.
class Checksum {
public:
  void update(const void *data, size_t size);
  uint64_t value() const;

  static uint64_t of(std::string_view bytes);

private:
  void addStripe(const unsigned char *at);

  static constexpr size_t stripeBytes = 32;
  uint64_t lanes_[4] = {1, 2, 3, 4};
  unsigned char rest_[stripeBytes] = {};
  size_t restSize_ = 0;
  uint64_t total_ = 0;
};

/// Kind of the entry at an output's name.
enum class OutputPlace { Free, RegularFile, Stream, Pipe };

/// Finds the kind of entry at `path`; fails if it may not be written (see
/// above).
StatusOr<OutputPlace> findOutputPlace(const std::string &path);

/// Opens the device or pipe at `path` for writing, with further `flags` of
/// open(2). Refuses a pipe without a reader, because none may ever come.
StatusOr<int> openStream(const std::string &path, int flags);

/// A file being written. `close` or the destructor closes it.
class OutputFile {
public:
  /// Creates or empties a file in a folder that belongs to the caller alone.
  static StatusOr<OutputFile> create(const std::string &path);
  /// Opens a file that becomes `path`, or writes into the device there (see
  /// above). Without `close` nothing happens to `path`.
  static StatusOr<OutputFile> replace(const std::string &path);
  /// Opens the standard output of this process.
  static StatusOr<OutputFile> standardOutput();
  /// Checks that `replace` would succeed, without changing anything.
  static Status checkReplace(const std::string &path);

  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  /// Reserves `bytes` on the disk, without writing them. If the file system
  /// cannot reserve, checks that they are free in addition to `others`, the
  /// bytes promised to other files.
  Status reserve(int64_t bytes, int64_t others = 0);
  Status write(const void *data, size_t size);
  Status write(std::string_view text) {
    return write(text.data(), text.size());
  }
  /// Flushes to the disk, gives the file its name and closes it. Only after
  /// that it is known to be complete.
  Status close();

  const std::string &path() const { return path_; }
  int64_t bytes() const { return bytes_; }
  uint64_t checksum() const { return checksum_.value(); }

private:
  /// Step that gives the bytes the name `path_`.
  enum class Naming {
    None,   ///< they have that name, or go into a stream
    Link,   ///< they have no name yet
    Rename, ///< they are `temporary_`
  };

  OutputFile(std::string path, int descriptor, Naming naming = Naming::None)
      : path_(std::move(path)), descriptor_(descriptor), naming_(naming) {}

  bool openTemporary(mode_t mode);
  Status giveName();

  std::string path_;
  std::string temporary_; ///< to be removed unless it is renamed
  int descriptor_ = -1;
  Naming naming_ = Naming::None;
  int64_t bytes_ = 0;
  Checksum checksum_;
};

/// Writes a whole file with `OutputFile::replace`.
Status replaceFile(const std::string &path, std::string_view text);

/// Writes a whole file as above, or standard output if `path` is "-".
Status writeOutput(const std::string &path, std::string_view text);

/// Renames a complete file to `path`, which must be no stream. For files that
/// another program has written into a folder of ours.
Status moveToOutput(const std::string &from, const std::string &path);

/// System calls that make files durable. Tests replace them to check that every
/// file is flushed before the rename that publishes it, because no test can cut
/// the power.
struct FileOperations {
  int (*flush)(int descriptor);
  int (*rename)(const char *from, const char *to);
};
FileOperations &fileOperations();

/// Flushes the entries of a directory, so that a rename in it is on the disk.
Status syncDirectory(const std::string &path);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_OUTPUTFILE_H
