//===- PrimaryContext.cpp - Shares one device of CUDA's driver ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/PrimaryContext.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <thread>
#include <utility>

using namespace dyna;
using namespace dyna::cuda;

StatusOr<std::shared_ptr<PrimaryContext>>
PrimaryContext::create(int ordinal, double idleSeconds) {
  DYNA_ASSIGN_OR_RETURN(Driver driver, Driver::open());
  if (ordinal < 0 || ordinal >= driver.devices)
    return Status::invalidArgument(formatText(
        "there is no CUDA device %d: the driver has %d, counted from 0",
        ordinal, driver.devices));
  std::shared_ptr<PrimaryContext> made(new PrimaryContext());
  made->driver_ = driver;
  made->idleSeconds_ = idleSeconds;
  made->label_ = formatText("CUDA device %d", ordinal);
  auto check = [&](Result result, const char *what) {
    return made->check(result, what);
  };
  DYNA_RETURN_IF_ERROR(
      check(driver.device(&made->ordinal_, ordinal), "finding it"));
  char name[256] = "";
  DYNA_RETURN_IF_ERROR(
      check(driver.deviceName(name, sizeof(name), made->ordinal_),
            "asking for its name"));
  made->name_ = printable(name);
  made->label_ += " (" + made->name_ + ")";
  int major = 0, minor = 0, shared = 0;
  for (auto [value, attribute] : {std::pair(&major, kCapabilityMajor),
                                  {&minor, kCapabilityMinor},
                                  {&shared, kMaxSharedPerBlock}})
    DYNA_RETURN_IF_ERROR(
        check(driver.deviceAttribute(value, attribute, made->ordinal_),
              "asking for its properties"));
  made->capability_ = 10 * major + minor;
  made->maxSharedBytes_ = shared;
  size_t total = 0;
  DYNA_RETURN_IF_ERROR(check(driver.deviceMemory(&total, made->ordinal_),
                             "asking for its memory"));
  made->totalBytes_ = static_cast<int64_t>(total);
  Context context = nullptr;
  DYNA_RETURN_IF_ERROR(
      check(driver.retainContext(&context, made->ordinal_), "taking it"));
  made->context_ = context;
  return made;
}

PrimaryContext::~PrimaryContext() {
  if (!context_ || !enter().isOk())
    return;
  for (EventHandle event : events_)
    (void)driver_.destroyEvent(event);
  // Streams that their owners destroyed may still have work.
  (void)driver_.releaseContext(ordinal_);
}

//===----------------------------------------------------------------------===//
// Failures and waits
//===----------------------------------------------------------------------===//

Status PrimaryContext::fail(StatusCode code, std::string_view what) {
  failure_ = Status(code, formatText("%s: %s", label_, what));
  return failure_;
}

Status PrimaryContext::enter() {
  if (!failure_.isOk())
    return failure_;
  return checkWork(driver_.setContext(context_), "taking it for a thread");
}

/// Returns true if a call was only refused for its arguments.
static bool isRefusal(Result result) {
  switch (result) {
  case kInvalidValue:
  case kOutOfMemory:
  case kInvalidDevice:
  case kInvalidImage:
  case kNoBinaryForGpu:
  case kInvalidPtx:
  case kJitCompilerNotFound:
  case kUnsupportedPtxVersion:
  case kInvalidHandle:
  case kNotFound:
    return true;
  default:
    return false;
  }
}

Status PrimaryContext::check(Result result, std::string_view what) {
  if (result == kSuccess)
    return Status::ok();
  if (!isRefusal(result))
    return checkWork(result, what);
  return Status::deviceError(
      formatText("%s: %s: %s", label_, what, driver_.describe(result)));
}

Status PrimaryContext::checkWork(Result result, std::string_view what,
                                 const char *kernel) {
  if (result == kSuccess)
    return Status::ok();
  if (Status why = explain_ ? explain_() : Status::ok(); !why.isOk())
    return failure_ = why;
  return end(formatText("%s: %s", what, driver_.describe(result)), kernel);
}

/// Names the last launched kernel, which need not have failed: others were
/// running too.
static std::string lastLaunch(const char *kernel) {
  return kernel ? formatText("; the last kernel that was launched there is %s, "
                             "and one before it may have failed",
                             kernel)
                : "";
}

Status PrimaryContext::end(std::string_view what, const char *kernel) {
  return fail(StatusCode::DeviceError,
              formatText("%s%s", what, lastLaunch(kernel)));
}

Status PrimaryContext::poll(const std::function<Result()> &query,
                            Device::Deadline deadline, std::string_view what,
                            const char *kernel) {
  using Clock = std::chrono::steady_clock;
  // Most waits are short, and a sleep takes fifty microseconds at least.
  constexpr int kSpins = 200;
  constexpr std::chrono::microseconds kLongest(1000);
  const Clock::time_point begin = Clock::now();
  std::chrono::microseconds pause(20);
  for (int asked = 0;; ++asked) {
    Result result = query();
    if (result != kNotReady)
      return checkWork(result, what, kernel);
    if (Clock::now() >= deadline) {
      double seconds =
          std::chrono::duration<double>(Clock::now() - begin).count();
      return fail(StatusCode::DeadlineExceeded,
                  formatText("%s: not done by its deadline, %.1f s after it "
                             "was asked for%s; the device is given up",
                             what, seconds, lastLaunch(kernel)));
    }
    if (asked < kSpins)
      continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

bool PrimaryContext::awaitIdle() {
  if (!enter().isOk())
    return false;
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::microseconds(int64_t(idleSeconds_ * 1e6));
  for (const StreamRecord &stream : streams_)
    if (!poll([&] { return driver_.queryStream(stream.handle); }, deadline,
              "the end of work before something is freed", stream.kernel)
             .isOk())
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Events, streams, names
//===----------------------------------------------------------------------===//

StatusOr<EventHandle> PrimaryContext::takeEvent() {
  DYNA_RETURN_IF_ERROR(enter());
  EventHandle event = nullptr;
  if (events_.empty()) {
    DYNA_RETURN_IF_ERROR(
        check(driver_.createEvent(&event, kEventDefault), "creating an event"));
    return event;
  }
  event = events_.back();
  events_.pop_back();
  return event;
}

StatusOr<StreamHandle> PrimaryContext::createStream() {
  DYNA_RETURN_IF_ERROR(enter());
  StreamHandle handle = nullptr;
  DYNA_RETURN_IF_ERROR(check(driver_.createStream(&handle, kStreamNonBlocking),
                             "creating a stream"));
  streams_.push_back({handle});
  return handle;
}

void PrimaryContext::destroyStream(StreamHandle handle) {
  // A stream that is not listed is unknown to `awaitIdle`, so wait for it
  // first.
  bool isIdle = awaitIdle();
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                [&](const StreamRecord &stream) {
                                  return stream.handle == handle;
                                }),
                 streams_.end());
  if (isIdle)
    (void)driver_.destroyStream(handle);
}

PrimaryContext::StreamRecord *PrimaryContext::find(StreamHandle handle) {
  for (StreamRecord &stream : streams_)
    if (stream.handle == handle)
      return &stream;
  return nullptr;
}

Status PrimaryContext::follow(StreamHandle &last, StreamHandle stream) {
  StreamHandle before = std::exchange(last, stream);
  if (before == stream || !before || !find(before))
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(EventHandle event, takeEvent());
  Status status = checkWork(driver_.record(event, before),
                            "recording the end of what used a workspace");
  if (status.isOk())
    status = checkWork(driver_.streamWait(stream, event, 0),
                       "making a stream wait for a workspace");
  giveBack(event);
  return status;
}

const char *PrimaryContext::keepName(std::string_view name) {
  return names_.emplace(name).first->c_str();
}
