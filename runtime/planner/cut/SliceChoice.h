//===- SliceChoice.h - Declares how users choose slices ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Token slices: the tokens of a micro-batch pass a pipeline in several parts,
// one after the other (TeraPipe, section 3). `--slices` says how large they
// are.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICECHOICE_H
#define DYNA_RUNTIME_PLANNER_SLICECHOICE_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// Ways to find slices by costs (ChooseSlices.h).
enum class SlicePolicy {
  None,
  Auto,     ///< slices if they are faster by the clock of the schedule
  Exact,    ///< the best cut for equal stages (slice/SliceTokens.h)
  TeraPipe, ///< the program of the paper's text
  TeraCode, ///< the program of the paper's code
  Uniform,  ///< equal tokens of each sample, `number` slices
  Work,     ///< equal work of each sample, `number` slices: Seq1F1B
  Chunks    ///< chunks of `number` tokens: ChunkFlow
};

struct SliceChoice {
  /// Number of slices of equal size; 0: the choice is no number.
  int64_t count = 0;
  /// Tokens of each slice, in order; the last one repeats. Empty: no list.
  std::vector<int64_t> lengths;
  SlicePolicy policy = SlicePolicy::None;
  /// Number of slices, or tokens of a chunk. 0: the policy takes none, or searches the
  /// one with the shortest plan.
  int64_t number = 0;

  /// Returns true if there may be slices.
  bool any() const { return policy != SlicePolicy::None || isFixed(); }
  /// Returns true if all micro-batches are cut in one way.
  bool isFixed() const { return count > 1 || !lengths.empty(); }

  /// Returns the tokens of each slice of `tokens` tokens; all in one if the
  /// choice is not fixed. Sizes of equal slices differ by one token at most,
  /// and none is empty.
  std::vector<int64_t> cut(int64_t tokens) const;
  /// Returns the number of slices of so many tokens; 1 if costs decide about it.
  int64_t slicesOf(int64_t tokens) const;
  /// Returns the tokens of the largest slice of at most `tokens` tokens.
  int64_t largest(int64_t tokens) const;
  /// Fails if micro-batches of at most `longest` tokens, or of several samples with at
  /// most `joined` tokens, have fewer tokens than the choice asks for.
  Status check(int64_t joined, int64_t longest) const;
  /// Returns the choice for such micro-batches: with fewer slices, or smaller ones, where
  /// `check` fails.
  SliceChoice within(int64_t joined, int64_t longest) const;
};

/// Parses "none", "8", "2048+1024+512", or a policy: "auto", "exact", "terapipe",
/// "terapipe-code", "uniform:8", "seq1f1b:8", "chunkflow:2048"; the last three also
/// without their number. The failure is one line that starts with what is expected.
StatusOr<SliceChoice> parseSlices(const std::string &text);

/// Returns the text that `parseSlices` reads as the choice; empty if there are no slices.
std::string describeSlices(const SliceChoice &choice);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICECHOICE_H
