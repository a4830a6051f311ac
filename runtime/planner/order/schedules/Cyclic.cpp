//===- Cyclic.cpp - Runs both directions in cycles --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cyclic scheduling (DynaPipe, section 5): as nothing holds the first stage
// back, stage s of S runs up to 2 (S - s) - 1 forwards ahead. A micro-batch is
// then ready wherever a stage turns to its next one, for the memory of nearly
// twice as many as under 1F1B. Costs and limits are not looked at.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/CyclicOrders.h"
#include "runtime/planner/order/schedules/StageGraph.h"

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

/// State of one stage: the items that are ready, and the micro-batches that it
/// holds.
struct CyclicStage {
  std::vector<int> forwards, backwards;
  size_t nextForward = 0, nextBackward = 0;
  int64_t held = 0;
};

class Cycles {
public:
  Cycles(const PipelineProblem &problem, const std::vector<int> &injected)
      : problem_(problem), graph_(problem), stages_(problem.stages()),
        orders_(problem.stages()) {
    const int count = problem.microBatches();
    waiting_.reserve(2 * static_cast<size_t>(problem.stages()) * count);
    for (int s = 0; s < problem.stages(); ++s) {
      const StageGraph::Links into = graph_.into(s), outOf = graph_.outOf(s);
      if (into.empty())
        stages_[s].forwards = injected;
      waiting_.insert(waiting_.end(), count,
                      static_cast<int>(into.end() - into.begin()));
      // In the last stage a backward waits for its own forward.
      const auto gradients = static_cast<int>(outOf.end() - outOf.begin());
      waiting_.insert(waiting_.end(), count, std::max(gradients, 1));
    }
    for (int m = 0; m < count && !problem.previous.empty(); ++m)
      if (const int before = problem.previous[m]; before >= 0)
        for (int s = 0; s < problem.stages(); ++s)
          ++waitingFor(s, ItemKind::Backward, before);
  }

  StageOrders run() {
    while (cycle()) {
    }
    return std::move(orders_);
  }

private:
  /// Runs one cycle. Returns true if anything ran. Items that become ready can
  /// run in the next cycle.
  bool cycle() {
    unlocked_.clear();
    for (int s = 0; s < problem_.stages(); ++s) {
      CyclicStage &stage = stages_[s];
      if (stage.nextBackward < stage.backwards.size()) {
        int m = stage.backwards[stage.nextBackward++];
        stage.held -= problem_.freedBytes(s, m);
        orders_[s].push_back({ItemKind::Backward, m});
        for (const StageLink &link : graph_.into(s))
          if (--waitingFor(link.from, ItemKind::Backward, m) == 0)
            unlocked_.push_back({link.from, ItemKind::Backward, m});
        if (const int before = previousOf(m);
            before >= 0 && --waitingFor(s, ItemKind::Backward, before) == 0)
          unlocked_.push_back({s, ItemKind::Backward, before});
      }
      if (stage.nextForward == stage.forwards.size())
        continue;
      int m = stage.forwards[stage.nextForward];
      if (!problem_.limits.empty() &&
          stage.held + problem_.heldBytes(s, m) > problem_.limits[s])
        continue;
      ++stage.nextForward;
      stage.held += problem_.heldBytes(s, m);
      orders_[s].push_back({ItemKind::Forward, m});
      for (const StageLink &link : graph_.outOf(s))
        if (--waitingFor(link.to, ItemKind::Forward, m) == 0)
          unlocked_.push_back({link.to, ItemKind::Forward, m});
      if (graph_.outOf(s).empty() &&
          --waitingFor(s, ItemKind::Backward, m) == 0)
        unlocked_.push_back({s, ItemKind::Backward, m});
    }
    for (const Unlocked &item : unlocked_)
      (item.kind == ItemKind::Forward ? stages_[item.stage].forwards
                                      : stages_[item.stage].backwards)
          .push_back(item.microBatch);
    return !unlocked_.empty() || anyReady();
  }

  int previousOf(int m) const {
    return problem_.previous.empty() ? -1 : problem_.previous[m];
  }

  /// Returns number of inputs, or gradients, that an item still waits for.
  int &waitingFor(int s, ItemKind kind, int m) {
    return waiting_[(2 * s + (kind == ItemKind::Backward ? 1 : 0)) *
                        problem_.microBatches() +
                    m];
  }

  /// Returns true if any item is ready. The first stage's backwards make
  /// nothing ready.
  bool anyReady() const {
    return std::any_of(stages_.begin(), stages_.end(),
                       [](const CyclicStage &s) {
                         return s.nextForward < s.forwards.size() ||
                                s.nextBackward < s.backwards.size();
                       });
  }

  struct Unlocked {
    int stage;
    ItemKind kind;
    int microBatch;
  };
  const PipelineProblem &problem_;
  const StageGraph graph_;
  std::vector<CyclicStage> stages_;
  std::vector<int> waiting_; ///< [stage][kind][micro-batch]
  std::vector<Unlocked> unlocked_;
  StageOrders orders_;
};

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  std::vector<int> injected(problem.microBatches());
  std::iota(injected.begin(), injected.end(), 0);
  PipelineProblem unlimited = problem;
  unlimited.limits.clear();
  return cyclicOrders(unlimited, injected);
}

} // namespace

int cyclicMostKept(const StageShape &shape) {
  return std::min(2 * (shape.stages - shape.stage) - 1, shape.microBatches);
}

StageOrders cyclicOrders(const PipelineProblem &problem,
                         const std::vector<int> &injected) {
  return Cycles(problem, injected).run();
}

extern const ScheduleRule scheduleCyclic = {
    "cyclic", "one forward and one backward of those ready, in cycles",
    order,    cyclicMostKept,
    false,    false,
    false,    true};

} // namespace dyna
