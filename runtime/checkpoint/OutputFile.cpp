//===- OutputFile.cpp - Writing files that must be whole ------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/OutputFile.h"

#include "runtime/abi/Random.h"
#include "runtime/data/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
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

StatusOr<OutputFile> OutputFile::create(const std::string &path) {
  int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return fileFailure("create", path, errno);
  return OutputFile(path, descriptor);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_),
      checksum_(other.checksum_) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(checksum_, other.checksum_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
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
  int descriptor = std::exchange(descriptor_, -1);
  int error = fileOperations().flush(descriptor) == 0 ? 0 : errno;
  if (::close(descriptor) != 0 && error == 0)
    error = errno;
  return error == 0 ? Status::ok() : fileFailure("write", path_, error);
}

Status dyna::syncDirectory(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return fileFailure("open", path, errno);
  int error = fileOperations().flush(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some file systems cannot flush directories and say so.
  if (error == 0 || error == EINVAL)
    return Status::ok();
  return fileFailure("flush", path, error);
}
