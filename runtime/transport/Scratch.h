//===- Scratch.h - Memory for what is on its way ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For packing and sums. Blocks are kept for the next exchange: touching fresh
// memory costs more than sending it. Used by one thread at a time.
//
// What is not small lies in huge pages. Where another process copies out of it, as
// MPI has the kernel do within a machine, each page is looked up and pinned first:
// with pages of 4 KiB such copies took twice as long.
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
    /// Of a slab that several blocks may share; it goes with the last of them.
    std::shared_ptr<char[]> data;
    int64_t bytes = 0;
  };

  /// At least `bytes`, not cleared.
  Block take(int64_t bytes);
  void give(Block block) { free_.emplace(block.bytes, std::move(block.data)); }

private:
  Block fresh(int64_t bytes);

  std::multimap<int64_t, std::shared_ptr<char[]>> free_;
  Block slab_; ///< what is left of the last one
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_SCRATCH_H
