//===- PipelineSchedule.cpp - The order of work and messages of a replica -===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/PipelineSchedule.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace dyna {
namespace {

using Items = std::vector<PipelineItem>;

Items gpipeItems(int count, int window, bool backward) {
  Items items;
  for (int begin = 0; begin < count; begin += window) {
    int end = std::min(begin + window, count);
    for (int m = begin; m < end; ++m)
      items.push_back({true, m});
    for (int m = begin; backward && m < end; ++m)
      items.push_back({false, m});
  }
  return items;
}

Items oneForwardOneBackwardItems(int count, int ahead) {
  Items items;
  for (int m = 0; m < count + ahead; ++m) {
    if (m < count)
      items.push_back({true, m});
    // The first backward follows the forward number `ahead`.
    if (int b = m - ahead + 1; b >= 0 && b < count)
      items.push_back({false, b});
  }
  return items;
}

/// When the input of an item is there; negative while that is not known.
class Times {
public:
  /// `sentAhead`: how many micro-batches a stage may be ahead of the next one;
  /// 0 where backwards hold it back.
  Times(size_t stages, size_t count, int sentAhead)
      : forward_(stages, std::vector<double>(count, -1)), backward_(forward_),
        sentAhead_(sentAhead) {}

  double &end(size_t stage, const PipelineItem &item) {
    return (item.forward ? forward_ : backward_)[stage][item.microBatch];
  }
  double inputOf(size_t stage, const PipelineItem &item) const {
    int m = item.microBatch;
    if (item.forward) {
      double input = stage > 0 ? forward_[stage - 1][m] : 0;
      if (sentAhead_ == 0 || m < sentAhead_ || stage + 1 == forward_.size())
        return input;
      double room = forward_[stage + 1][m - sentAhead_];
      return std::min(input, room) < 0 ? -1 : std::max(input, room);
    }
    return stage + 1 < backward_.size() ? backward_[stage + 1][m]
                                        : forward_[stage][m];
  }

private:
  std::vector<std::vector<double>> forward_, backward_;
  int sentAhead_;
};

void runItems(PipelineSchedule &schedule,
              const std::vector<std::vector<double>> &forward, int sentAhead,
              double backwardFactor) {
  size_t stages = schedule.stages.size();
  Times times(stages, forward[0].size(), sentAhead);
  std::vector<size_t> next(stages, 0);
  std::vector<double> free(stages, 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t s = 0; s < stages; ++s)
      while (next[s] < schedule.stages[s].size()) {
        PipelineItem &item = schedule.stages[s][next[s]];
        double input = times.inputOf(s, item);
        if (input < 0)
          break;
        double duration =
            forward[s][item.microBatch] * (item.forward ? 1 : backwardFactor);
        item.start = std::max(free[s], input);
        item.end = free[s] = item.start + duration;
        times.end(s, item) = item.end;
        ++next[s];
        progress = true;
      }
  }
  for (size_t s = 0; s < stages; ++s)
    assert(next[s] == schedule.stages[s].size() &&
           "the schedules of the stages wait for each other");
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

PipelineSchedule
schedulePipeline(const std::vector<std::vector<double>> &forward,
                 const PlanOptions &options, bool backward,
                 double backwardFactor) {
  PipelineSchedule schedule;
  int stages = static_cast<int>(forward.size());
  int count = static_cast<int>(forward[0].size());
  bool sequential = options.schedule == Schedule::Sequential;
  int window = sequential ? 1 : options.inFlight;
  for (int s = 0; s < stages; ++s)
    schedule.stages.push_back(
        backward && options.schedule == Schedule::OneForwardOneBackward
            ? oneForwardOneBackwardItems(count, stages - s)
            : gpipeItems(count, window, backward));
  // Without backwards nothing else holds a fast stage back: one to work on and
  // one behind it keep the next one busy, and memory for received inputs does
  // not grow with their number.
  int sentAhead = backward ? 0 : sequential ? 1 : 2;
  runItems(schedule, forward, sentAhead, backwardFactor);
  collectMessages(schedule);
  return schedule;
}

} // namespace dyna
