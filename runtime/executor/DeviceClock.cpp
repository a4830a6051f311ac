//===- DeviceClock.cpp - When a device did what it was given --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceClock.h"

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
  double before = 0;
  for (size_t i = 1; i < step.marks.size(); ++i) {
    DYNA_ASSIGN_OR_RETURN(double after,
                          device_.secondsBetween(start, *step.marks[i].event));
    recorder.move(step.marks[i].slice, *step.begin + before, after - before);
    before = after;
  }
  step.marks.resize(1);
  before_ = std::move(step);
  steps_.pop_front();
  return Status::ok();
}

} // namespace dyna
