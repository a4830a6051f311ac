//===- DeviceClock.cpp - Times the work of a device that runs late --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/trace/DeviceClock.h"

#include <algorithm>

namespace dyna {

Status DeviceClock::record(size_t slice) {
  Mark &mark = steps_.back().marks.emplace_back();
  DYNA_ASSIGN_OR_RETURN(mark.event, device_.createEvent());
  mark.slice = slice;
  return device_.record(stream_, *mark.event);
}

Status DeviceClock::start(const TraceRecorder &recorder) {
  if (!device_.runsLate())
    return Status::ok();
  const bool isIdle = steps_.empty();
  Step &step = steps_.emplace_back();
  if (isIdle)
    step.begin = recorder.now();
  return record(0);
}

Status DeviceClock::mark(size_t slice) {
  return device_.runsLate() ? record(slice) : Status::ok();
}

Status DeviceClock::read(TraceRecorder &recorder) {
  if (steps_.empty())
    return Status::ok();
  Step &step = steps_.front();
  const Event &start = *step.marks[0].event;
  if (!step.begin) {
    DYNA_ASSIGN_OR_RETURN(
        double passed, device_.secondsBetween(*before_.marks[0].event, start));
    step.begin = *before_.begin + passed;
  }
  // The two clocks drift: a step that would begin before the end of the last one is
  // moved as a whole, so that durations stay. Times between events are rounded, each
  // for itself.
  step.begin = std::max(*step.begin, end_);
  double before = *step.begin;
  for (size_t i = 1; i < step.marks.size(); ++i) {
    DYNA_ASSIGN_OR_RETURN(double passed,
                          device_.secondsBetween(start, *step.marks[i].event));
    end_ = std::max(before, *step.begin + passed);
    recorder.move(step.marks[i].slice, before, end_);
    before = end_;
  }
  step.marks.resize(1);
  before_ = std::move(step);
  steps_.pop_front();
  return Status::ok();
}

} // namespace dyna
