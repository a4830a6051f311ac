//===- PlanMemory.cpp - Computes memory of a rank over time ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanMemory.h"

#include "runtime/plan/graph/ProgramBlocks.h"

#include <queue>

namespace dyna {

std::vector<LiveMemory> liveMemory(const ExecutableGraph &graph,
                                   const plan::Plan &plan, int rank) {
  const plan::RankProgram &program = plan.ranks[rank];
  ProgramBlocks table(graph.replicaView(rank), plan, program);
  std::vector<int64_t> bytes = table.liveBytes();
  std::vector<LiveMemory> live(bytes.size());
  // Blocks are listed in the order of their allocation. Freed blocks on top of
  // the heap are dropped only when they are found there.
  auto endOf = [&](int block) {
    const Block &one = table.blocks()[block];
    return one.place + dyna_align_block(one.bytes);
  };
  auto lower = [&](int a, int b) { return endOf(a) < endOf(b); };
  std::priority_queue<int, std::vector<int>, decltype(lower)> highest(lower);
  size_t next = 0;
  for (int index = 0; index < program.count(); ++index) {
    for (; next < table.blocks().size() && table.blocks()[next].first == index;
         ++next)
      highest.push(static_cast<int>(next));
    while (!highest.empty() && table.blocks()[highest.top()].last < index)
      highest.pop();
    live[index].bytes = bytes[index];
    live[index].end = highest.empty() ? 0 : endOf(highest.top());
  }
  return live;
}

} // namespace dyna
