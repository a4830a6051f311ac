//===- TaskGraph.h - When work in lanes runs --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A lane is whatever does one thing after another: a stage of a pipeline, a
// rank, a link. Its tasks run in the order in which they were added, each as
// soon as the lane is free and all that it waits for has ended. Whoever wants
// to know when something happens (a schedule that orders its messages, the
// simulation of a plan) asks here, so that there is one answer.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_TASKGRAPH_H
#define DYNA_RUNTIME_SIM_TASKGRAPH_H

#include "runtime/base/Status.h"

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

  /// The number of the task; they are numbered from 0 on. One that is in no
  /// lane runs whenever all that it waits for has ended: a message, a meeting.
  int add(int lane, double seconds);
  static constexpr int noLane = -1;
  /// `task` does not start before `other` has ended.
  void wait(int task, int other) { waits_.push_back({task, other}); }

  /// When each task runs. Fails, with a task that never starts (as `describe`
  /// calls it, if given), where tasks wait for each other. O(tasks + waits),
  /// whatever their order.
  StatusOr<std::vector<TaskTime>>
  run(const std::function<std::string(int)> &describe = {}) const;

private:
  std::vector<double> seconds_;
  std::vector<std::pair<int, int>> waits_; ///< (task, other)
  std::vector<int> before_;                ///< in the same lane, -1: none
  std::vector<int> last_;                  ///< of each lane so far
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_TASKGRAPH_H
