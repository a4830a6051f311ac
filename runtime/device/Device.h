//===- Device.h - Buffers, streams and events of a device -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the runtime asks of the place where layer functions run. A backend is a
// folder beside this file; it implements this interface and has a table of the
// functions of runtime/abi/Kernels.h, with which begins what `bind` puts into a
// context (dyna_device). The suite in test/runtime/device states in tests what
// holds for every backend.
//
// A stream runs what it is given in the order given, and may do so later; a
// failure of such work is reported by the next wait on that stream. The host
// backend finishes everything before it returns. One device serves one rank:
// its methods are called from one thread at a time.
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
/// DYNA_BLOCK_ALIGNMENT and is a device address: only the host backend's may be
/// dereferenced by the caller.
class Buffer {
public:
  virtual ~Buffer() = default;
  virtual void *data() const = 0;
  virtual int64_t bytes() const = 0;
};

/// Memory of the host from and to which a device copies at full speed, and while
/// the host goes on; freed with the object, which must outlive such copies.
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
  /// What `dyna_context::stream` holds for this stream.
  virtual void *handle() = 0;
};

/// A point in a stream that others can wait for.
class Event {
public:
  virtual ~Event() = default;
};

class Device {
public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Device() = default;

  /// One line for people: what this device is and how much of it is used.
  virtual std::string describe() const = 0;
  /// How products of matrices of bf16 run here, where there are several ways.
  virtual std::string describeBf16Products() const { return ""; }
  /// Memory that it has taken beside buffers, as kernels needed it.
  virtual int64_t scratchBytes() const = 0;
  /// The threads of the host that serve this device: for work between plans.
  virtual Team &team() = 0;

  /// Takes `bytes` of device memory, ready to be used at full speed (the host
  /// touches its pages here). Fails with ResourceExhausted, taking nothing,
  /// when the device has not that much. Zero bytes are allowed.
  virtual StatusOr<std::unique_ptr<Buffer>> allocate(int64_t bytes) = 0;
  /// Takes a buffer of `bytes`, and memory for the first `taken` of them. Where the
  /// device can, the others are zero, and their memory is taken when they are first written.
  /// Fails as `allocate` does.
  virtual StatusOr<std::unique_ptr<Buffer>> reserve(int64_t bytes,
                                                    int64_t /*taken*/) {
    return allocate(bytes);
  }
  /// Returns true if a reserved buffer takes memory only as it is written.
  virtual bool takesMemoryLate() const { return false; }
  /// Gives back the memory of a range of a reserved buffer, whose bytes are lost. They
  /// can be written again. Nothing uses them meanwhile. Does nothing if the device
  /// cannot.
  virtual Status giveBack(Buffer & /*buffer*/, int64_t /*offset*/,
                          int64_t /*bytes*/) {
    return Status::ok();
  }
  /// Bytes of device memory that can still be taken; -1: unknown.
  virtual int64_t freeBytes() const = 0;
  /// Takes memory of the host for copies (page-locked, where the device has memory
  /// of its own); fails as `allocate` does.
  virtual StatusOr<std::unique_ptr<StagingMemory>>
  allocateHost(int64_t bytes) = 0;
  virtual StatusOr<std::unique_ptr<Stream>> createStream() = 0;
  virtual StatusOr<std::unique_ptr<Event>> createEvent() = 0;

  /// Stream-ordered copies; ranges outside a buffer are refused. Host memory
  /// must stay as it is until the stream has passed the copy.
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

  /// Zeroes the elements whose byte in `mask` is 0. There are `count` of them, of 2, 4
  /// or 8 bytes, one behind the other, and `offset` is a multiple of that size.
  virtual Status zeroWhere(Stream &stream, Buffer &target, int64_t offset,
                           const Buffer &mask, int64_t maskOffset,
                           int64_t count, int64_t elementBytes) = 0;

  /// Marks the present end of the stream's work with the event.
  virtual Status record(Stream &stream, Event &event) = 0;
  /// Work given to `stream` from now on starts after the event.
  virtual Status streamWait(Stream &stream, Event &event) = 0;
  /// Blocks until the event's work is done; DeadlineExceeded when it is not by
  /// `deadline`. An event that was never recorded is refused.
  virtual Status wait(Event &event, Deadline deadline) = 0;
  /// Blocks until all work of the stream is done and returns its first failure.
  virtual Status synchronize(Stream &stream, Deadline deadline) = 0;

  /// Returns true if the host can read and write the memory of buffers directly.
  virtual bool sharesMemory() const { return false; }
  /// Whether work may go on when the call that gave it has returned.
  virtual bool runsLate() const { return false; }
  /// Seconds of the device's clock between two events that are recorded and done;
  /// of devices that run late.
  virtual StatusOr<double> secondsBetween(const Event &begin,
                                          const Event &end) {
    return Status::invalidArgument(
        "this device does not run late: its events have no times");
  }

  /// Makes calls with this context run here, on `stream`. Both must outlive it.
  virtual void bind(dyna_context &context, Stream &stream) = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_DEVICE_H
