//===- OutputFile.h - Writing files that must be whole ----------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file written front to back, with a checksum of what was written, and
// flushed to the disk before anybody relies on it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_OUTPUTFILE_H
#define DYNA_RUNTIME_CHECKPOINT_OUTPUTFILE_H

#include "runtime/abi/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

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

/// Created new or emptied; closed by `close` or the destructor.
class OutputFile {
public:
  static StatusOr<OutputFile> create(const std::string &path);

  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  Status write(const void *data, size_t size);
  Status write(std::string_view text) {
    return write(text.data(), text.size());
  }
  /// Flushes to the disk and closes; only then is the file known to be whole.
  Status close();

  const std::string &path() const { return path_; }
  int64_t bytes() const { return bytes_; }
  uint64_t checksum() const { return checksum_.value(); }

private:
  OutputFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  Checksum checksum_;
};

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

#endif // DYNA_RUNTIME_CHECKPOINT_OUTPUTFILE_H
