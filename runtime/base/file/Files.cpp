//===- Files.cpp - Maps files and notices changes -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/Files.h"

#include "runtime/abi/Random.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dyna;

static Status lookAt(const std::string &path, const Descriptor &file,
                     FileFacts &result) {
  struct stat facts;
  DYNA_RETURN_IF_ERROR(lookAtRegularFile(path, file, facts));
  result = factsOf(facts);
  return Status::ok();
}

StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  DYNA_ASSIGN_OR_RETURN(Descriptor file, openRegularFile(path));
  MappedFile result;
  DYNA_RETURN_IF_ERROR(lookAt(path, file, result.facts_));
  result.path_ = path;
  result.size_ = static_cast<size_t>(result.facts_.bytes);
  if (result.size_ == 0)
    return result;
  void *data =
      ::mmap(nullptr, result.size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    result.size_ = 0;
    return fileFailure("map", path, errno);
  }
  result.data_ = data;
  result.lost_ = LostPages(data, result.size_);
  return result;
}

FileFacts dyna::factsOf(const struct stat &status) {
  auto nanoseconds = [](const timespec &time) {
    return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
  };
  return {static_cast<int64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

Status dyna::checkUnchanged(const std::string &path, const FileFacts &before,
                            const FileFacts &now) {
  constexpr const char *remedy =
      "; give the data back as they were, or use a copy that nobody writes to";
  if (now.bytes != before.bytes)
    return Status::invalidArgument(
        path + " has become " +
        (now.bytes < before.bytes ? "shorter" : "longer") +
        " while it was in use: it had " + std::to_string(before.bytes) +
        " bytes and has " + std::to_string(now.bytes) + remedy);
  if (now.modified != before.modified)
    return Status::invalidArgument(
        path + " was written to while it was in use" + remedy);
  if (now.changed != before.changed)
    return Status::invalidArgument(
        path +
        " was changed while it was in use: it was written to and its time put "
        "back, or it was replaced, renamed, linked or given other rights" +
        remedy);
  return Status::ok();
}

Status WatchedFile::checkUnchanged() const {
  struct stat now;
  if (path.empty())
    return Status::ok();
  if (::stat(path.c_str(), &now) != 0)
    return fileFailure("look at", path, errno);
  return dyna::checkUnchanged(path, facts, factsOf(now));
}

Status MappedFile::checkReadable() const {
  struct stat now;
  const bool isThere = data_ && ::stat(path_.c_str(), &now) == 0;
  // A truncated file gets its own message, not EIO.
  if (isThere && factsOf(now).bytes < facts_.bytes)
    return dyna::checkUnchanged(path_, facts_, factsOf(now));
  return lost_.any() ? fileFailure("read", path_, EIO) : Status::ok();
}

Status MappedFile::checkUnchanged() const {
  if (!data_)
    return Status::ok();
  DYNA_RETURN_IF_ERROR(watched().checkUnchanged());
  return lost_.any() ? fileFailure("read", path_, EIO) : Status::ok();
}

void MappedFile::dropPages() const {
  if (data_)
    (void)::madvise(data_, size_, MADV_DONTNEED); // only advice
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)), facts_(other.facts_),
      lost_(std::move(other.lost_)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(facts_, other.facts_);
  std::swap(lost_, other.lost_);
  return *this;
}

MappedFile::~MappedFile() {
  lost_ = LostPages();
  if (data_)
    ::munmap(data_, size_);
}

Status dyna::readPart(const std::string &path, const FileFacts &facts,
                      int64_t offset, char *to, int64_t size) {
  DYNA_ASSIGN_OR_RETURN(Descriptor file, openRegularFile(path));
  FileFacts now;
  DYNA_RETURN_IF_ERROR(lookAt(path, file, now));
  DYNA_RETURN_IF_ERROR(checkUnchanged(path, facts, now));
  DYNA_ASSIGN_OR_RETURN(int64_t done, readAt(file, path, offset, to, size));
  // Look again: the file may have changed while it was read.
  DYNA_RETURN_IF_ERROR(lookAt(path, file, now));
  if (done < size)
    now.bytes = offset + done;
  return checkUnchanged(path, facts, now);
}

uint64_t dyna::hashBytes(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t factor = 0x9FB21C651E98DF25;
  constexpr size_t lanes = 4, wordBytes = 8;
  uint64_t state[lanes];
  for (size_t lane = 0; lane < lanes; ++lane)
    state[lane] = dyna_mix64(seed + lane);
  // Every step is invertible, so a single change always changes the result.
  auto absorb = [&](const char *at) {
    for (size_t lane = 0; lane < lanes; ++lane) {
      uint64_t word;
      std::memcpy(&word, at + wordBytes * lane, wordBytes);
      word *= factor;
      uint64_t mixed = (state[lane] ^ word ^ word >> 32) * factor;
      state[lane] = mixed ^ mixed >> 29;
    }
  };
  constexpr size_t block = lanes * wordBytes;
  size_t whole = bytes.size() / block * block;
  for (size_t at = 0; at < whole; at += block)
    absorb(bytes.data() + at);
  char rest[block] = {};
  if (whole < bytes.size())
    std::memcpy(rest, bytes.data() + whole, bytes.size() - whole);
  absorb(rest);
  uint64_t hash = dyna_mix64(bytes.size());
  for (uint64_t lane : state)
    hash = dyna_mix64(hash ^ lane);
  return hash;
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
