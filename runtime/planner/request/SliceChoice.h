//===- SliceChoice.h - How users cut micro-batches into slices --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Token slices: the tokens of a micro-batch pass a pipeline in several parts, one behind
// the other (TeraPipe, section 3). `--slices` says how large they are.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICECHOICE_H
#define DYNA_RUNTIME_PLANNER_SLICECHOICE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

struct SliceChoice {
  /// Number of slices of equal size; 0: the choice is no number.
  int64_t count = 0;
  /// Tokens of each slice, in order; the last one repeats. Empty: no list.
  std::vector<int64_t> lengths;

  bool any() const { return count > 1 || !lengths.empty(); }

  /// Returns the tokens of the slices of so many tokens. Sizes of equal slices differ by
  /// one token at most, and none is empty.
  std::vector<int64_t> cut(int64_t tokens) const;
  /// Returns the tokens of the largest slice of at most `tokens` tokens.
  int64_t largest(int64_t tokens) const;
};

/// Parses "none", "8", or "2048+1024+512". The failure is one line that starts with what
/// is expected.
StatusOr<SliceChoice> parseSlices(const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICECHOICE_H
