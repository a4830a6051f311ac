//===- StageGraph.h - Lists what items of a pipeline run after ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An item of a pipeline runs after other items, which its list names:
//
// - a forward after the forwards of the stages that link to its stage, each with a
//   message between;
// - a backward after the backwards of the stages that its stage links to, each with a
//   message between. On a stage that links to no other one, after its own forward;
// - weight gradients after the backward of their stage;
// - with `previous`, a forward after the forward of the micro-batch before it
//   on the same stage. The backward of the earlier one runs after the backward
//   of the later one.
//
// Clocks, bounds, schedules and writers of programs go by these lists. A chain of
// stages is one graph among others. Each list follows from the links of a stage, so
// nothing is stored for an item.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_STAGEGRAPH_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_STAGEGRAPH_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"

namespace dyna {

/// An item that another one runs after.
struct Predecessor {
  int stage = 0;
  ItemKind kind = ItemKind::Forward;
  int microBatch = 0;
  const StageLink *link = nullptr; ///< carries the message between; null: none
};

class StageGraph {
public:
  StageGraph() = default;
  /// Links of the problem; without any, a chain of its stages. O(stages + links).
  explicit StageGraph(const PipelineProblem &problem);

  /// Fails if stages link to each other in a circle, or if micro-batches precede each
  /// other in one. The message names one of them. Linear in all of them.
  Status check() const;

  struct Links {
    const StageLink *first, *last;
    const StageLink *begin() const { return first; }
    const StageLink *end() const { return last; }
    bool empty() const { return first == last; }
  };
  struct Stages {
    const int *first, *last;
    const int *begin() const { return first; }
    const int *end() const { return last; }
  };
  /// Links that lead to a stage, in the order of the problem.
  Links into(int stage) const { return range(numbers_.data(), 0, stage); }
  /// Links that lead from a stage, in the order of the problem.
  Links outOf(int stage) const {
    return range(numbers_.data() + stages_ + 1, links_.size() / 2, stage);
  }
  /// Stages in an order in which all links lead forward. Shorter if links form a circle.
  Stages order() const {
    const int *first = numbers_.data() + 2 * (stages_ + 1) + stages_;
    return {first, first + sorted_};
  }
  /// Returns the number of stages on the longest path from a stage to one
  /// without links, including both.
  int depth(int stage) const { return numbers_[2 * (stages_ + 1) + stage]; }
  /// Returns the largest depth.
  int levels() const;

  /// Calls `add` with each predecessor of an item. Allocates nothing.
  template <typename Add>
  void forEachPredecessor(int stage, ItemKind kind, int m, Add add) const {
    if (kind == ItemKind::Weight) {
      add(Predecessor{stage, ItemKind::Backward, m});
      return;
    }
    const bool isForward = kind == ItemKind::Forward;
    for (const StageLink &link : isForward ? into(stage) : outOf(stage))
      add(Predecessor{isForward ? link.from : link.to, kind, m, &link});
    if (!isForward && outOf(stage).empty())
      add(Predecessor{stage, ItemKind::Forward, m});
    const std::vector<int> &before = isForward ? previous_ : next_;
    if (!before.empty() && before[m] >= 0)
      add(Predecessor{stage, kind, before[m]});
  }

private:
  Links range(const int *first, size_t offset, int stage) const {
    const StageLink *links = links_.data() + offset;
    return {links + first[stage], links + first[stage + 1]};
  }
  void groupLinks(const std::vector<StageLink> &links, int StageLink::*end,
                  int *first, StageLink *grouped) const;
  void sortStages();

  // Searches make many graphs, so all tables share two lists.
  std::vector<StageLink> links_; ///< by consumer, then by producer
  /// First links into stages, first links out of them, depths, stages in order.
  std::vector<int> numbers_;
  int stages_ = 0;
  int sorted_ = 0;                   ///< stages in `order`
  std::vector<int> previous_, next_; ///< by micro-batch; -1: none
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_STAGEGRAPH_H
