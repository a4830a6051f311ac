//===- Scratch.h - Keeps memory for data in transit -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory for packing and sums. Blocks are kept for the next exchange, because
// touching fresh memory costs more than sending it. One thread uses it at a
// time.
//
// Large blocks lie in huge pages. If another process copies out of a block,
// each page is looked up and pinned first; MPI has the kernel do this within a
// machine. With pages of 4 KiB such copies took twice as long.
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
    /// Part of a slab that several blocks may share; the slab is freed with the
    /// last of them.
    std::shared_ptr<char[]> data;
    int64_t bytes = 0;
  };

  /// Returns at least `bytes`, not cleared.
  Block take(int64_t bytes);
  void give(Block block) { free_.emplace(block.bytes, std::move(block.data)); }

private:
  Block fresh(int64_t bytes);

  std::multimap<int64_t, std::shared_ptr<char[]>> free_;
  Block slab_; ///< rest of the last slab
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_SCRATCH_H
