//===- InputFile.cpp - Opens and reads regular files ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/InputFile.h"

#include "runtime/base/file/FileFailure.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;

Descriptor::~Descriptor() {
  if (value_ >= 0)
    ::close(value_);
}

StatusOr<Descriptor> dyna::openRegularFile(const std::string &path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    return fileFailure("open", path, errno);
  struct stat facts;
  DYNA_RETURN_IF_ERROR(lookAtRegularFile(path, file, facts));
  return file;
}

Status dyna::lookAtRegularFile(const std::string &path, const Descriptor &file,
                               struct stat &facts) {
  if (::fstat(file.get(), &facts) != 0)
    return fileFailure("look at", path, errno);
  if (S_ISREG(facts.st_mode))
    return Status::ok();
  return Status::invalidArgument("cannot read " + path + ": it is " +
                                 (S_ISDIR(facts.st_mode) ? "a directory"
                                  : S_ISFIFO(facts.st_mode)
                                      ? "a pipe"
                                      : "a device or a socket") +
                                 ", expected a regular file");
}

StatusOr<int64_t> dyna::readAt(const Descriptor &file, const std::string &path,
                               int64_t offset, char *to, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    ssize_t got = ::pread(file.get(), to + done,
                          static_cast<size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fileFailure("read", path, errno);
    if (got == 0)
      break;
    done += got;
  }
  return done;
}

StatusOr<std::string> dyna::readFile(const std::string &path, int64_t limit) {
  DYNA_ASSIGN_OR_RETURN(Descriptor file, openRegularFile(path));
  struct stat facts;
  DYNA_RETURN_IF_ERROR(lookAtRegularFile(path, file, facts));
  if (facts.st_size > limit)
    return Status::invalidArgument(
        "cannot read " + path + ": it has " + std::to_string(facts.st_size) +
        " bytes, more than the limit of " + std::to_string(limit));
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  DYNA_ASSIGN_OR_RETURN(int64_t done,
                        readAt(file, path, 0, text.data(), facts.st_size));
  text.resize(
      static_cast<size_t>(done)); // the file has become shorter meanwhile
  return text;
}
