//===- PrimaryContext.h - One device of CUDA's driver -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the buffers, streams, events and modules of one device share, and hold on
// to: the driver's context, reused events, the streams that there are, and the
// failure after which the device is not used any more.
//
// A fault on a device ends the driver's context, and one that hangs blocks calls
// which free anything. So after the first such failure the driver is not called
// again: every function returns that failure, and what is left to be freed goes
// with the process.
//
// One thread at a time, which need not be the same one.
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
  /// Of the device `ordinal`, from 0 as the driver counts. InvalidArgument when
  /// there is no such device, or no driver.
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

  /// Makes the driver's calls of this thread go to the device. The failure that
  /// ended its use, if there was one.
  Status enter();
  /// Of a call with what the caller chose, which may be refused: device lives on.
  Status check(Result result, std::string_view what);
  /// Of a call that gives work or asks for it: a failure ends the device's use.
  /// `kernel`, unless null, was launched last on the stream.
  Status checkWork(Result result, std::string_view what,
                   const char *kernel = nullptr);
  /// Of a library that gave work, or failed to: ends the device's use.
  Status end(std::string_view what, const char *kernel = nullptr);

  /// `explain` is asked when work fails, and its own failure, unless it is OK,
  /// stands in for the driver's: a kernel knows more than that it failed. Null:
  /// nobody is asked.
  void explainFailures(std::function<Status()> explain) {
    explain_ = std::move(explain);
  }

  /// Asks until there is another answer than "not ready", more and more seldom.
  /// A deadline that passes ends the device's use: DeadlineExceeded says `what`
  /// was waited for.
  Status poll(const std::function<Result()> &query, Device::Deadline deadline,
              std::string_view what, const char *kernel);
  /// Waits until no stream has work, `idleSeconds` at most; whether that is so.
  bool awaitIdle();

  /// Events are reused: most are needed for a moment.
  StatusOr<EventHandle> takeEvent();
  void giveBack(EventHandle event) { events_.push_back(event); }

  struct StreamRecord {
    StreamHandle handle;
    const char *kernel = nullptr; ///< launched last
  };
  StatusOr<StreamHandle> createStream();
  void destroyStream(StreamHandle handle);
  /// Null for a handle of another device.
  StreamRecord *find(StreamHandle handle);
  /// Makes `stream` wait for what was given to `last` so far, unless they are one,
  /// and `last` becomes `stream`: of memory that calls on any stream use in turn.
  Status follow(StreamHandle &last, StreamHandle stream);
  /// A copy of the name that lives as long as this does.
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
