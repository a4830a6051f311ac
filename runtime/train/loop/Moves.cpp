//===- Moves.cpp - Decides when a run goes over to other graphs -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Moves.h"

#include "runtime/train/open/SizeMoves.h"

#include <algorithm>

namespace dyna {

std::optional<PackGoal> Moves::goalAt(int64_t step) const {
  if (const auto repacks = parseRepacks(session_.options.repack);
      repacks.isOk())
    for (const Repack &repack : *repacks)
      if (repack.step == step)
        return repack.goal;
  return std::nullopt;
}

bool Moves::hasGoal() const {
  const auto repacks = parseRepacks(session_.options.repack);
  return repacks.isOk() &&
         std::any_of(repacks->begin(), repacks->end(),
                     [](const Repack &one) { return one.goal.has_value(); });
}

StatusOr<std::optional<NextStrategy>> Moves::next(int64_t step) const {
  DYNA_ASSIGN_OR_RETURN(const auto repacks,
                        parseRepacks(session_.options.repack));
  for (const Repack &repack : repacks)
    if (repack.step == step && !repack.goal) {
      DYNA_ASSIGN_OR_RETURN(NextStrategy next,
                            strategyOf(repack,
                                       session_.home().graph->strategy(),
                                       session_.model->layers()));
      return std::optional(std::move(next));
    }
  return std::optional<NextStrategy>();
}

int64_t Moves::nextStep(int64_t step) const {
  if (const auto repacks = parseRepacks(session_.options.repack);
      repacks.isOk())
    for (const Repack &repack : *repacks)
      if (repack.step >= step)
        return repack.step;
  return -1;
}

void Moves::end(int64_t step) {
  const auto repacks = parseRepacks(session_.options.repack);
  if (!repacks.isOk())
    return;
  std::vector<Repack> left;
  for (const Repack &repack : *repacks)
    if (repack.step > step || repack.step == Repack::always)
      left.push_back(repack);
  session_.options.repack = describeRepacks(left);
}

} // namespace dyna
