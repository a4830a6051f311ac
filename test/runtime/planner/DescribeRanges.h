//===- DescribeRanges.h - Ranges as they are written ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_DESCRIBERANGES_H
#define DYNA_TEST_RUNTIME_PLANNER_DESCRIBERANGES_H

#include "runtime/planner/request/LengthRanges.h"

namespace dyna {

/// Parses to the same ranges again.
inline std::string describeLengthRanges(const LengthRanges &ranges) {
  std::string text;
  for (const LengthRange &range : ranges.ranges())
    text +=
        (text.empty() ? "" : "; ") + range.name + ": " + describeLengths(range);
  if (ranges.home() >= 0)
    text += "; home=" + ranges.ranges()[ranges.home()].name;
  return text;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_DESCRIBERANGES_H
