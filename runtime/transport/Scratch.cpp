//===- Scratch.cpp - Keeps memory for data in transit ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/Scratch.h"

#include <new>
#include <sys/mman.h>
#include <utility>

using namespace dyna;

namespace {

constexpr int64_t kHugePage = int64_t(2) << 20;
/// Blocks of fewer bytes are seldom sent by themselves.
constexpr int64_t kSmall = int64_t(32) << 10;
/// Blocks of up to as many share a slab of one huge page.
constexpr int64_t kShared = kHugePage / 4;
constexpr int64_t kLine = 64;

/// Allocates a block, in huge pages as far as it fills them.
Scratch::Block largeBlock(int64_t bytes) {
  constexpr std::align_val_t alignment{size_t(kHugePage)};
  auto *data = static_cast<char *>(::operator new[](size_t(bytes), alignment));
#if defined(__linux__)
  if (const int64_t whole = bytes / kHugePage * kHugePage; whole > 0)
    (void)::madvise(data, size_t(whole), MADV_HUGEPAGE); // only advice
#endif
  return {
      std::shared_ptr<char[]>(
          data, [](char *memory) { ::operator delete[](memory, alignment); }),
      bytes};
}

} // namespace

Scratch::Block Scratch::fresh(int64_t bytes) {
  if (bytes < kSmall)
    return {std::shared_ptr<char[]>(new char[size_t(bytes)]), bytes};
  if (bytes > kShared)
    return largeBlock(bytes);
  const int64_t size = (bytes + kLine - 1) / kLine * kLine;
  if (slab_.bytes < size) {
    if (slab_.bytes > 0)
      give(std::move(slab_));
    slab_ = largeBlock(kHugePage);
  }
  Block block{slab_.data, size};
  slab_.bytes -= size;
  slab_.data = std::shared_ptr<char[]>(slab_.data, slab_.data.get() + size);
  return block;
}

Scratch::Block Scratch::take(int64_t bytes) {
  auto fitting = free_.lower_bound(bytes);
  // Do not use a block that a far larger exchange may need.
  if (fitting != free_.end() && fitting->first <= 2 * bytes) {
    Block block{std::move(fitting->second), fitting->first};
    free_.erase(fitting);
    return block;
  }
  return fresh(bytes);
}
