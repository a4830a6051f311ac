//===- PackGoals.cpp - Orders packings by a goal --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/pack/PackGoals.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

const char *wordOf(PackGoal goal) {
  for (const PackGoalRow &row : packGoals)
    if (row.goal == goal)
      return row.word;
  return "";
}

StatusOr<PackGoal> findPackGoal(const std::string &word) {
  std::string known;
  for (const PackGoalRow &row : packGoals) {
    if (word == row.word)
      return row.goal;
    known += (known.empty() ? "" : ", ") + std::string(row.word);
  }
  return Status::invalidArgument(
      formatText("'%s' is no goal of packing: give one of %s", word, known));
}

static int mostStages(const PackProblem &problem) {
  return std::min(problem.ranks, static_cast<int>(problem.own.size()));
}

std::vector<Packing> packingsFor(const PackProblem &problem, PackGoal goal) {
  const int stages = mostStages(problem);
  std::vector<Packing> packings;
  for (int s = 1; s <= stages; ++s) {
    const int replicas = goal == PackGoal::Replicas ? problem.ranks / s : 1;
    for (int r = 1; r <= replicas; ++r)
      if (auto packing = packInto(problem, s, r); packing.isOk())
        packings.push_back(*std::move(packing));
  }
  std::stable_sort(packings.begin(), packings.end(),
                   [goal](const Packing &a, const Packing &b) {
                     switch (goal) {
                     case PackGoal::Fewest:
                       break;
                     case PackGoal::PerRank:
                       return a.perRank() != b.perRank()
                                  ? a.perRank() > b.perRank()
                                  : a.ranks() > b.ranks();
                     case PackGoal::Replicas:
                       if (a.tokensPerSecond != b.tokensPerSecond)
                         return a.tokensPerSecond > b.tokensPerSecond;
                       break;
                     }
                     return a.ranks() < b.ranks();
                   });
  return packings;
}

StatusOr<Packing> packFor(const PackProblem &problem, PackGoal goal) {
  std::vector<Packing> packings = packingsFor(problem, goal);
  if (!packings.empty())
    return std::move(packings.front());
  int least = mostStages(problem);
  for (int stages = least - 1; stages > 0; --stages)
    if (lackingBytes(problem, stages) < lackingBytes(problem, least))
      least = stages;
  return packInto(problem, least);
}

bool isNearer(PackGoal goal, const Packing &next, const Packing &now,
              double leastShare) {
  switch (goal) {
  case PackGoal::Fewest:
    return next.ranks() < now.ranks();
  case PackGoal::PerRank:
    return next.perRank() > now.perRank() * (1 + leastShare);
  case PackGoal::Replicas:
    return next.tokensPerSecond > now.tokensPerSecond * (1 + leastShare);
  }
  return false;
}

} // namespace dyna
