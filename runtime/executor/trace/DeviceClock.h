//===- DeviceClock.h - Times the work of a device that runs late ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_TRACE_DEVICECLOCK_H
#define DYNA_RUNTIME_EXECUTOR_TRACE_DEVICECLOCK_H

#include "runtime/device/Device.h"
#include "runtime/executor/trace/Trace.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace dyna {

/// Moves slices of a trace to the times at which the device did their work. At
/// first a slice has the time at which the host gave the work. A device that
/// runs late gets a mark after each slice in its stream. When a step is done, a
/// slice lasts from the mark before it to its own.
class DeviceClock {
public:
  DeviceClock(Device &device, Stream &stream)
      : device_(device), stream_(stream) {}

  /// Starts a step, after those that are not read. If there are none, the
  /// device is idle. Then its clock and the recorder's clock are set to the
  /// same time.
  Status start(const TraceRecorder &recorder);
  /// Marks the end of slice number `slice`, which is the work since the last mark.
  Status mark(size_t slice);
  /// Moves the slices of the first step. All its marks are done.
  Status read(TraceRecorder &recorder);

private:
  struct Mark {
    std::unique_ptr<Event> event;
    size_t slice = 0;
  };
  struct Step {
    std::optional<double> begin; ///< in the recorder's seconds, if known
    std::vector<Mark> marks;     ///< mark of the start, then marks of slices
  };
  /// Records one more mark of the last step.
  Status record(size_t slice);

  Device &device_;
  Stream &stream_;
  std::deque<Step> steps_; ///< not read yet
  Step before_;            ///< the last step that was read: its start alone
  double end_ = 0; ///< end of the last moved slice: slices do not overlap
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_TRACE_DEVICECLOCK_H
