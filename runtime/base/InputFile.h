//===- InputFile.h - Files that are read ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_INPUTFILE_H
#define DYNA_RUNTIME_BASE_INPUTFILE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <utility>

struct stat;

namespace dyna {

/// An open file, closed once.
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

/// Opens a regular file for reading. Anything else is refused, and not waited
/// for: a pipe may never have a writer, a device never an end.
StatusOr<Descriptor> openRegularFile(const std::string &path);

/// Its facts; fails for what is not a regular file.
Status lookAtRegularFile(const std::string &path, const Descriptor &file,
                         struct stat &facts);

/// Reads up to `size` bytes from `offset`; less only at the end of the file.
StatusOr<int64_t> readAt(const Descriptor &file, const std::string &path,
                         int64_t offset, char *to, int64_t size);

/// The contents of a regular file of at most `limit` bytes.
StatusOr<std::string> readFile(const std::string &path,
                               int64_t limit = INT64_C(1) << 30);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_INPUTFILE_H
