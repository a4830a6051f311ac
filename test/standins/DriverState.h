//===- DriverState.h - What the driver's stand-in knows ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by its sources: devices, and how a call gets at that of its thread.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_DRIVERSTATE_H
#define DYNA_TEST_STANDINS_DRIVERSTATE_H

#include "runtime/device/cuda/driver/DriverApi.h"
#include "test/standins/DeviceMemory.h"
#include "test/standins/DriverStandin.h"
#include "test/standins/Fibers.h"
#include "test/standins/LateStreams.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define DYNA_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace dyna::standins {
template <typename T> using DriverFunction = T;
} // namespace dyna::standins

// Declared with the types that the device calls them by, and outside of all
// namespaces: a definition with another type does not compile. Only sources of
// the stand-in include this.
using namespace dyna::cuda;
#define DYNA_STANDIN_DECLARE(member, symbol, ...)                              \
  DYNA_STANDIN_EXPORT dyna::standins::DriverFunction<__VA_ARGS__> symbol;
DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_STANDIN_DECLARE)
#undef DYNA_STANDIN_DECLARE

struct CUevent_st {
  /// Null: never recorded, thus done.
  std::shared_ptr<dyna::standins::Mark> mark;
};

/// Of shared memory, for a block that asks.
constexpr int kMaxSharedBytes = 227 << 10;

struct CUfunc_st {
  const dyna_emulated_image *image;
  const dyna_emulated_entry *entry;
  /// What a launch may give a block beside what the kernel has by itself.
  int maxDynamicShared = static_cast<int>(dyna::cuda::kSharedWithoutAsking);
};

struct CUmod_st {
  const dyna_emulated_image *image;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

/// The primary context of one device.
struct CUctx_st {
  CUctx_st();
  ~CUctx_st();

  dyna::standins::DeviceMemory memory;
  dyna::standins::LateStreams streams;
  std::set<CUevent_st *> events;
  std::set<CUmod_st *> modules;
  /// Of work that failed; ends the context.
  Result error = kSuccess;
  int64_t fault, hang; ///< numbers of work; 0: none
  int64_t given = 0;   ///< work so far
};

namespace dyna::standins {

inline constexpr int kMaxDevices = 8;

/// All devices of the process. Calls come from any thread, one at a time.
struct Machine {
  std::mutex mutex;
  bool isStarted = false;
  std::unique_ptr<CUctx_st> contexts[kMaxDevices];
  int retained[kMaxDevices] = {};
  std::map<const char *, size_t>
      hostMemory;             ///< page-locked: bytes at an address
  int64_t pageableCopies = 0; ///< from and to other memory of the host
  int64_t streams = 0;        ///< made and not destroyed
  int64_t buffers = 0;
  std::string failure; ///< how the last kernel failed
};

Machine &machine();

/// Of the thread: what its calls go to.
extern thread_local CUctx_st *current;

/// A call that blocks would block for ever.
[[noreturn]] void endProcess(const char *call);

/// Calls `function` with the thread's context, one thread at a time.
template <typename F> Result inContext(F function) {
  std::lock_guard<std::mutex> lock(machine().mutex);
  if (!machine().isStarted)
    return kNotInitialized;
  bool isAlive = false;
  for (const auto &context : machine().contexts)
    isAlive |= context && context.get() == current;
  if (!isAlive)
    return kInvalidContext;
  if (current->error != kSuccess)
    return current->error;
  // Work that fails meanwhile is for the next call, or who asks for it.
  return function(*current);
}

inline LateStream *streamOf(CUctx_st &context, StreamHandle handle) {
  auto *stream = reinterpret_cast<LateStream *>(handle);
  return context.streams.has(stream) ? stream : nullptr;
}

/// For other memory than that which is page-locked a driver may wait for the stream.
inline void checkPageLocked(CUctx_st &context, StreamHandle handle,
                            const void *data, const char *call) {
  const std::map<const char *, size_t> &locked = machine().hostMemory;
  auto next = locked.upper_bound(static_cast<const char *>(data));
  if (next != locked.begin()) {
    const auto &[begin, bytes] = *std::prev(next);
    if (static_cast<const char *>(data) < begin + bytes)
      return;
  }
  ++machine().pageableCopies;
  if (LateStream *stream = streamOf(context, handle);
      stream && context.streams.neverEnds(*stream))
    endProcess(call);
}

/// What work is.
struct Named {
  dyna_standin_work kind;
  std::string name;

  /// Tells the observer, if there is one.
  void observe(const LateStream *stream, int64_t begin, int64_t end) const;
};
int64_t nanosecondsNow();

/// Gives the stream a copy, fill or launch, which returns its result when it
/// runs. `tear`, if there is one, is what it has done when it faults.
template <typename F>
Result give(CUctx_st &context, StreamHandle handle, Named named, F run,
            std::function<void()> tear = nullptr) {
  LateStream *stream = streamOf(context, handle);
  if (!stream) // the default stream too: it would wait for all others
    return kInvalidHandle;
  int64_t number = ++context.given;
  Work work;
  work.hangs = number == context.hang;
  bool faults = number == context.fault;
  work.run = [&context, run, faults, stream, named = std::move(named),
              tear = std::move(tear)] {
    // What failed has ended everything.
    if (context.error != kSuccess)
      return;
    if (faults && tear)
      tear();
    const int64_t begin = nanosecondsNow();
    context.error = faults ? kIllegalAddress : run();
    named.observe(stream, begin, nanosecondsNow());
  };
  context.streams.give(*stream, std::move(work));
  return kSuccess;
}

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_DRIVERSTATE_H
