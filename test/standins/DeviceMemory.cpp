//===- DeviceMemory.cpp - Memory that the host cannot read ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/DeviceMemory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace dyna::standins;

/// Allocations begin at multiples of it, and as much is left free behind each.
static constexpr size_t kUnit = 256;
/// Of what is left free.
static constexpr unsigned char kGapByte = 0xa5;

static size_t roundUp(size_t bytes) {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

DeviceMemory::DeviceMemory(size_t bytes) : total_(bytes / 4096 * 4096) {
  int file = memfd_create("device", MFD_CLOEXEC);
  bool isMade = file >= 0 && ftruncate(file, static_cast<off_t>(total_)) == 0;
  if (isMade) {
    void *device = mmap(nullptr, total_, PROT_NONE, MAP_SHARED, file, 0);
    void *mirror = mmap(nullptr, total_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, file, 0);
    isMade = device != MAP_FAILED && mirror != MAP_FAILED;
    device_ = static_cast<char *>(device);
    mirror_ = static_cast<char *>(mirror);
  }
  if (!isMade) {
    perror("stand-in: no memory for the device");
    std::abort();
  }
  ::close(file);
}

DeviceMemory::~DeviceMemory() {
  munmap(device_, total_);
  munmap(mirror_, total_);
}

uint64_t DeviceMemory::allocate(size_t bytes) {
  const uint64_t begin = reinterpret_cast<uint64_t>(device_);
  if (bytes > available())
    return 0;
  uint64_t at = begin;
  for (const auto &[address, size] : allocations_) {
    if (at + roundUp(bytes) + kUnit <= address)
      break;
    at = address + roundUp(size) + kUnit;
  }
  if (bytes > begin + total_ - std::min(at, begin + total_))
    return 0;
  allocations_[at] = bytes;
  taken_ += bytes;
  memset(view(at, bytes), 0xff, bytes);
  auto [gap, size] = gapBehind(at, bytes);
  memset(gap, kGapByte, size);
  return at;
}

std::pair<unsigned char *, size_t> DeviceMemory::gapBehind(uint64_t address,
                                                           size_t bytes) const {
  const size_t offset = address - reinterpret_cast<uint64_t>(device_) + bytes;
  const size_t end = std::min(offset - bytes + roundUp(bytes) + kUnit, total_);
  return {reinterpret_cast<unsigned char *>(mirror_) + offset, end - offset};
}

int64_t DeviceMemory::overwritten() const {
  for (const auto &[address, bytes] : allocations_) {
    auto [gap, size] = gapBehind(address, bytes);
    if (std::any_of(gap, gap + size,
                    [](unsigned char byte) { return byte != kGapByte; }))
      return static_cast<int64_t>(bytes);
  }
  return -1;
}

bool DeviceMemory::release(uint64_t address) {
  auto found = allocations_.find(address);
  if (found == allocations_.end())
    return false;
  memset(view(address, found->second), 0xff, found->second);
  taken_ -= found->second;
  allocations_.erase(found);
  return true;
}

bool DeviceMemory::overlaps(const void *data, size_t bytes) const {
  const char *begin = static_cast<const char *>(data);
  return begin < device_ + total_ && begin + bytes > device_;
}

void *DeviceMemory::view(uint64_t address, size_t bytes) const {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin())
    return nullptr;
  const auto &[begin, size] = *std::prev(next);
  uint64_t offset = address - begin;
  if (offset > size || bytes > size - offset)
    return nullptr;
  return mirror_ + (address - reinterpret_cast<uint64_t>(device_));
}

void DeviceMemory::open() {
  if (mprotect(device_, total_, PROT_READ | PROT_WRITE) != 0)
    std::abort();
}

void DeviceMemory::close() {
  if (mprotect(device_, total_, PROT_NONE) != 0)
    std::abort();
}
