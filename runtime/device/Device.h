//===- Device.h - Declares buffers and streams of a device ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The interface to the device on which layer functions run. A backend is a
// folder beside this file. It implements this interface, and it has a table of
// the functions of runtime/abi/Kernels.h. The object that `bind` puts into a
// context begins with this table (dyna_device). The suite in
// test/runtime/device tests the guarantees of every backend.
//
// A stream runs its work in the order given, and may do so later. The next wait
// on that stream reports a failure of such work. The host backend finishes
// everything before it returns. One device serves one rank: its methods are
// called from one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_DEVICE_H
#define DYNA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/abi/Abi.h"
#include "runtime/base/error/Status.h"
#include "runtime/device/Team.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace dyna {

/// Memory of a device, freed with the object. `data` is aligned to
/// DYNA_BLOCK_ALIGNMENT and is a device address. The caller may dereference it
/// only if the device shares memory (`sharesMemory`).
class Buffer {
public:
  virtual ~Buffer() = default;
  virtual void *data() const = 0;
  virtual int64_t bytes() const = 0;
};

/// Host memory that a device copies from and to at full speed, while the host
/// goes on. It is freed with the object, which must outlive such copies.
class StagingMemory {
public:
  virtual ~StagingMemory() = default;
  virtual void *data() const = 0; ///< aligned to DYNA_BLOCK_ALIGNMENT
  virtual int64_t bytes() const = 0;
};

/// An ordered queue of work.
class Stream {
public:
  virtual ~Stream() = default;
  /// Returns the value of `dyna_context::stream` for this stream.
  virtual void *handle() = 0;
};

/// A point in a stream that other streams and the host can wait for.
class Event {
public:
  virtual ~Event() = default;
};

/// Scores of weights, with which pruning orders them (Device::addScores). Each offset in
/// bytes is that of `count` contiguous elements of one buffer.
struct ScoredWeights {
  int64_t count = 0;
  int64_t scores = 0;  ///< f32 or f64
  int64_t weights = 0; ///< of the type of scores; -1: only pruned weights count
  int64_t gradients = 0;
  int64_t mask = -1; ///< bytes; needed without weights
  int64_t scoreBytes = 4;
  int64_t gradientBytes = 4; ///< as scores, or 2: bf16
  /// Address, on the device, of the factor of clipping. If it is not a number, nothing is
  /// added. Null: 1.
  const double *scale = nullptr;
};

class Device {
public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Device() = default;

  /// Returns one line for people: the name of the device, and how much of it is
  /// used.
  virtual std::string describe() const = 0;
  /// Describes how bf16 matrix products run, if there are several
  /// implementations; else empty.
  virtual std::string describeBf16Products() const { return ""; }
  /// Returns the bytes that kernels have allocated beside buffers.
  virtual int64_t scratchBytes() const = 0;
  /// Returns the host threads that serve this device, for work between plans.
  virtual Team &team() = 0;

  /// Allocates `bytes` of device memory, ready to be used at full speed (the
  /// host touches its pages here). Fails with ResourceExhausted, and allocates
  /// nothing, if the device has too little memory. Zero bytes are allowed.
  virtual StatusOr<std::unique_ptr<Buffer>> allocate(int64_t bytes) = 0;
  /// Allocates a buffer of `bytes`, and memory for the first `taken` of them.
  /// If the device can, the others are zero, and get memory when they are first
  /// written. Fails as `allocate` does.
  virtual StatusOr<std::unique_ptr<Buffer>> reserve(int64_t bytes,
                                                    int64_t /*taken*/) {
    return allocate(bytes);
  }
  /// Returns true if a reserved buffer gets memory only when it is written.
  virtual bool takesMemoryLate() const { return false; }
  /// Frees the memory of a range of a reserved buffer, whose bytes are lost.
  /// They can be written again. Nothing may use them meanwhile. Does nothing if
  /// the device cannot do it.
  virtual Status giveBack(Buffer & /*buffer*/, int64_t /*offset*/,
                          int64_t /*bytes*/) {
    return Status::ok();
  }
  /// Returns the free bytes of device memory; -1 if unknown.
  virtual int64_t freeBytes() const = 0;
  /// Allocates host memory for copies, page-locked if the device has its own
  /// memory. Fails as `allocate` does.
  virtual StatusOr<std::unique_ptr<StagingMemory>>
  allocateHost(int64_t bytes) = 0;
  virtual StatusOr<std::unique_ptr<Stream>> createStream() = 0;
  virtual StatusOr<std::unique_ptr<Event>> createEvent() = 0;

  /// Copy in the order of the stream. They refuse ranges outside of a buffer.
  /// Host memory must not change or be freed until the stream has passed the
  /// copy.
  virtual Status copyToDevice(Stream &stream, Buffer &target, int64_t offset,
                              const void *source, int64_t bytes) = 0;
  virtual Status copyToHost(Stream &stream, void *target, const Buffer &source,
                            int64_t offset, int64_t bytes) = 0;
  virtual Status copy(Stream &stream, Buffer &target, int64_t targetOffset,
                      const Buffer &source, int64_t sourceOffset,
                      int64_t bytes) = 0;
  /// Sets every byte of the range to `value`.
  virtual Status fill(Stream &stream, Buffer &target, int64_t offset,
                      int64_t bytes, uint8_t value) = 0;

  /// Zeroes the elements whose byte in `mask` is 0. There are `count`
  /// contiguous elements of 2, 4 or 8 bytes, and `offset` is a multiple of that
  /// size.
  virtual Status zeroWhere(Stream &stream, Buffer &target, int64_t offset,
                           const Buffer &mask, int64_t maskOffset,
                           int64_t count, int64_t elementBytes) = 0;

  /// Adds |weight * gradient| to each score. Without weights, sets the score to |gradient|
  /// where the mask is 0, and leaves the others. Refuses ranges outside of the buffer and
  /// elements that do not lie at multiples of their size.
  virtual Status addScores(Stream &stream, Buffer &buffer,
                           const ScoredWeights &scored) = 0;

  /// Records the present end of the stream's work in the event.
  virtual Status record(Stream &stream, Event &event) = 0;
  /// Makes work that is given to `stream` from now on start after the event.
  virtual Status streamWait(Stream &stream, Event &event) = 0;
  /// Blocks until the event's work is done. Returns DeadlineExceeded if that
  /// takes until `deadline`. Refuses an event that was never recorded.
  virtual Status wait(Event &event, Deadline deadline) = 0;
  /// Blocks until all work of the stream is done and returns its first failure.
  virtual Status synchronize(Stream &stream, Deadline deadline) = 0;

  /// Returns true if the host can read and write the memory of buffers directly.
  virtual bool sharesMemory() const { return false; }
  /// Returns true if work may still run after the call that gave it has
  /// returned.
  virtual bool runsLate() const { return false; }
  /// Returns the seconds between two events that are recorded and done, by the
  /// device's clock. Fails on devices that do not run late.
  virtual StatusOr<double> secondsBetween(const Event &begin,
                                          const Event &end) {
    return Status::invalidArgument(
        "this device does not run late: its events have no times");
  }

  /// Makes calls with this context run on this device and `stream`. Both must
  /// outlive the context.
  virtual void bind(dyna_context &context, Stream &stream) = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_DEVICE_H
