//===- LengthRanges.h - Assigns lengths of samples to strategies ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step may have several strategies, each for samples of a range of lengths
// (HotSPa, SOSP'24):
//
//     short: 0-1024; mid: 1025-4096; long: 4097-
//
// Names are those of strategies, and numbers are tokens. Both ends belong to the
// range. A range without a second number has no end. Ranges have no gaps and do not
// overlap. The strategies follow each other in a step in the order in which they are
// written, whatever their lengths. A further entry `home=long` says which of them
// makes the update (Orchestrate.h). Otherwise home is chosen, and comes last.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_LENGTHRANGES_H
#define DYNA_RUNTIME_PLANNER_LENGTHRANGES_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace dyna {

struct LengthRange {
  static constexpr int64_t noEnd = std::numeric_limits<int64_t>::max();

  std::string name;
  int strategy = 0; ///< index of the name among those that were given
  int64_t first = 0, last = noEnd; ///< tokens, both in the range

  bool isOpen() const { return last == noEnd; }
};

class LengthRanges {
public:
  /// Checks the ranges: each name once, no gaps, no overlaps, from 0 or 1. A failure
  /// has the names and numbers. `home` is the name of a range, or empty. O(ranges log
  /// ranges).
  static StatusOr<LengthRanges> create(std::vector<LengthRange> ranges,
                                       const std::string &home = {});
  /// Returns one range for samples of all lengths, with strategy 0. `name` may be
  /// empty.
  static LengthRanges ofAll(std::string name);

  /// Ranges in the order in which they were written.
  const std::vector<LengthRange> &ranges() const { return ranges_; }
  /// Returns the index of the range whose strategy is home; -1 if none is
  /// given.
  int home() const { return home_; }
  int size() const { return static_cast<int>(ranges_.size()); }
  /// Indices of the ranges, shortest lengths first.
  const std::vector<int> &byLength() const { return byLength_; }
  /// Returns the index of the range of a sample of `tokens` tokens; -1 if the sample
  /// is longer than all ranges. O(log ranges).
  int rangeOf(int64_t tokens) const;
  /// Fails if no range has samples of `longestSample` tokens.
  Status hold(int64_t longestSample) const;

private:
  std::vector<LengthRange> ranges_;
  std::vector<int> byLength_;
  int home_ = -1;
};

/// Parses ranges of the strategies `names`. Each strategy has at most one range; some
/// may have none. A failure says in one line what is wrong in the text.
StatusOr<LengthRanges> parseLengthRanges(const std::string &text,
                                         const std::vector<std::string> &names);

/// Returns "1025-4096" or "4097-".
std::string describeLengths(const LengthRange &range);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_LENGTHRANGES_H
