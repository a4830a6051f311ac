//===- OutputFile.h - Writing files that must be whole ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A file written front to back, with a checksum of what was written, and
// flushed to the disk before anybody relies on it.
//
// Every file that a user names goes through here (docs/decisions/0026):
//
//   what stands at the name    what happens
//   nothing                    the file appears when it is whole
//   a regular file             is replaced in one step when the new one is whole
//   a device, a pipe           is written into; a pipe needs its reader before
//   a symbolic link            an error, but for those of /dev and /proc
//   a folder, anything else    an error
//
// Until it is whole the file has no name at all: a run that is killed leaves
// nothing behind, and two that write one file do not meet.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_OUTPUTFILE_H
#define DYNA_RUNTIME_BASE_OUTPUTFILE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace dyna {

/// A 64-bit checksum that finds damage, not forgery. Four lanes take turns at
/// 8-byte words; every step is a bijection of lane and word, so that a change
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

/// What stands at the name of an output.
enum class OutputPlace { Free, RegularFile, Stream, Pipe };

/// Fails for what may not be written: see above.
StatusOr<OutputPlace> findOutputPlace(const std::string &path);

/// Opens the device or pipe at `path` for writing, with further `flags` of
/// open(2). A pipe that nobody reads is refused: nobody may ever come.
StatusOr<int> openStream(const std::string &path, int flags);

/// Closed by `close` or the destructor.
class OutputFile {
public:
  /// Created new or emptied, in a folder that is the caller's alone.
  static StatusOr<OutputFile> create(const std::string &path);
  /// Becomes `path`, or goes into the device there, as said above. Without
  /// `close` nothing happens to `path`.
  static StatusOr<OutputFile> replace(const std::string &path);
  /// Goes where this process prints.
  static StatusOr<OutputFile> standardOutput();
  /// Whether `replace` would succeed; touches nothing.
  static Status checkReplace(const std::string &path);

  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  /// Takes the room for `bytes` on the disk, of which nothing is written yet. On
  /// file systems that cannot, looks whether there is as much beside `others`, the
  /// bytes that other files were promised so.
  Status reserve(int64_t bytes, int64_t others = 0);
  Status write(const void *data, size_t size);
  Status write(std::string_view text) {
    return write(text.data(), text.size());
  }
  /// Flushes to the disk, gives the file its name and closes it; only then is
  /// it known to be whole.
  Status close();

  const std::string &path() const { return path_; }
  int64_t bytes() const { return bytes_; }
  uint64_t checksum() const { return checksum_.value(); }

private:
  /// How the bytes become the file `path_`.
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

/// Writes all of `path` by `OutputFile::replace`.
Status replaceFile(const std::string &path, std::string_view text);

/// Writes all of `path` so, or of standard output, for which "-" stands.
Status writeOutput(const std::string &path, std::string_view text);

/// Renames a whole file to `path`, where no stream may stand: what another
/// program has written into a folder of ours.
Status moveToOutput(const std::string &from, const std::string &path);

/// The calls of the operating system by which files come to last. Tests put
/// their own in their place to see that every file is flushed before the rename
/// that makes it count: no test can pull the plug.
struct FileOperations {
  int (*flush)(int descriptor);
  int (*rename)(const char *from, const char *to);
};
FileOperations &fileOperations();

/// Flushes the entries of a directory, so that a rename in it is on the disk.
Status syncDirectory(const std::string &path);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_OUTPUTFILE_H
