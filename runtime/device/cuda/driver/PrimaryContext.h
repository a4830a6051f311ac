//===- PrimaryContext.h - Shares one device of CUDA's driver ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The buffers, streams, events and modules of one device share this object and
// keep it alive. It holds the driver's context, reused events, the list of
// streams, and the failure that ended the use of the device.
//
// A fault on a device ends the driver's context. A device that hangs blocks
// calls that free anything. So after the first such failure the driver is not
// called again. Every function returns that failure, and remaining memory is
// freed with the process.
//
// Used by one thread at a time, which need not always be the same one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_PRIMARYCONTEXT_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_PRIMARYCONTEXT_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/driver/Driver.h"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dyna::cuda {

class PrimaryContext {
public:
  /// Creates the context of the device `ordinal`, from 0 as the driver counts.
  /// Fails with InvalidArgument if there is no such device, or no driver.
  static StatusOr<std::shared_ptr<PrimaryContext>> create(int ordinal,
                                                          double idleSeconds);
  PrimaryContext(const PrimaryContext &) = delete;
  PrimaryContext &operator=(const PrimaryContext &) = delete;
  ~PrimaryContext();

  const Driver &driver() const { return driver_; }
  const std::string &name() const { return name_; }
  const std::string &label() const { return label_; } ///< with number and name
  int capability() const { return capability_; }      ///< 10 major + minor
  int64_t totalBytes() const { return totalBytes_; }
  int64_t maxSharedBytes() const { return maxSharedBytes_; } ///< of a block

  /// Makes the driver's calls of this thread go to the device. Returns the
  /// failure that ended its use, if any.
  Status enter();
  /// Checks a call whose arguments the caller chose, so that it may be refused.
  /// The device stays usable.
  Status check(Result result, std::string_view what);
  /// Checks a call that gives work or queries it. A failure ends the device's
  /// use. `kernel`, unless null, was launched last on the stream.
  Status checkWork(Result result, std::string_view what,
                   const char *kernel = nullptr);
  /// Ends the device's use after a failure of a library's work.
  Status end(std::string_view what, const char *kernel = nullptr);

  /// Sets a function that is called when work fails. Its failure, unless it is
  /// OK, replaces the driver's, because a kernel can give a better reason.
  /// Null: none.
  void explainFailures(std::function<Status()> explain) {
    explain_ = std::move(explain);
  }

  /// Polls until the result is not "not ready", less and less often. A deadline
  /// that passes ends the device's use, and DeadlineExceeded names `what` was
  /// waited for.
  Status poll(const std::function<Result()> &query, Device::Deadline deadline,
              std::string_view what, const char *kernel);
  /// Waits until no stream has work, for at most `idleSeconds`. Returns true if
  /// that is so.
  bool awaitIdle();

  /// Takes an event. Events are reused, because most are needed for a moment
  /// only.
  StatusOr<EventHandle> takeEvent();
  void giveBack(EventHandle event) { events_.push_back(event); }

  struct StreamRecord {
    StreamHandle handle;
    const char *kernel = nullptr; ///< launched last
  };
  StatusOr<StreamHandle> createStream();
  void destroyStream(StreamHandle handle);
  /// Returns null for a handle of another device.
  StreamRecord *find(StreamHandle handle);
  /// Makes `stream` wait for the work given to `last` so far, unless they are
  /// equal. Then sets `last` to `stream`. For memory that calls on any stream
  /// use in turn.
  Status follow(StreamHandle &last, StreamHandle stream);
  /// Returns a copy of the name that lives as long as this object.
  const char *keepName(std::string_view name);

private:
  PrimaryContext() = default;
  Status fail(StatusCode code, std::string_view what);

  Driver driver_;
  Ordinal ordinal_ = 0;
  Context context_ = nullptr;
  std::string name_, label_;
  int capability_ = 0;
  int64_t totalBytes_ = 0;
  int64_t maxSharedBytes_ = 0;
  double idleSeconds_ = 0;
  Status failure_;
  std::function<Status()> explain_;
  std::vector<EventHandle> events_;
  std::vector<StreamRecord> streams_;
  std::set<std::string, std::less<>> names_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_PRIMARYCONTEXT_H
