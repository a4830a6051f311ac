//===- OutputFile.cpp - Writes files that must be complete ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/OutputFile.h"

#include "runtime/abi/Random.h"
#include "runtime/base/file/DiskFull.h"
#include "runtime/base/file/FileFailure.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace dyna;

void Checksum::addStripe(const unsigned char *at) {
  for (int i = 0; i < 4; ++i) {
    uint64_t word;
    std::memcpy(&word, at + 8 * i, sizeof word);
    uint64_t lane = (lanes_[i] ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    lanes_[i] = lane << 29 | lane >> 35;
  }
}

void Checksum::update(const void *data, size_t size) {
  if (size == 0)
    return; // `data` may be null
  auto *at = static_cast<const unsigned char *>(data);
  total_ += size;
  if (restSize_ > 0) {
    size_t part = std::min(size, stripeBytes - restSize_);
    std::memcpy(rest_ + restSize_, at, part);
    restSize_ += part;
    at += part;
    size -= part;
    if (restSize_ < stripeBytes)
      return;
    addStripe(rest_);
    restSize_ = 0;
  }
  for (; size >= stripeBytes; at += stripeBytes, size -= stripeBytes)
    addStripe(at);
  if (size > 0)
    std::memcpy(rest_, at, size);
  restSize_ = size;
}

uint64_t Checksum::value() const {
  Checksum last = *this;
  std::memset(last.rest_ + restSize_, 0, stripeBytes - restSize_);
  last.addStripe(last.rest_);
  uint64_t result = dyna_mix64(total_);
  for (uint64_t lane : last.lanes_)
    result = dyna_mix64(result ^ lane);
  return result;
}

uint64_t Checksum::of(std::string_view bytes) {
  Checksum checksum;
  checksum.update(bytes.data(), bytes.size());
  return checksum.value();
}

FileOperations &dyna::fileOperations() {
  static FileOperations operations = {::fsync, std::rename};
  return operations;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Returns true for links of the system, which stand for descriptors and
/// devices: /dev/stdout.
static bool isSystemLink(const std::string &path) {
  return path.rfind("/dev/", 0) == 0 || path.rfind("/proc/", 0) == 0;
}

static std::string linkTarget(const std::string &path) {
  char target[4096];
  ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "?";
}

StatusOr<OutputPlace> dyna::findOutputPlace(const std::string &path) {
  auto bad = [&](const std::string &what) {
    return Status::invalidArgument("cannot write " + path + ": it is " + what);
  };
  struct stat facts;
  if (path.empty())
    return Status::invalidArgument("cannot write a file without a name");
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno != ENOENT)
      return fileFailure("write", path, errno);
    if (path.back() == '/')
      return bad("the name of a directory, expected a file name");
    return OutputPlace::Free;
  }
  if (S_ISLNK(facts.st_mode)) {
    if (!isSystemLink(path))
      return bad("a symbolic link to " + linkTarget(path) +
                 ", which is not followed; name the file itself or remove the "
                 "link");
    if (::stat(path.c_str(), &facts) != 0)
      return fileFailure("write", path, errno);
    if (S_ISREG(facts.st_mode))
      return OutputPlace::Stream;
  }
  if (S_ISDIR(facts.st_mode))
    return bad("a directory, expected a file name");
  bool isStream = S_ISCHR(facts.st_mode) || S_ISFIFO(facts.st_mode);
  if (!isStream && !S_ISREG(facts.st_mode))
    return bad("a block device or a socket, expected a file name");
  // A rename would ignore permissions, so refuse files that may not be written.
  if (::access(path.c_str(), W_OK) != 0)
    return fileFailure("write", path, errno);
  return S_ISFIFO(facts.st_mode) ? OutputPlace::Pipe
         : isStream              ? OutputPlace::Stream
                                 : OutputPlace::RegularFile;
}

StatusOr<int> dyna::openStream(const std::string &path, int flags) {
  // Without O_NONBLOCK this would wait for the reader of a pipe.
  int descriptor = ::open(path.c_str(),
                          flags | O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENXIO)
    return Status::invalidArgument(
        "cannot write " + path +
        ": it is a pipe that nobody reads; start its reader first, or name a "
        "file");
  if (descriptor < 0)
    return fileFailure("write", path, errno);
  (void)::fcntl(descriptor, F_SETFL,
                ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Returns a name beside `path` that no other process uses while this process
/// lives.
static std::string temporaryName(const std::string &path, int attempt) {
  return path + ".tmp-" + std::to_string(::getpid()) + "-" +
         std::to_string(attempt);
}
static constexpr int mostAttempts = 100;

StatusOr<OutputFile> OutputFile::create(const std::string &path) {
  int descriptor =
      ::open(path.c_str(),
             O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return fileFailure("create", path, errno);
  return OutputFile(path, descriptor);
}

StatusOr<OutputFile> OutputFile::replace(const std::string &path) {
  DYNA_ASSIGN_OR_RETURN(OutputPlace place, findOutputPlace(path));
  OutputFile file(path, -1);
  struct stat old;
  if (place == OutputPlace::Stream || place == OutputPlace::Pipe) {
    DYNA_ASSIGN_OR_RETURN(int stream, openStream(path, O_TRUNC));
    file.descriptor_ = stream;
  } else if (file.openTemporary(0666) && place == OutputPlace::RegularFile &&
             ::stat(path.c_str(), &old) == 0)
    (void)::fchmod(file.descriptor_,
                   old.st_mode & 0777); // keeps who may read it
  if (file.descriptor_ < 0)
    return fileFailure("write", path, errno);
  return file;
}

StatusOr<OutputFile> OutputFile::standardOutput() {
  OutputFile file("standard output", ::fcntl(1, F_DUPFD_CLOEXEC, 3));
  if (file.descriptor_ < 0)
    return fileFailure("write", file.path_, errno);
  return file;
}

Status OutputFile::checkReplace(const std::string &path) {
  StatusOr<OutputPlace> place = findOutputPlace(path);
  // Do not open a pipe: closing it would end its reader's input.
  if (!place.isOk() || *place == OutputPlace::Stream ||
      *place == OutputPlace::Pipe)
    return place.status();
  return replace(path).status();
}

/// Opens a file without a name in the folder of `path_`, where the file system
/// has such; else one beside it.
bool OutputFile::openTemporary(mode_t mode) {
  // The file without a name gets its name later through /proc.
  if (::access("/proc/self/fd", X_OK) == 0) {
    naming_ = Naming::Link;
    descriptor_ =
        ::open(folderOf(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    // Other errors also occur with a name, and are reported there.
    if (descriptor_ >= 0)
      return true;
  }
  naming_ = Naming::Rename;
  for (int attempt = 0; attempt < mostAttempts; ++attempt) {
    std::string name = temporaryName(path_, attempt);
    descriptor_ =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ >= 0)
      temporary_ = name;
    if (descriptor_ >= 0 || errno != EEXIST)
      break;
  }
  return descriptor_ >= 0;
}

/// Gives the file its name, as the last step: the file of this name may have
/// changed since `replace`.
Status OutputFile::giveName() {
  std::string bytes = "/proc/self/fd/" + std::to_string(descriptor_);
  auto link = [&](const std::string &name) {
    return ::linkat(AT_FDCWD, bytes.c_str(), AT_FDCWD, name.c_str(),
                    AT_SYMLINK_FOLLOW) == 0;
  };
  if (naming_ == Naming::Link) {
    if (link(path_))
      return Status::ok(); // no file had this name
    // A link cannot replace a file, so link under another name and rename that.
    for (int attempt = 0; errno == EEXIST && attempt < mostAttempts; ++attempt)
      if (std::string name = temporaryName(path_, attempt); link(name)) {
        temporary_ = name;
        break;
      }
    if (temporary_.empty())
      return fileFailure("write", path_, errno);
  }
  DYNA_RETURN_IF_ERROR(moveToOutput(temporary_, path_));
  temporary_.clear();
  return Status::ok();
}

Status dyna::moveToOutput(const std::string &from, const std::string &path) {
  DYNA_ASSIGN_OR_RETURN(OutputPlace place, findOutputPlace(path));
  if (place == OutputPlace::Stream || place == OutputPlace::Pipe)
    return Status::invalidArgument(
        "cannot write " + path +
        ": it is a device or a pipe, expected a file name");
  if (fileOperations().rename(from.c_str(), path.c_str()) != 0)
    return fileFailure("write", path, errno);
  return Status::ok();
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      descriptor_(std::exchange(other.descriptor_, -1)), naming_(other.naming_),
      bytes_(other.bytes_), checksum_(other.checksum_) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(naming_, other.naming_);
  std::swap(bytes_, other.bytes_);
  std::swap(checksum_, other.checksum_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

Status OutputFile::reserve(int64_t bytes, int64_t others) {
  int result;
  do
    result = ::fallocate(descriptor_, 0, 0, bytes);
  while (result != 0 && errno == EINTR);
  if (result == 0)
    return Status::ok();
  // The file exists, so no inode is missing.
  if (errno == ENOSPC)
    return diskFull("write", path_);
  if (errno != EOPNOTSUPP && errno != ENOSYS)
    return fileFailure("write", path_, errno);
  // If the file system cannot reserve room, compare with its free room. Some,
  // such as ramfs, have no size, and state 0 blocks.
  struct statvfs facts;
  if (::fstatvfs(descriptor_, &facts) == 0 && facts.f_blocks > 0 &&
      static_cast<double>(facts.f_bavail) *
              static_cast<double>(facts.f_frsize) <
          static_cast<double>(bytes) + static_cast<double>(others))
    return diskFull("write", path_);
  return Status::ok();
}

Status OutputFile::write(const void *data, size_t size) {
  auto *at = static_cast<const char *>(data);
  checksum_.update(data, size);
  while (size > 0) {
    ssize_t done = ::write(descriptor_, at, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return fileFailure("write", path_, errno);
    at += done;
    size -= static_cast<size_t>(done);
    bytes_ += done;
  }
  return Status::ok();
}

Status OutputFile::close() {
  int error = fileOperations().flush(descriptor_) == 0 ? 0 : errno;
  // Pipes and terminals have no disk to be flushed to.
  if (error == EINVAL || error == EROFS)
    error = 0;
  Status status = Status::ok();
  if (error == 0 && naming_ != Naming::None)
    status = giveName();
  if (::close(std::exchange(descriptor_, -1)) != 0 && error == 0)
    error = errno;
  return error == 0 ? status : fileFailure("write", path_, error);
}

static Status finish(OutputFile &file, std::string_view text) {
  DYNA_RETURN_IF_ERROR(file.write(text));
  return file.close();
}

Status dyna::replaceFile(const std::string &path, std::string_view text) {
  StatusOr<OutputFile> file = OutputFile::replace(path);
  return file.isOk() ? finish(*file, text) : file.status();
}

Status dyna::writeOutput(const std::string &path, std::string_view text) {
  StatusOr<OutputFile> file =
      path == "-" ? OutputFile::standardOutput() : OutputFile::replace(path);
  return file.isOk() ? finish(*file, text) : file.status();
}

Status dyna::syncDirectory(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return fileFailure("open", path, errno);
  int error = fileOperations().flush(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some file systems cannot flush directories and report EINVAL.
  if (error == 0 || error == EINVAL)
    return Status::ok();
  return fileFailure("flush", path, error);
}
