//===- LengthRanges.h - Which strategy samples of a length have -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step may have several strategies, each for samples of a range of lengths
// (HotSPa, SOSP'24):
//
//     short: 0-1024; mid: 1025-4096; long: 4097-
//
// Names are those of strategies, numbers are tokens, both ends belong to the range;
// without the second number it has no end. Ranges have no gaps and share nothing.
// The order in which they are written is that in which the strategies follow each
// other in a step, whatever their lengths are. `home=long`, as one more, says which
// of them makes the update (Orchestrate.h); else it is chosen, and comes last.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_LENGTHRANGES_H
#define DYNA_RUNTIME_PLANNER_LENGTHRANGES_H

#include "runtime/base/Status.h"

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
  /// No name twice, no gaps, no overlaps, from 0 or 1; fails with the names and
  /// numbers otherwise. O(ranges log ranges).
  /// `home`: of one of them, or empty.
  static StatusOr<LengthRanges> create(std::vector<LengthRange> ranges,
                                       const std::string &home = {});
  /// One range with samples of all lengths, of strategy 0. The name may be empty.
  static LengthRanges ofAll(std::string name);

  /// In the order in which they were written.
  const std::vector<LengthRange> &ranges() const { return ranges_; }
  /// The index of the range whose strategy is to be home; -1: nobody says.
  int home() const { return home_; }
  int size() const { return static_cast<int>(ranges_.size()); }
  /// Their indices, the shortest lengths first.
  const std::vector<int> &byLength() const { return byLength_; }
  /// Of a sample of so many tokens; -1: it is longer than all of them. O(log
  /// ranges).
  int rangeOf(int64_t tokens) const;
  /// Fails where no range has samples of so many tokens.
  Status hold(int64_t longestSample) const;

private:
  std::vector<LengthRange> ranges_;
  std::vector<int> byLength_;
  int home_ = -1;
};

/// `names`: of the strategies there are; each has at most one range, and some may
/// have none. Fails, in one line, with what is wrong in the text.
StatusOr<LengthRanges> parseLengthRanges(const std::string &text,
                                         const std::vector<std::string> &names);

/// "1025-4096" or "4097-".
std::string describeLengths(const LengthRange &range);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_LENGTHRANGES_H
