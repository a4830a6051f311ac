//===- HostDevice.cpp - Makes the processor a device ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/host/HostDevice.h"

#include "runtime/device/BufferRange.h"
#include "runtime/device/host/HostKernels.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/MatmulPrimitives.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace dyna;

namespace {

constexpr int64_t kHugePage = int64_t(2) << 20;
constexpr int64_t kPage = 4096;

class HostBuffer final : public Buffer {
public:
  HostBuffer(void *data, int64_t bytes, int64_t mapped)
      : data_(data), bytes_(bytes), mapped_(mapped) {}
  ~HostBuffer() override { munmap(data_, static_cast<size_t>(mapped_)); }
  void *data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

private:
  void *data_;
  int64_t bytes_;
  int64_t mapped_;
};

class HostStaging final : public StagingMemory {
public:
  explicit HostStaging(std::unique_ptr<Buffer> buffer)
      : buffer_(std::move(buffer)) {}
  void *data() const override { return buffer_->data(); }
  int64_t bytes() const override { return buffer_->bytes(); }

private:
  std::unique_ptr<Buffer> buffer_;
};

class HostStream final : public Stream {
public:
  void *handle() override { return this; }
};

class HostEvent final : public Event {
public:
  bool recorded = false;
};

std::string mebibytes(int64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

StatusOr<const KernelTable *> selectKernels(HostIsa isa) {
#if defined(__x86_64__)
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512cd") &&
                __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl");
  if (isa == HostIsa::Avx512 && !avx512)
    return Status::invalidArgument(
        "AVX-512 kernels were asked for, but this processor lacks AVX-512 F, "
        "BW, "
        "CD, DQ or VL; leave the choice to the program");
  if (isa == HostIsa::Avx2 && !avx2)
    return Status::invalidArgument(
        "AVX2 kernels were asked for, but this processor lacks AVX2 or FMA; "
        "leave the choice to the program");
  if (isa == HostIsa::Avx512 || (isa == HostIsa::Best && avx512))
    return &avx512Kernels();
  if (isa == HostIsa::Avx2 || (isa == HostIsa::Best && avx2))
    return &avx2Kernels();
#else
  if (isa == HostIsa::Avx512 || isa == HostIsa::Avx2)
    return Status::invalidArgument(
        "x86 kernels were asked for on another "
        "processor; leave the choice to the program");
#endif
  return &baselineKernels();
}

} // namespace

//===----------------------------------------------------------------------===//
// Creation and scratch
//===----------------------------------------------------------------------===//

StatusOr<std::unique_ptr<HostDevice>> HostDevice::create(int threads) {
  HostOptions options;
  options.threads = threads;
  return create(options);
}

StatusOr<std::unique_ptr<HostDevice>>
HostDevice::create(const HostOptions &options) {
  std::unique_ptr<HostDevice> device(new HostDevice());
  DYNA_ASSIGN_OR_RETURN(const KernelTable *kernels, selectKernels(options.isa));
  device->kernels_ = kernels;
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<Team> team,
                        Team::create(options.threads));
  device->team_ = std::move(team);
  device->scratch_.resize(static_cast<size_t>(device->team_->size()) + 1);
  device->ownStream_ = std::make_unique<HostStream>();
  device->primitives_ = MatmulPrimitives::create();
  device->nativeBf16_ = options.bf16 == Bf16Path::Auto
                            ? isNativeBf16Faster(*device->kernels_)
                            : options.bf16 == Bf16Path::Native;
  return device;
}

static constexpr dyna_kernels kHostKernels = {
    "host",
    host::launch,
    host::checkIds,
    host::checkPositions,
    host::matmulF32,
    host::matmulBf16,
    host::matmulBf16F32,
    /*matmul_f64=*/nullptr,
    host::attentionF32,
    host::attentionF64,
    host::attentionBf16,
    host::attentionGradF32,
    host::attentionGradF64,
    host::attentionGradBf16,
    host::headF32,
    host::headF64,
    host::headBf16,
    host::noteLosses,
    host::clipNorm,
    host::placeRows,
    /*launch_kernel=*/nullptr,
    host::sparseMatmulF32,
    host::sparseMatmulBf16,
    host::sparseMatmulBf16F32,
    host::sparseMatmulF64,
    host::takeSparseValues,
};

HostDevice::HostDevice() : bound_{{&kHostKernels}, this} {}

HostDevice::~HostDevice() {
  for (Scratch &scratch : scratch_)
    std::free(scratch.data);
}

std::string HostDevice::describe() const {
  return "host, " + std::to_string(team_->size()) +
         (team_->size() == 1 ? " thread, " : " threads, ") + kernels_->name +
         " kernels";
}

std::string HostDevice::describeBf16Products() const {
  return multipliesBf16() ? "native" : "widened to f32";
}

void *HostDevice::scratch(int slot, int64_t bytes) {
  Scratch &scratch = scratch_[static_cast<size_t>(slot)];
  if (bytes <= scratch.bytes && scratch.data)
    return scratch.data;
  // Use whole huge pages: to get small pages costs more time than the work in
  // them.
  int64_t rounded = (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  bool huge = rounded >= kHugePage / 2;
  if (huge)
    rounded = (rounded + kHugePage - 1) / kHugePage * kHugePage;
  void *data = std::aligned_alloc(static_cast<size_t>(huge ? kHugePage : kPage),
                                  static_cast<size_t>(rounded));
  if (!data)
    return nullptr;
  if (huge)
    (void)madvise(data, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  std::free(scratch.data);
  scratch.data = data;
  scratch.bytes = rounded;
  return data;
}

bool HostDevice::reserveWorkers(int64_t bytes) {
  for (int worker = 0; worker < team_->size(); ++worker)
    if (!scratch(worker, bytes))
      return false;
  return true;
}

int64_t HostDevice::scratchBytes() const {
  int64_t sum = 0;
  for (const Scratch &scratch : scratch_)
    sum += scratch.bytes;
  return sum;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

StatusOr<std::unique_ptr<Buffer>> HostDevice::allocate(int64_t bytes) {
  return reserve(bytes, bytes);
}

StatusOr<std::unique_ptr<Buffer>> HostDevice::reserve(int64_t bytes,
                                                      int64_t taken) {
  if (bytes < 0 || taken < 0 || taken > bytes)
    return Status::invalidArgument("a buffer of " + std::to_string(bytes) +
                                   " bytes was asked for, " +
                                   std::to_string(taken) + " of them taken");
  // A mapping may succeed for memory that does not exist; touching it would
  // then end the process.
  int64_t available = freeBytes();
  if (available >= 0 && taken > available)
    return Status::resourceExhausted(
        mebibytes(taken) + " of memory are needed, but this machine has only " +
        mebibytes(available) +
        " available; use smaller micro-batches, more recomputation or fewer "
        "samples in flight");
  int64_t unit = bytes >= kHugePage ? kHugePage : kPage;
  int64_t mapped = std::max((bytes + unit - 1) / unit * unit, kPage);
  void *data = mmap(
      nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | (taken < bytes ? MAP_NORESERVE : 0), -1, 0);
  if (data == MAP_FAILED)
    return Status::resourceExhausted("taking " + mebibytes(mapped) +
                                     " of memory failed: " + strerror(errno));
  if (unit == kHugePage)
    (void)madvise(data, static_cast<size_t>(mapped), MADV_HUGEPAGE);
  std::unique_ptr<Buffer> buffer(new HostBuffer(data, bytes, mapped));
  const int64_t touched = taken < bytes ? taken : mapped;
  int64_t pieces = (touched + kHugePage - 1) / kHugePage;
  team_->parallelFor(pieces, [&](int64_t piece, int) {
    int64_t end = std::min((piece + 1) * kHugePage, touched);
    for (int64_t at = piece * kHugePage; at < end; at += kPage)
      static_cast<volatile char *>(data)[at] = 0;
  });
  return buffer;
}

Status HostDevice::giveBack(Buffer &buffer, int64_t offset, int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(buffer, offset, bytes, "give back"));
  // Release only pages that lie wholly in the range; others hold more bytes.
  const int64_t begin = (offset + kPage - 1) / kPage * kPage;
  const int64_t end = (offset + bytes) / kPage * kPage;
  if (begin < end &&
      madvise(static_cast<char *>(buffer.data()) + begin,
              static_cast<size_t>(end - begin), MADV_DONTNEED) != 0)
    return Status::internal(std::string("memory could not be given back: ") +
                            strerror(errno));
  return Status::ok();
}

int64_t HostDevice::freeBytes() const { return availableMemory(); }

StatusOr<std::unique_ptr<StagingMemory>>
HostDevice::allocateHost(int64_t bytes) {
  DYNA_ASSIGN_OR_RETURN(auto buffer, allocate(bytes));
  return std::unique_ptr<StagingMemory>(new HostStaging(std::move(buffer)));
}

Status HostDevice::copyToDevice(Stream &, Buffer &target, int64_t offset,
                                const void *source, int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(target, offset, bytes, "copy"));
  if (bytes > 0)
    memcpy(static_cast<char *>(target.data()) + offset, source,
           static_cast<size_t>(bytes));
  return Status::ok();
}

Status HostDevice::copyToHost(Stream &, void *target, const Buffer &source,
                              int64_t offset, int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(source, offset, bytes, "copy"));
  if (bytes > 0)
    memcpy(target, static_cast<const char *>(source.data()) + offset,
           static_cast<size_t>(bytes));
  return Status::ok();
}

Status HostDevice::copy(Stream &, Buffer &target, int64_t targetOffset,
                        const Buffer &source, int64_t sourceOffset,
                        int64_t bytes) {
  DYNA_RETURN_IF_ERROR(checkRange(target, targetOffset, bytes, "copy"));
  DYNA_RETURN_IF_ERROR(checkRange(source, sourceOffset, bytes, "copy"));
  memmove(static_cast<char *>(target.data()) + targetOffset,
          static_cast<const char *>(source.data()) + sourceOffset,
          static_cast<size_t>(bytes));
  return Status::ok();
}

Status HostDevice::fill(Stream &, Buffer &target, int64_t offset, int64_t bytes,
                        uint8_t value) {
  DYNA_RETURN_IF_ERROR(checkRange(target, offset, bytes, "fill"));
  memset(static_cast<char *>(target.data()) + offset, value,
         static_cast<size_t>(bytes));
  return Status::ok();
}

template <typename Word>
static void zeroWords(Team &team, void *target, const uint8_t *mask,
                      int64_t count) {
  constexpr int64_t piece = 1 << 16;
  Word *const words = static_cast<Word *>(target);
  team.parallelFor((count + piece - 1) / piece, [&](int64_t task, int) {
    const int64_t end = std::min(count, (task + 1) * piece);
    for (int64_t i = task * piece; i < end; ++i)
      words[i] = mask[i] != 0 ? words[i] : Word(0);
  });
}

Status HostDevice::zeroWhere(Stream &, Buffer &target, int64_t offset,
                             const Buffer &mask, int64_t maskOffset,
                             int64_t count, int64_t elementBytes) {
  DYNA_RETURN_IF_ERROR(
      checkZeroWhere(target, offset, mask, maskOffset, count, elementBytes));
  void *const words = static_cast<char *>(target.data()) + offset;
  const auto *bytes = static_cast<const uint8_t *>(mask.data()) + maskOffset;
  if (elementBytes == 2)
    zeroWords<uint16_t>(*team_, words, bytes, count);
  else if (elementBytes == 4)
    zeroWords<uint32_t>(*team_, words, bytes, count);
  else
    zeroWords<uint64_t>(*team_, words, bytes, count);
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Streams and events: all work is done when it has been given.
//===----------------------------------------------------------------------===//

StatusOr<std::unique_ptr<Stream>> HostDevice::createStream() {
  return std::unique_ptr<Stream>(std::make_unique<HostStream>());
}

StatusOr<std::unique_ptr<Event>> HostDevice::createEvent() {
  return std::unique_ptr<Event>(std::make_unique<HostEvent>());
}

Status HostDevice::record(Stream &, Event &event) {
  static_cast<HostEvent &>(event).recorded = true;
  return Status::ok();
}

Status HostDevice::streamWait(Stream &, Event &event) {
  if (!static_cast<HostEvent &>(event).recorded)
    return Status::invalidArgument(
        "a stream was told to wait for an event that was never recorded");
  return Status::ok();
}

Status HostDevice::wait(Event &event, Deadline) {
  if (!static_cast<HostEvent &>(event).recorded)
    return Status::invalidArgument(
        "a wait for an event that was never recorded would never end");
  return Status::ok();
}

Status HostDevice::synchronize(Stream &, Deadline) { return Status::ok(); }

void HostDevice::bind(dyna_context &context, Stream &stream) {
  context.device = &bound_.head;
  context.stream = stream.handle();
}

void HostDevice::bind(dyna_context &context) { bind(context, *ownStream_); }
