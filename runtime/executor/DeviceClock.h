//===- DeviceClock.h - When a device did what it was given ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_DEVICECLOCK_H
#define DYNA_RUNTIME_EXECUTOR_DEVICECLOCK_H

#include "runtime/device/Device.h"
#include "runtime/executor/Trace.h"

#include <memory>
#include <vector>

namespace dyna {

/// Slices of a trace know when the host gave their work. Where a device runs late,
/// its stream gets a mark behind each, and once all of the step is done, slices
/// are moved to when the work was done: from the mark before to their own.
class DeviceClock {
public:
  DeviceClock(Device &device, Stream &stream)
      : device_(device), stream_(stream) {}

  /// A step begins, and the device has nothing to do: its clock and the recorder's
  /// say the same.
  Status start(const TraceRecorder &recorder);
  /// What was given since the last mark is slice number `slice`.
  Status mark(size_t slice);
  /// All marks are done: moves their slices.
  Status read(TraceRecorder &recorder);

private:
  struct Mark {
    std::unique_ptr<Event> event; ///< of a step before, if there was one
    size_t slice = 0;
  };
  /// The next one, recorded.
  Status record(size_t slice);

  Device &device_;
  Stream &stream_;
  double begin_ = 0; ///< of the step, in the recorder's seconds
  std::vector<Mark> marks_;
  size_t count_ = 0; ///< of this step, that of its start among them
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_DEVICECLOCK_H
