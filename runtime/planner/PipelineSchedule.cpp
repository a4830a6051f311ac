//===- PipelineSchedule.cpp - The order of work and messages of a replica -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PipelineSchedule.h"

#include "runtime/sim/TaskGraph.h"

#include <algorithm>
#include <tuple>

namespace dyna {
namespace {

using Items = std::vector<PipelineItem>;

Items forwards(int count) {
  Items items;
  for (int m = 0; m < count; ++m)
    items.push_back({true, m});
  return items;
}

/// Costs come from files: functions that take nothing, or a billion times what
/// others take. Everything that follows relies on times that grow from each
/// item to the next, so what is far below the longest item counts as a
/// billionth of it, and far above any clock as that.
class ItemSeconds {
public:
  explicit ItemSeconds(const StageCosts &costs) : costs_(costs) {
    for (const auto *list : {&costs.forward, &costs.backward})
      for (const std::vector<double> &stage : *list)
        for (double seconds : stage)
          longest_ = std::max(longest_, std::min(seconds, most));
  }
  double of(int stage, const PipelineItem &item) const {
    const auto &list = item.forward ? costs_.forward : costs_.backward;
    return std::clamp(list[stage][item.microBatch], 1e-9 * longest_, most);
  }

private:
  static constexpr double most = 1e18;
  const StageCosts &costs_;
  double longest_ = 1e-18;
};

/// Fills in when the items run. `sentAhead`: how many micro-batches a stage may
/// be ahead of the next one; 0 where backwards hold it back.
Status timeItems(PipelineSchedule &schedule, const StageCosts &costs,
                 int sentAhead) {
  const int stages = static_cast<int>(schedule.stages.size());
  const size_t count = costs.forward[0].size();
  TaskGraph graph(stages);
  size_t items = 0;
  for (const Items &list : schedule.stages)
    items += list.size();
  graph.reserve(items, 2 * items);
  ItemSeconds seconds(costs);
  // The task of each item.
  std::vector<std::vector<int>> forward(stages, std::vector<int>(count, -1));
  std::vector<std::vector<int>> backward = forward;
  for (int s = 0; s < stages; ++s)
    for (const PipelineItem &item : schedule.stages[s])
      (item.forward ? forward : backward)[s][item.microBatch] =
          graph.add(s, seconds.of(s, item));
  for (int s = 0; s < stages; ++s)
    for (const PipelineItem &item : schedule.stages[s]) {
      int m = item.microBatch;
      if (!item.forward) {
        graph.wait(backward[s][m],
                   s + 1 < stages ? backward[s + 1][m] : forward[s][m]);
        continue;
      }
      if (s > 0)
        graph.wait(forward[s][m], forward[s - 1][m]);
      if (sentAhead > 0 && m >= sentAhead && s + 1 < stages)
        graph.wait(forward[s][m], forward[s + 1][m - sentAhead]);
    }
  DYNA_ASSIGN_OR_RETURN(std::vector<TaskTime> times, graph.run());
  auto next = times.begin();
  for (Items &list : schedule.stages)
    for (PipelineItem &item : list) {
      item.start = next->start;
      item.end = next++->end;
    }
  return Status::ok();
}

void collectMessages(PipelineSchedule &schedule) {
  int stages = static_cast<int>(schedule.stages.size());
  for (int s = 0; s < stages; ++s)
    for (const PipelineItem &item : schedule.stages[s]) {
      int to = item.forward ? s + 1 : s - 1;
      if (to >= 0 && to < stages)
        schedule.messages.push_back(
            {s, to, item.microBatch, !item.forward, item.end});
    }
  std::sort(schedule.messages.begin(), schedule.messages.end(),
            [](const PipelineMessage &a, const PipelineMessage &b) {
              return std::tie(a.time, a.from, a.microBatch, a.gradient) <
                     std::tie(b.time, b.from, b.microBatch, b.gradient);
            });
}

} // namespace

StatusOr<PipelineSchedule> schedulePipeline(const StageCosts &costs,
                                            const PlanOptions &options,
                                            bool backward) {
  PipelineSchedule schedule;
  const ScheduleRule &rule = ruleOf(options.schedule);
  int stages = static_cast<int>(costs.forward.size());
  int count = static_cast<int>(costs.forward[0].size());
  for (int s = 0; s < stages; ++s)
    schedule.stages.push_back(
        backward ? rule.order({s, stages, count, options.inFlight})
                 : forwards(count));
  // Without backwards nothing else holds a fast stage back: one to work on and
  // one behind it keep the next one busy, and memory for received inputs does
  // not grow with their number.
  int sentAhead = backward ? 0 : rule.waitsForSends ? 1 : 2;
  DYNA_RETURN_IF_ERROR(timeItems(schedule, costs, sentAhead));
  collectMessages(schedule);
  return schedule;
}

} // namespace dyna
