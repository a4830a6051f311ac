//===- Files.cpp - Mapped files and file errors ---------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;

namespace {

/// A file descriptor, closed once.
class Descriptor {
public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (value_ >= 0)
      ::close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

private:
  int value_;
};

/// Opens a regular file for reading and gives its size.
Status openRegular(const std::string &path, const Descriptor &file,
                   size_t &size) {
  if (file.get() < 0)
    return fileFailure("open", path, errno);
  struct stat facts;
  if (::fstat(file.get(), &facts) != 0)
    return fileFailure("look at", path, errno);
  if (!S_ISREG(facts.st_mode))
    return Status::invalidArgument("cannot read " + path +
                                   ": it is not a regular file");
  size = static_cast<size_t>(facts.st_size);
  return Status::ok();
}

// O_NONBLOCK: a named pipe must be refused, not waited for.
int openForReading(const std::string &path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

} // namespace

StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  Descriptor file(openForReading(path));
  MappedFile result;
  DYNA_RETURN_IF_ERROR(openRegular(path, file, result.size_));
  result.path_ = path;
  if (result.size_ == 0)
    return result;
  void *data =
      ::mmap(nullptr, result.size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    result.size_ = 0;
    return fileFailure("map", path, errno);
  }
  result.data_ = data;
  result.descriptor_ = file.release();
  return result;
}

Status MappedFile::checkSize() const {
  struct stat facts;
  if (descriptor_ < 0)
    return Status::ok();
  if (::fstat(descriptor_, &facts) != 0)
    return fileFailure("look at", path_, errno);
  if (static_cast<size_t>(facts.st_size) >= size_)
    return Status::ok();
  return Status::invalidArgument(
      path_ + " has become shorter while it was read: it had " +
      std::to_string(size_) + " bytes and has " +
      std::to_string(facts.st_size));
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(data_, size_);
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

StatusOr<std::string> dyna::readFile(const std::string &path, int64_t limit) {
  Descriptor file(openForReading(path));
  size_t size = 0;
  DYNA_RETURN_IF_ERROR(openRegular(path, file, size));
  if (static_cast<int64_t>(size) > limit)
    return Status::invalidArgument(
        "cannot read " + path + ": it has " + std::to_string(size) +
        " bytes, more than the limit of " + std::to_string(limit));
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    ssize_t got = ::read(file.get(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fileFailure("read", path, errno);
    if (got == 0)
      break; // shortened since it was looked at
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

bool dyna::fileExists(const std::string &path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0;
}

bool dyna::isDirectory(const std::string &path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

std::string dyna::joinPath(const std::string &directory,
                           const std::string &name) {
  if (directory.empty() || directory.back() == '/')
    return directory + name;
  return directory + "/" + name;
}
