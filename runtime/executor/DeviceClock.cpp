//===- DeviceClock.cpp - When a device did what it was given --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceClock.h"

namespace dyna {

Status DeviceClock::record(size_t slice) {
  if (count_ == marks_.size()) {
    DYNA_ASSIGN_OR_RETURN(auto event, device_.createEvent());
    marks_.push_back({std::move(event), 0});
  }
  Mark &mark = marks_[count_++];
  mark.slice = slice;
  return device_.record(stream_, *mark.event);
}

Status DeviceClock::start(const TraceRecorder &recorder) {
  count_ = 0;
  if (!device_.runsLate())
    return Status::ok();
  begin_ = recorder.now();
  return record(0);
}

Status DeviceClock::mark(size_t slice) {
  return device_.runsLate() ? record(slice) : Status::ok();
}

Status DeviceClock::read(TraceRecorder &recorder) {
  double before = 0;
  for (size_t i = 1; i < count_; ++i) {
    DYNA_ASSIGN_OR_RETURN(
        double after,
        device_.secondsBetween(*marks_[0].event, *marks_[i].event));
    recorder.move(marks_[i].slice, begin_ + before, after - before);
    before = after;
  }
  count_ = 0;
  return Status::ok();
}

} // namespace dyna
