//===- InputFile.h - Opens and reads regular files --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_INPUTFILE_H
#define DYNA_RUNTIME_BASE_FILE_INPUTFILE_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <utility>

struct stat;

namespace dyna {

/// An open file, which is closed once.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor &&other) noexcept : value_(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

private:
  int value_ = -1;
};

/// Opens a regular file for reading. Refuses anything else without waiting: a
/// pipe may never have a writer, and a device may have no end.
StatusOr<Descriptor> openRegularFile(const std::string &path);

/// Gets the facts of an open file; fails if it is no regular file.
Status lookAtRegularFile(const std::string &path, const Descriptor &file,
                         struct stat &facts);

/// Reads up to `size` bytes from `offset`; fewer only at the end of the file.
StatusOr<int64_t> readAt(const Descriptor &file, const std::string &path,
                         int64_t offset, char *to, int64_t size);

/// Reads the contents of a regular file of at most `limit` bytes.
StatusOr<std::string> readFile(const std::string &path,
                               int64_t limit = INT64_C(1) << 30);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_INPUTFILE_H
