//===- ChooseRecompute.cpp - Chooses modes of recomputation ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/ChooseRecompute.h"

#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/order/MakespanWithin.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/schedules/OrderSearch.h"
#include "runtime/planner/order/schedules/PipelineMemory.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dyna {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
/// Items that all makespans of one search may have.
constexpr int64_t mostItems = 500000;

class ModeSearch {
public:
  ModeSearch(const ModeProblems &problems, Schedule schedule)
      : problems_(problems), schedule_(schedule), stages_(problems[0].stages()),
        count_(problems[0].microBatches()) {}

  StatusOr<ChosenModes> run(const StageModes &start) {
    ChosenModes best{{}, never};
    auto descend = [&](StageModes modes) {
      best_ = std::move(modes);
      makespan_ = makespanOfAll(best_);
      while (makespan_ < never && isLeft() && improve())
        ;
      if (makespan_ < best.makespan)
        best = {best_, makespan_};
    };
    if (!start.empty())
      descend(start);
    // A descent depends on its start, so try several starts.
    if (best.makespan == never)
      for (plan::Recompute mode :
           {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
            plan::RECOMPUTE_FULL})
        descend(
            StageModes(stages_, std::vector<plan::Recompute>(count_, mode)));
    if (best.makespan == never)
      return Status::resourceExhausted(
          "no order of these micro-batches fits, with any recomputation");
    return best;
  }

private:
  bool isLeft() const { return items_ < mostItems; }

  double makespanOfAll(const StageModes &modes) {
    items_ += int64_t(2) * stages_ * count_;
    return makespanWithin(mixModes(problems_, modes), schedule_);
  }

  bool take(const StageModes &modes) {
    double makespan = makespanOfAll(modes);
    if (makespan >= makespan_)
      return false;
    makespan_ = makespan;
    best_ = modes;
    return true;
  }

  /// Runs one round over stages and pairs of modes. Returns true if the
  /// makespan improved.
  bool improve() {
    bool improved = false;
    for (int stage = 0; stage < stages_; ++stage)
      for (int from = 0; from < 3; ++from)
        for (int to = 0; to < 3; ++to)
          if (from != to)
            improved |= change(stage, static_cast<plan::Recompute>(from),
                               static_cast<plan::Recompute>(to));
    return improved;
  }

  bool change(int stage, plan::Recompute from, plan::Recompute to) {
    std::vector<int> candidates = ranked(stage, from, to);
    for (size_t most = candidates.size(); most > 0 && isLeft(); most /= 2) {
      StageModes modes = best_;
      for (size_t i = 0; i < most; ++i)
        modes[stage][candidates[i]] = to;
      if (take(modes))
        return true;
    }
    for (size_t i = 1; i < candidates.size() && isLeft(); ++i) {
      StageModes modes = best_;
      modes[stage][candidates[i]] = to;
      if (take(modes))
        return true;
    }
    return false;
  }

  double secondsOf(int stage, int m, plan::Recompute mode) const {
    return problems_[mode].forward[stage][m] +
           problems_[mode].backward[stage][m];
  }

  /// Returns the micro-batches with mode `from`, in the order of the gain from
  /// a change to `to`.
  std::vector<int> ranked(int stage, plan::Recompute from,
                          plan::Recompute to) const {
    std::vector<int> list;
    std::vector<double> rate(count_, 0);
    for (int m = 0; m < count_; ++m) {
      if (best_[stage][m] != from)
        continue;
      list.push_back(m);
      double bytes = static_cast<double>(problems_[from].heldBytes(stage, m) -
                                         problems_[to].heldBytes(stage, m));
      double seconds = secondsOf(stage, m, to) - secondsOf(stage, m, from);
      // The rate is bytes for a second: large is good if bytes are freed, small
      // if they are added.
      rate[m] = seconds != 0 ? bytes / seconds : 0;
      if (bytes < 0)
        rate[m] = -rate[m];
    }
    std::sort(list.begin(), list.end(), [&](int a, int b) {
      return rate[a] != rate[b] ? rate[a] > rate[b] : a < b;
    });
    return list;
  }

  const ModeProblems &problems_;
  const Schedule schedule_;
  const int stages_, count_;
  StageModes best_;
  double makespan_ = never;
  int64_t items_ = 0;
};

} // namespace

PipelineProblem mixModes(const ModeProblems &problems,
                         const StageModes &modes) {
  PipelineProblem mixed = problems[0];
  auto mix = [&](auto table) {
    for (size_t s = 0; s < (mixed.*table).size(); ++s)
      for (size_t m = 0; m < (mixed.*table)[s].size(); ++m)
        (mixed.*table)[s][m] = (problems[modes[s][m]].*table)[s][m];
  };
  for (auto table : {&PipelineProblem::forward, &PipelineProblem::backward,
                     &PipelineProblem::weight, &PipelineProblem::recompute})
    mix(table);
  for (auto table : {&PipelineProblem::kept, &PipelineProblem::late})
    mix(table);
  return mixed;
}

StatusOr<ChosenModes> searchModes(const ModeProblems &problems,
                                  Schedule schedule, const StageModes &start) {
  return ModeSearch(problems, schedule).run(start);
}

/// Returns the modes that `choice` holds for these micro-batches; empty if it
/// holds none.
static StageModes modesBefore(const ExecutableGraph &graph,
                              const std::vector<int> &microBatches,
                              const PlanChoice &choice) {
  if (microBatches.empty() ||
      choice.microBatchRecompute[microBatches[0]].empty())
    return {};
  StageModes modes(graph.stages());
  for (int stage = 0; stage < graph.stages(); ++stage)
    for (int m : microBatches)
      modes[stage].push_back(
          choice.microBatchRecompute[m][graph.stage(stage).firstLayer]);
  return modes;
}

StatusOr<double> chooseRecompute(const ExecutableGraph &graph,
                                 const CostModel &costs, const plan::Plan &plan,
                                 int replica,
                                 const std::vector<int> &microBatches,
                                 const std::vector<int64_t> &beside,
                                 PlanChoice &choice) {
  ModeProblems problems;
  for (size_t mode = 0; mode < problems.size(); ++mode) {
    PlanChoice uniform = choice;
    uniform.recompute = {static_cast<plan::Recompute>(mode)};
    uniform.microBatchRecompute.clear();
    PipelineProblem &problem = problems[mode];
    problem = estimateStages(graph, costs, plan, microBatches, uniform);
    problem.inFlight = choice.inFlight;
    holdBlocks(problem, graph, plan, microBatches, uniform);
    limitStages(problem, graph, replica, choice, beside);
  }
  DYNA_ASSIGN_OR_RETURN(ChosenModes chosen,
                        searchModes(problems, choice.schedule,
                                    modesBefore(graph, microBatches, choice)));
  for (size_t m = 0; m < microBatches.size(); ++m) {
    RecomputeModes &layers = choice.microBatchRecompute[microBatches[m]];
    layers.clear();
    for (int stage = 0; stage < graph.stages(); ++stage)
      layers.insert(layers.end(),
                    graph.stage(stage).endLayer - graph.stage(stage).firstLayer,
                    chosen.modes[stage][m]);
  }
  return chosen.makespan;
}

} // namespace dyna
