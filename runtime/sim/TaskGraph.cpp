//===- TaskGraph.cpp - Computes times of tasks in lanes -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/TaskGraph.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

void TaskGraph::reserve(size_t tasks, size_t waits) {
  seconds_.reserve(tasks);
  before_.reserve(tasks);
  waits_.reserve(waits);
}

int TaskGraph::add(int lane, double seconds) {
  int task = tasks();
  seconds_.push_back(seconds);
  before_.push_back(lane == noLane ? -1 : last_[lane]);
  if (lane != noLane)
    last_[lane] = task;
  return task;
}

StatusOr<std::vector<TaskTime>>
TaskGraph::run(const std::function<std::string(int)> &describe) const {
  const int count = tasks();
  // The tasks that wait for a task begin at `first[task]` in `waiting`.
  std::vector<int> first(count + 1, 0), pending(count, 0), waiting;
  auto forEachWait = [&](auto take) {
    for (auto [task, other] : waits_)
      take(task, other);
    for (int task = 0; task < count; ++task)
      if (before_[task] >= 0)
        take(task, before_[task]);
  };
  forEachWait([&](int task, int other) {
    ++first[other];
    ++pending[task];
  });
  int sum = 0;
  for (int &entry : first)
    entry = sum += entry;
  waiting.resize(sum);
  forEachWait([&](int task, int other) { waiting[--first[other]] = task; });

  std::vector<TaskTime> times(count);
  std::vector<int> ready;
  ready.reserve(count);
  for (int task = 0; task < count; ++task)
    if (pending[task] == 0)
      ready.push_back(task);
  for (size_t next = 0; next < ready.size(); ++next) {
    int task = ready[next];
    times[task].end = times[task].start + seconds_[task];
    for (int i = first[task]; i < first[task + 1]; ++i) {
      TaskTime &other = times[waiting[i]];
      other.start = std::max(other.start, times[task].end);
      if (--pending[waiting[i]] == 0)
        ready.push_back(waiting[i]);
    }
  }
  if (ready.size() == static_cast<size_t>(count))
    return times;
  auto stuck = std::find_if(pending.begin(), pending.end(),
                            [](int left) { return left > 0; });
  int task = static_cast<int>(stuck - pending.begin());
  return Status::internal(
      formatText("%d of %d tasks wait for each other, such as %s",
                 static_cast<size_t>(count) - ready.size(), count,
                 describe ? describe(task) : formatText("task %d", task)));
}

} // namespace dyna
