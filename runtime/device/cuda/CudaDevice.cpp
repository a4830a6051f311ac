//===- CudaDevice.cpp - Makes a GPU of NVIDIA a device --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/abi/Kernels.h"
#include "runtime/base/text/Text.h"
#include "runtime/device/BufferRange.h"
#include "runtime/device/cuda/CudaKernels.h"

#include <algorithm>

using namespace dyna;
using namespace dyna::cuda;

using Shared = std::shared_ptr<PrimaryContext>;

namespace {

class CudaBuffer final : public Buffer {
public:
  CudaBuffer(Shared context, Address address, int64_t bytes)
      : context_(std::move(context)), address_(address), bytes_(bytes) {}
  ~CudaBuffer() override {
    // Freeing waits for all work, without a deadline: wait with one first.
    if (context_->awaitIdle())
      (void)context_->driver().release(address_);
  }
  void *data() const override { return reinterpret_cast<void *>(address_); }
  int64_t bytes() const override { return bytes_; }

private:
  Shared context_;
  Address address_;
  int64_t bytes_;
};

class CudaStaging final : public StagingMemory {
public:
  CudaStaging(Shared context, void *data, int64_t bytes)
      : context_(std::move(context)), data_(data), bytes_(bytes) {}
  ~CudaStaging() override {
    if (context_->awaitIdle())
      (void)context_->driver().releaseHost(data_);
  }
  void *data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

private:
  Shared context_;
  void *data_;
  int64_t bytes_;
};

class CudaStream final : public Stream {
public:
  CudaStream(Shared context, StreamHandle handle)
      : context_(std::move(context)), handle_(handle) {}
  ~CudaStream() override { context_->destroyStream(handle_); }
  void *handle() override { return handle_; }

private:
  Shared context_;
  StreamHandle handle_;
};

class CudaEvent final : public Event {
public:
  CudaEvent(Shared context, EventHandle event)
      : handle(event), context_(std::move(context)) {}
  ~CudaEvent() override { context_->giveBack(handle); }

  const EventHandle handle;
  bool isRecorded = false;
  const char *kernel = nullptr; ///< the last one before it

private:
  Shared context_;
};

StreamHandle handleOf(Stream &stream) {
  return static_cast<StreamHandle>(stream.handle());
}

Address addressOf(const Buffer &buffer, int64_t offset) {
  return reinterpret_cast<Address>(buffer.data()) +
         static_cast<Address>(offset);
}

const char *lastKernel(PrimaryContext &context, StreamHandle handle) {
  const PrimaryContext::StreamRecord *stream = context.find(handle);
  return stream ? stream->kernel : nullptr;
}

} // namespace

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

CudaDevice::CudaDevice() : bound_{{&cudaKernels()}, this} {}

StatusOr<std::unique_ptr<CudaDevice>>
CudaDevice::create(const CudaOptions &options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice());
  DYNA_ASSIGN_OR_RETURN(
      device->context_,
      PrimaryContext::create(options.ordinal, options.idleSeconds));
  DYNA_ASSIGN_OR_RETURN(device->team_, Team::create(options.threads));
  for (std::unique_ptr<Stream> &stream : device->streams_) {
    DYNA_ASSIGN_OR_RETURN(stream, device->createStream());
  }
  DYNA_ASSIGN_OR_RETURN(device->products_,
                        Products::create(device->context_, options.products));
  DYNA_ASSIGN_OR_RETURN(
      device->attention_,
      AttentionPlans::create(device->context_, options.attention));
  // Kernels reach page-locked memory at the address that the host has for it.
  DYNA_ASSIGN_OR_RETURN(device->badRow_,
                        device->allocateHost(sizeof(gpu::BadRow)));
  gpu::BadRow *bad = device->badRow();
  *bad = {};
  device->context_->explainFailures([bad] { return explainBadRow(*bad); });
  return device;
}

CudaDevice::~CudaDevice() {
  if (context_)
    context_->explainFailures(nullptr);
}

std::string CudaDevice::describe() const {
  return formatText(
      "%s, compute capability %d.%d, %s, driver of CUDA %s, %s, %s",
      context_->label(), context_->capability() / 10,
      context_->capability() % 10, formatBytes(context_->totalBytes()),
      versionText(context_->driver().version), products_->describe(),
      attention_->describe());
}

StatusOr<std::unique_ptr<Buffer>> CudaDevice::allocate(int64_t bytes) {
  if (bytes < 0)
    return Status::invalidArgument(
        formatText("a buffer of %d bytes was asked for", bytes));
  DYNA_RETURN_IF_ERROR(context_->enter());
  size_t available = 0, total = 0;
  DYNA_RETURN_IF_ERROR(
      context_->check(context_->driver().memoryInfo(&available, &total),
                      "asking for its free memory"));
  // The driver refuses to allocate 0 bytes.
  const int64_t taken = std::max<int64_t>(bytes, DYNA_BLOCK_ALIGNMENT);
  const int64_t free = static_cast<int64_t>(available);
  Address address = 0;
  Result result = kOutOfMemory;
  if (taken <= free)
    result = context_->driver().allocate(&address, static_cast<size_t>(taken));
  if (result == kOutOfMemory) {
    std::string missing = taken > free
                              ? formatBytes(taken - free) + " are missing"
                              : "in more than one piece";
    return Status::resourceExhausted(formatText(
        "%s of device memory are needed, but %s has only %s of %s available, "
        "%s; use smaller micro-batches, more recomputation or fewer samples "
        "in flight",
        formatBytes(taken), context_->label(), formatBytes(free),
        formatBytes(static_cast<int64_t>(total)), missing));
  }
  DYNA_RETURN_IF_ERROR(context_->check(
      result, formatText("taking %s of memory", formatBytes(taken))));
  return std::unique_ptr<Buffer>(new CudaBuffer(context_, address, bytes));
}

int64_t CudaDevice::freeBytes() const {
  size_t available = 0, total = 0;
  if (!context_->enter().isOk() ||
      context_->driver().memoryInfo(&available, &total) != kSuccess)
    return -1;
  return static_cast<int64_t>(available);
}

StatusOr<std::unique_ptr<StagingMemory>>
CudaDevice::allocateHost(int64_t bytes) {
  if (bytes < 0)
    return Status::invalidArgument(
        formatText("memory of the host of %d bytes was asked for", bytes));
  DYNA_RETURN_IF_ERROR(context_->enter());
  const int64_t taken = std::max<int64_t>(bytes, DYNA_BLOCK_ALIGNMENT);
  void *data = nullptr;
  Result result = context_->driver().allocateHost(
      &data, static_cast<size_t>(taken), kHostMemoryPortable);
  if (result == kOutOfMemory)
    return Status::resourceExhausted(
        formatText("%s of the host's memory are needed for copies to and from "
                   "%s, but it cannot be locked",
                   formatBytes(taken), context_->label()));
  DYNA_RETURN_IF_ERROR(
      context_->check(result, formatText("taking %s of the host's memory",
                                         formatBytes(taken))));
  return std::unique_ptr<StagingMemory>(new CudaStaging(context_, data, bytes));
}

StatusOr<std::unique_ptr<Stream>> CudaDevice::createStream() {
  DYNA_ASSIGN_OR_RETURN(StreamHandle handle, context_->createStream());
  return std::unique_ptr<Stream>(new CudaStream(context_, handle));
}

StatusOr<std::unique_ptr<Event>> CudaDevice::createEvent() {
  DYNA_ASSIGN_OR_RETURN(EventHandle event, context_->takeEvent());
  return std::unique_ptr<Event>(new CudaEvent(context_, event));
}

void CudaDevice::bind(dyna_context &context, Stream &stream) {
  context.device = &bound_.head;
  context.stream = stream.handle();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

Status CudaDevice::copyToDevice(Stream &stream, Buffer &target, int64_t offset,
                                const void *source, int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(target, offset, bytes, "copy"));
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (bytes == 0)
    return Status::ok();
  return context_->checkWork(context_->driver().copyToDevice(
                                 addressOf(target, offset), source,
                                 static_cast<size_t>(bytes), handleOf(stream)),
                             "copying to the device",
                             lastKernel(*context_, handleOf(stream)));
}

Status CudaDevice::copyToHost(Stream &stream, void *target,
                              const Buffer &source, int64_t offset,
                              int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(source, offset, bytes, "copy"));
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (bytes == 0)
    return Status::ok();
  return context_->checkWork(context_->driver().copyToHost(
                                 target, addressOf(source, offset),
                                 static_cast<size_t>(bytes), handleOf(stream)),
                             "copying to the host",
                             lastKernel(*context_, handleOf(stream)));
}

Status CudaDevice::copy(Stream &stream, Buffer &target, int64_t targetOffset,
                        const Buffer &source, int64_t sourceOffset,
                        int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(target, targetOffset, bytes, "copy"));
  DYNA_RETURN_IF_ERROR(checkRange(source, sourceOffset, bytes, "copy"));
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (bytes == 0)
    return Status::ok();
  return context_->checkWork(
      context_->driver().copy(addressOf(target, targetOffset),
                              addressOf(source, sourceOffset),
                              static_cast<size_t>(bytes), handleOf(stream)),
      "copying on the device", lastKernel(*context_, handleOf(stream)));
}

Status CudaDevice::fill(Stream &stream, Buffer &target, int64_t offset,
                        int64_t bytes, uint8_t value) {
  DYNA_RETURN_IF_ERROR(checkRange(target, offset, bytes, "fill"));
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (bytes == 0)
    return Status::ok();
  return context_->checkWork(
      context_->driver().fill(addressOf(target, offset), value,
                              static_cast<size_t>(bytes), handleOf(stream)),
      "filling memory", lastKernel(*context_, handleOf(stream)));
}

Status CudaDevice::launch(StreamHandle stream, const CudaKernel &kernel,
                          int64_t blocks, int threads, int64_t sharedBytes,
                          const void *arguments, int64_t argumentBytes) {
  if (blocks < 0 || blocks > INT32_MAX)
    return Status::invalidArgument(
        formatText("a launch of kernel %s in %d blocks", kernel.name, blocks));
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (blocks == 0)
    return Status::ok();
  PrimaryContext::StreamRecord *record = context_->find(stream);
  size_t bytes = static_cast<size_t>(argumentBytes);
  void *packed[] = {kLaunchBuffer, const_cast<void *>(arguments),
                    kLaunchBufferBytes, &bytes, kLaunchEnd};
  // The launch may report the failure of earlier work.
  DYNA_RETURN_IF_ERROR(context_->checkWork(
      context_->driver().launchKernel(
          kernel.function, static_cast<unsigned>(blocks), 1, 1,
          static_cast<unsigned>(threads), 1, 1,
          static_cast<unsigned>(sharedBytes), stream, nullptr, packed),
      formatText("launching kernel %s (%d blocks of %d threads)", kernel.name,
                 blocks, threads),
      record ? record->kernel : nullptr));
  if (record)
    record->kernel = kernel.name;
  return Status::ok();
}

Status CudaDevice::loadCode(const dyna_device_code &code) {
  std::unique_ptr<CudaCode> &loaded = codes_[&code];
  if (loaded)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(loaded, CudaCode::load(context_, code));
  return Status::ok();
}

Status CudaDevice::launch(StreamHandle stream, const dyna_device_code &code,
                          int64_t function, int64_t blocks,
                          const void *arguments, int64_t argumentBytes) {
  DYNA_RETURN_IF_ERROR(loadCode(code));
  const CudaCode &loaded = *codes_[&code];
  DYNA_RETURN_IF_ERROR(loaded.check(function, argumentBytes));
  return launch(stream, loaded.kernel(function), blocks,
                loaded.threads(function), loaded.sharedBytes(function),
                arguments, argumentBytes);
}

Status CudaDevice::clear(StreamHandle stream, void *data, int64_t bytes) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (bytes == 0)
    return Status::ok();
  return context_->checkWork(
      context_->driver().fill(reinterpret_cast<Address>(data), 0,
                              static_cast<size_t>(bytes), stream),
      "clearing memory", lastKernel(*context_, stream));
}

//===----------------------------------------------------------------------===//
// Order and waits
//===----------------------------------------------------------------------===//

Status CudaDevice::record(Stream &stream, Event &event) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  auto &recorded = static_cast<CudaEvent &>(event);
  const char *kernel = lastKernel(*context_, handleOf(stream));
  DYNA_RETURN_IF_ERROR(context_->checkWork(
      context_->driver().record(recorded.handle, handleOf(stream)),
      "recording an event", kernel));
  recorded.isRecorded = true;
  recorded.kernel = kernel;
  return Status::ok();
}

Status CudaDevice::streamWait(Stream &stream, Event &event) {
  auto &awaited = static_cast<CudaEvent &>(event);
  if (!awaited.isRecorded)
    return Status::invalidArgument(
        "a stream was told to wait for an event that was never recorded");
  DYNA_RETURN_IF_ERROR(context_->enter());
  return context_->checkWork(
      context_->driver().streamWait(handleOf(stream), awaited.handle, 0),
      "making a stream wait for an event", awaited.kernel);
}

Status CudaDevice::wait(Event &event, Deadline deadline) {
  auto &awaited = static_cast<CudaEvent &>(event);
  if (!awaited.isRecorded)
    return Status::invalidArgument(
        "a wait for an event that was never recorded would never end");
  DYNA_RETURN_IF_ERROR(context_->enter());
  return context_->poll(
      [&] { return context_->driver().queryEvent(awaited.handle); }, deadline,
      "the work before an event", awaited.kernel);
}

Status CudaDevice::synchronize(Stream &stream, Deadline deadline) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  return context_->poll(
      [&] { return context_->driver().queryStream(handleOf(stream)); },
      deadline, "the work of a stream",
      lastKernel(*context_, handleOf(stream)));
}

StatusOr<double> CudaDevice::secondsBetween(const Event &begin,
                                            const Event &end) {
  auto &first = static_cast<const CudaEvent &>(begin);
  auto &last = static_cast<const CudaEvent &>(end);
  if (!first.isRecorded || !last.isRecorded)
    return Status::invalidArgument(
        "the time between two events that were not both recorded");
  DYNA_RETURN_IF_ERROR(context_->enter());
  float time = 0; // in milliseconds
  Result result = context_->driver().elapsed(&time, first.handle, last.handle);
  if (result == kNotReady)
    return Status::invalidArgument(
        "the time between two events that are not both done");
  DYNA_RETURN_IF_ERROR(
      context_->checkWork(result, "asking for the time between events"));
  return static_cast<double>(time) * 1e-3;
}
