//===- BlockLifetime.h - A block of memory and its lifetime -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLACE_BLOCKLIFETIME_H
#define DYNA_RUNTIME_PLANNER_PLACE_BLOCKLIFETIME_H

#include <cstdint>
#include <tuple>

namespace dyna {

/// A block that is alive from time `first` to time `last`, both included.
struct BlockLifetime {
  int64_t bytes = 0; ///< a multiple of the alignment
  int first = 0;
  int last = 0;

  bool operator<(const BlockLifetime &o) const {
    return std::tie(bytes, first, last) < std::tie(o.bytes, o.first, o.last);
  }
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLACE_BLOCKLIFETIME_H
