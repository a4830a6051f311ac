//===- Scratch.h - Memory for what is on its way ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For packing and sums. Blocks are kept for the next exchange: touching fresh
// memory costs more than sending it. Used by one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_SCRATCH_H
#define DYNA_RUNTIME_TRANSPORT_SCRATCH_H

#include <cstdint>
#include <map>
#include <memory>

namespace dyna {

class Scratch {
public:
  struct Block {
    std::unique_ptr<char[]> data;
    int64_t bytes = 0;
  };

  /// At least `bytes`, not cleared.
  Block take(int64_t bytes) {
    auto fitting = free_.lower_bound(bytes);
    // Not one that a far larger exchange will want.
    if (fitting != free_.end() && fitting->first <= 2 * bytes) {
      Block block{std::move(fitting->second), fitting->first};
      free_.erase(fitting);
      return block;
    }
    return {std::unique_ptr<char[]>(new char[static_cast<size_t>(bytes)]),
            bytes};
  }
  void give(Block block) { free_.emplace(block.bytes, std::move(block.data)); }

private:
  std::multimap<int64_t, std::unique_ptr<char[]>> free_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_SCRATCH_H
