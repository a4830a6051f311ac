//===- Cyclic.cpp - One forward and one backward in each cycle -*- C++ -*-===//
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

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

/// Of one stage, what is ready and what it holds.
struct CyclicStage {
  std::vector<int> forwards, backwards;
  size_t nextForward = 0, nextBackward = 0;
  int64_t held = 0;
};

class Cycles {
public:
  Cycles(const PipelineProblem &problem, const std::vector<int> &injected)
      : problem_(problem), stages_(problem.stages()),
        orders_(problem.stages()) {
    if (!stages_.empty())
      stages_[0].forwards = injected;
  }

  StageOrders run() {
    while (cycle()) {
    }
    return std::move(orders_);
  }

private:
  /// Whether anything ran. What becomes ready is handed on at its end.
  bool cycle() {
    unlocked_.clear();
    const int last = problem_.stages() - 1;
    for (int s = 0; s <= last; ++s) {
      CyclicStage &stage = stages_[s];
      if (stage.nextBackward < stage.backwards.size()) {
        int m = stage.backwards[stage.nextBackward++];
        stage.held -= problem_.heldBytes(s, m);
        orders_[s].push_back({ItemKind::Backward, m});
        if (s > 0)
          unlocked_.push_back({s - 1, ItemKind::Backward, m});
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
      if (s < last)
        unlocked_.push_back({s + 1, ItemKind::Forward, m});
      else
        unlocked_.push_back({s, ItemKind::Backward, m});
    }
    for (const Unlocked &item : unlocked_)
      (item.kind == ItemKind::Forward ? stages_[item.stage].forwards
                                      : stages_[item.stage].backwards)
          .push_back(item.microBatch);
    return !unlocked_.empty() || anyReady();
  }

  /// The first stage's backwards make nothing ready.
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
  std::vector<CyclicStage> stages_;
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
