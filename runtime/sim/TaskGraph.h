//===- TaskGraph.h - Computes times of tasks in lanes -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A lane does one thing after another: a stage of a pipeline, a rank, a link. Its
// tasks run in the order in which they were added. A task starts when its lane is
// free and all tasks that it waits for have ended. Schedules and the simulation of
// plans both use this graph, so they agree.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_TASKGRAPH_H
#define DYNA_RUNTIME_SIM_TASKGRAPH_H

#include "runtime/base/error/Status.h"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dyna {

struct TaskTime {
  double start = 0, end = 0;
};

class TaskGraph {
public:
  explicit TaskGraph(int lanes) : last_(lanes, -1) {}

  int lanes() const { return static_cast<int>(last_.size()); }
  int tasks() const { return static_cast<int>(seconds_.size()); }
  void reserve(size_t tasks, size_t waits);

  /// Adds a task and returns its number, from 0. A task without a lane, such as a
  /// message, starts when all tasks that it waits for have ended.
  int add(int lane, double seconds);
  static constexpr int noLane = -1;
  /// Makes `task` wait for the end of `other`.
  void wait(int task, int other) { waits_.push_back({task, other}); }

  /// Computes when each task runs. If tasks wait for each other, fails and names a
  /// task that never starts, by `describe` if given. O(tasks + waits) in any order.
  StatusOr<std::vector<TaskTime>>
  run(const std::function<std::string(int)> &describe = {}) const;

private:
  std::vector<double> seconds_;
  std::vector<std::pair<int, int>> waits_; ///< (task, other)
  std::vector<int> before_; ///< task before it in its lane; -1: none
  std::vector<int> last_;   ///< last task of each lane
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_TASKGRAPH_H
