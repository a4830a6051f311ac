//===- Schedules.cpp - Lists the schedules ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include "runtime/planner/order/schedules/StageGraph.h"

namespace dyna {

#define DYNA_SCHEDULE(Id) extern const ScheduleRule schedule##Id;
#include "runtime/planner/order/schedules/Schedules.def"

const ScheduleRule &ruleOf(Schedule schedule) {
  switch (schedule) {
#define DYNA_SCHEDULE(Id)                                                      \
  case Schedule::Id:                                                           \
    return schedule##Id;
#include "runtime/planner/order/schedules/Schedules.def"
  }
  __builtin_unreachable();
}

StageOrders
ordersByShape(const PipelineProblem &problem,
              std::vector<PipelineItem> (*ofStage)(const StageShape &,
                                                   const BackwardOrder &)) {
  const StageGraph graph(problem);
  const BackwardOrder backwards(problem);
  const int levels = graph.levels();
  StageOrders orders;
  for (int s = 0; s < problem.stages(); ++s)
    orders.push_back(ofStage({levels - graph.depth(s), levels,
                              problem.microBatches(), problem.inFlight},
                             backwards));
  return orders;
}

void addWeights(StageOrders &orders) {
  for (auto &items : orders) {
    std::vector<PipelineItem> split;
    for (const PipelineItem &item : items) {
      split.push_back(item);
      if (item.isBackward())
        split.push_back({ItemKind::Weight, item.microBatch});
    }
    items = std::move(split);
  }
}

const std::vector<Schedule> &allSchedules() {
  static const std::vector<Schedule> all = {
#define DYNA_SCHEDULE(Id) Schedule::Id,
#include "runtime/planner/order/schedules/Schedules.def"
  };
  return all;
}

Schedule defaultSchedule(int stages) {
  return stages > 1 ? Schedule::Adaptive : Schedule::OneForwardOneBackward;
}

std::vector<std::string> scheduleNames() {
  std::vector<std::string> names;
  for (Schedule schedule : allSchedules())
    names.push_back(ruleOf(schedule).name);
  return names;
}

StatusOr<Schedule> findSchedule(const std::string &name) {
  std::string names;
  for (Schedule schedule : allSchedules()) {
    if (name == ruleOf(schedule).name)
      return schedule;
    names += (names.empty() ? "" : ", ") + std::string(ruleOf(schedule).name);
  }
  return Status::invalidArgument("the schedules are " + names + ", but got '" +
                                 name + "'");
}

} // namespace dyna
