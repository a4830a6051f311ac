//===- StageGraph.cpp - Lists what items of a pipeline run after ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/StageGraph.h"

#include "runtime/base/text/Text.h"

#include <utility>

namespace dyna {

/// Sorts links by one of their ends. `first` gets the place of each stage's first link.
void StageGraph::groupLinks(const std::vector<StageLink> &links,
                            int StageLink::*end, int *first,
                            StageLink *grouped) const {
  // While links are sorted in, `first` is shifted by one stage.
  for (const StageLink &link : links)
    if (link.*end + 2 <= stages_)
      ++first[link.*end + 2];
  for (int s = 2; s <= stages_; ++s)
    first[s] += first[s - 1];
  for (const StageLink &link : links)
    grouped[first[link.*end + 1]++] = link;
}

StageGraph::StageGraph(const PipelineProblem &problem)
    : stages_(problem.stages()), previous_(problem.previous) {
  const std::vector<StageLink> chain =
      problem.links.empty() ? chainOf(stages_, 0) : std::vector<StageLink>();
  const std::vector<StageLink> &links =
      problem.links.empty() ? chain : problem.links;
  links_.resize(2 * links.size());
  numbers_.assign(2 * (stages_ + 1) + 2 * stages_, 0);
  groupLinks(links, &StageLink::to, numbers_.data(), links_.data());
  groupLinks(links, &StageLink::from, numbers_.data() + stages_ + 1,
             links_.data() + links.size());
  sortStages();
  if (!previous_.empty())
    next_.assign(previous_.size(), -1);
  for (size_t m = 0; m < previous_.size(); ++m)
    if (previous_[m] >= 0)
      next_[previous_[m]] = static_cast<int>(m);
}

void StageGraph::sortStages() {
  int *depths = numbers_.data() + 2 * (stages_ + 1);
  int *order = depths + stages_;
  // First the number of links that a stage waits for, then its depth.
  for (int s = 0; s < stages_; ++s) {
    depths[s] = static_cast<int>(into(s).end() - into(s).begin());
    if (depths[s] == 0)
      order[sorted_++] = s;
  }
  for (int next = 0; next < sorted_; ++next)
    for (const StageLink &link : outOf(order[next]))
      if (--depths[link.to] == 0)
        order[sorted_++] = link.to;
  std::fill(depths, depths + stages_, 0);
  for (int next = sorted_ - 1; next >= 0; --next) {
    int &depth = depths[order[next]];
    depth = 1;
    for (const StageLink &link : outOf(order[next]))
      depth = std::max(depth, depths[link.to] + 1);
  }
}

int StageGraph::levels() const {
  int levels = 0;
  for (int s = 0; s < stages_; ++s)
    levels = std::max(levels, depth(s));
  return levels;
}

Status StageGraph::check() const {
  for (int s = 0; s < stages_; ++s)
    if (depth(s) == 0)
      return Status::invalidArgument(formatText(
          "stage %d takes part in a circle of links, or lies behind one: the "
          "items of a pipeline cannot run after each other",
          s));
  // Each is walked over once. A walk that meets itself goes around a circle.
  std::vector<size_t> walks(previous_.size(), 0);
  for (size_t m = 0; m < previous_.size(); ++m)
    for (int at = static_cast<int>(m); at >= 0; at = previous_[at]) {
      if (walks[at] == m + 1)
        return Status::invalidArgument(
            formatText("micro-batch %d comes after itself, or after a circle "
                       "of micro-batches: each runs after an earlier one",
                       m));
      if (std::exchange(walks[at], m + 1) != 0)
        break;
    }
  return Status::ok();
}

} // namespace dyna
