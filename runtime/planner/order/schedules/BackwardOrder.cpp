//===- BackwardOrder.cpp - Orders backwards of chains ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/BackwardOrder.h"

#include <algorithm>

namespace dyna {

BackwardOrder::BackwardOrder(const PipelineProblem &problem) {
  const int count = problem.microBatches();
  const std::vector<int> &previous = problem.previous;
  auto before = [&](int m) { return previous.empty() ? -1 : previous[m]; };
  std::vector<int> behind(count, 0); // 1: another slice of the chain follows
  for (int m = 0; m < count; ++m)
    if (before(m) >= 0)
      behind[before(m)] = 1;
  int open = 0; // chains that have begun and not ended
  for (int m = 0; m < count; ++m) {
    open += before(m) < 0;
    if (behind[m])
      continue;
    for (int slice = m; slice >= 0; slice = before(slice))
      sequence.push_back(slice);
    if (--open == 0)
      unitEnds.push_back(m + 1);
  }
  // A cycle of micro-batches has no last one. The clock refuses it later.
  if (count > 0 && (unitEnds.empty() || unitEnds.back() != count))
    unitEnds.push_back(count);
  std::vector<char> isThere(count, 0);
  for (int m : sequence)
    isThere[m] = 1;
  for (int m = 0; m < count; ++m)
    if (!isThere[m])
      sequence.push_back(m);
  int needed = 0;
  for (int m : sequence) {
    needed = std::max(needed, m + 1);
    forwards.push_back(needed);
  }
  for (int place = count - 2; place >= 0; --place)
    forwards[place] = std::max(forwards[place], forwards[place + 1] - 1);
}

} // namespace dyna
