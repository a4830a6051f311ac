//===- KernelProbe.cpp - When a GPU worked, and on what ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A library that CUDA's driver loads into a program by itself, where
// CUDA_INJECTION64_PATH names it: what the program's device does is asked of CUPTI,
// which takes the host some time for each launch: where gaps are larger than steps of a
// run without it are shorter, they are its own. DYNA_PROBE_CUPTI is the path
// of libcupti.so.13, DYNA_PROBE_OUTPUT a file that gets, as the program ends, a line
// `kind stream begin end name` for each kernel, copy and fill, in nanoseconds, and last
// `dropped N`. What does not work is said on standard error, and the program runs on.
//
//===----------------------------------------------------------------------===//

#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <utility>

namespace {

constexpr size_t kBufferBytes = size_t(8) << 20;

/// What of CUPTI is used, and where records go.
struct Probe {
  decltype(&cuptiActivityRegisterCallbacks) registerCallbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityGetNextRecord) nextRecord = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  std::mutex mutex; ///< of what is below: CUPTI has threads of its own
  std::FILE *output = nullptr;
  size_t lost = 0;
};

/// Is there until the process ends: CUPTI may call later than destructors run.
Probe &probe() {
  static auto *only = new Probe;
  return *only;
}

void write(const char *kind, uint32_t stream, uint64_t begin, uint64_t end,
           const char *name) {
  std::fprintf(probe().output, "%s %u %llu %llu %s\n", kind, stream,
               static_cast<unsigned long long>(begin),
               static_cast<unsigned long long>(end), name);
}

void writeRecord(const CUpti_Activity *record) {
  switch (record->kind) {
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
    const auto *kernel =
        reinterpret_cast<const CUpti_ActivityKernel10 *>(record);
    return write("kernel", kernel->streamId, kernel->start, kernel->end,
                 kernel->name ? kernel->name : "?");
  }
  case CUPTI_ACTIVITY_KIND_MEMCPY: {
    const auto *copy = reinterpret_cast<const CUpti_ActivityMemcpy6 *>(record);
    return write("copy", copy->streamId, copy->start, copy->end,
                 copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ? "to device"
                 : copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                     ? "to host"
                     : "inside");
  }
  case CUPTI_ACTIVITY_KIND_MEMSET: {
    const auto *fill = reinterpret_cast<const CUpti_ActivityMemset4 *>(record);
    return write("fill", fill->streamId, fill->start, fill->end, "fill");
  }
  default:
    return;
  }
}

void CUPTIAPI giveBuffer(uint8_t **buffer, size_t *bytes, size_t *records) {
  // Records are aligned to eight bytes, as what malloc gives is.
  *buffer = static_cast<uint8_t *>(std::malloc(kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *records = 0; // as many as fit
}

void CUPTIAPI takeBuffer(CUcontext context, uint32_t stream, uint8_t *buffer,
                         size_t, size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(probe().mutex);
    CUpti_Activity *record = nullptr;
    while (bytes > 0 && probe().output &&
           probe().nextRecord(buffer, bytes, &record) == CUPTI_SUCCESS)
      writeRecord(record);
    size_t lost = 0;
    if (probe().dropped(context, stream, &lost) == CUPTI_SUCCESS)
      probe().lost += lost;
  }
  std::free(buffer);
}

void finish() {
  probe().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::lock_guard<std::mutex> lock(probe().mutex);
  std::FILE *output = std::exchange(probe().output, nullptr);
  std::fprintf(output, "dropped %zu\n", probe().lost);
  const bool isWhole = std::ferror(output) == 0;
  if (std::fclose(output) != 0 || !isWhole)
    std::fprintf(stderr, "probe: DYNA_PROBE_OUTPUT could not be written\n");
}

/// Null, or why there is no probe.
const char *begin() {
  const char *output = std::getenv("DYNA_PROBE_OUTPUT");
  const char *path = std::getenv("DYNA_PROBE_CUPTI");
  if (!output)
    return "DYNA_PROBE_OUTPUT is not set";
  void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
  if (!library)
    return dlerror();
  Probe &all = probe();
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, name));
    return function != nullptr;
  };
  if (!find(all.registerCallbacks, "cuptiActivityRegisterCallbacks") ||
      !find(all.enable, "cuptiActivityEnable") ||
      !find(all.nextRecord, "cuptiActivityGetNextRecord") ||
      !find(all.dropped, "cuptiActivityGetNumDroppedRecords") ||
      !find(all.flush, "cuptiActivityFlushAll"))
    return dlerror();
  all.output = std::fopen(output, "w");
  if (!all.output)
    return "DYNA_PROBE_OUTPUT cannot be written";
  if (all.registerCallbacks(giveBuffer, takeBuffer) != CUPTI_SUCCESS)
    return "CUPTI takes no callbacks";
  for (CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET})
    if (all.enable(kind) != CUPTI_SUCCESS)
      return "CUPTI records no kernels, copies or fills here";
  return std::atexit(finish) == 0 ? nullptr : "nothing can be done at the end";
}

} // namespace

/// Called by the driver, once. What it returns, nobody reads.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char *fault = begin();
  if (fault)
    std::fprintf(stderr, "probe: %s\n", fault);
  return fault == nullptr;
}
