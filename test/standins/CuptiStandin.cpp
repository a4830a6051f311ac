//===- CuptiStandin.cpp - CUPTI over the driver's stand-in ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `standins/cuda/libcupti.so.13`: records of what the driver's stand-in beside it
// runs, of the kinds that were enabled, given when they are flushed, in as many of
// the caller's buffers as they need. Times are those of the host.
//
//===----------------------------------------------------------------------===//

#include "test/standins/DriverStandin.h"

#include <cupti.h>

#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

struct Seen {
  CUpti_ActivityKind kind;
  CUpti_ActivityMemcpyKind copyKind;
  const char *name;
  uint32_t stream;
  int64_t begin, end;
};

struct State {
  std::mutex mutex;
  std::set<int> kinds;
  std::set<std::string> names; ///< stay where they are
  std::vector<Seen> seen;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
};

State &state() {
  static auto *only = new State;
  return *only;
}

void observe(dyna_standin_work kind, const char *name, uint32_t stream,
             int64_t begin, int64_t end) {
  State &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  Seen seen = {};
  seen.kind = kind == DYNA_STANDIN_KERNEL
                  ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
              : kind == DYNA_STANDIN_FILL ? CUPTI_ACTIVITY_KIND_MEMSET
                                          : CUPTI_ACTIVITY_KIND_MEMCPY;
  if (all.kinds.count(seen.kind) == 0)
    return;
  seen.copyKind =
      kind == DYNA_STANDIN_TO_DEVICE ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
      : kind == DYNA_STANDIN_TO_HOST ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                     : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  seen.name = all.names.insert(name).first->c_str();
  seen.stream = stream, seen.begin = begin, seen.end = end;
  all.seen.push_back(seen);
}

size_t bytesOf(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
             ? sizeof(CUpti_ActivityKernel10)
         : kind == CUPTI_ACTIVITY_KIND_MEMSET ? sizeof(CUpti_ActivityMemset4)
                                              : sizeof(CUpti_ActivityMemcpy6);
}

template <typename Record>
void put(uint8_t *to, const Seen &seen, void (*more)(Record &, const Seen &)) {
  Record record;
  memset(&record, 0, sizeof(record));
  record.kind = seen.kind;
  record.streamId = seen.stream;
  record.start = static_cast<uint64_t>(seen.begin);
  record.end = static_cast<uint64_t>(seen.end);
  more(record, seen);
  memcpy(to, &record, sizeof(record));
}

void put(uint8_t *to, const Seen &seen) {
  if (seen.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
    put<CUpti_ActivityKernel10>(
        to, seen, [](CUpti_ActivityKernel10 &record, const Seen &from) {
          record.name = from.name;
        });
  else if (seen.kind == CUPTI_ACTIVITY_KIND_MEMSET)
    put<CUpti_ActivityMemset4>(to, seen,
                               [](CUpti_ActivityMemset4 &, const Seen &) {});
  else
    put<CUpti_ActivityMemcpy6>(
        to, seen, [](CUpti_ActivityMemcpy6 &record, const Seen &from) {
          record.copyKind = static_cast<uint8_t>(from.copyKind);
        });
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT CUptiResult
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                               CUpti_BuffersCallbackCompleteFunc complete) {
  if (!request || !complete)
    return CUPTI_ERROR_INVALID_PARAMETER;
  Dl_info here = {};
  dladdr(reinterpret_cast<const void *>(&state), &here);
  std::string path = here.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
  void *driver = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto *found = driver ? reinterpret_cast<decltype(&dyna_standin_observe)>(
                             dlsym(driver, "dyna_standin_observe"))
                       : nullptr;
  if (!found)
    return CUPTI_ERROR_NOT_INITIALIZED;
  state().request = request, state().complete = complete;
  found(observe);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().kinds.insert(kind);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t) {
  std::vector<Seen> seen;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    seen.swap(state().seen);
  }
  for (size_t next = 0; next < seen.size();) {
    uint8_t *buffer = nullptr;
    size_t bytes = 0, most = 0, used = 0;
    state().request(&buffer, &bytes, &most);
    // Behind the records nothing has a meaning.
    memset(buffer, 0x5a, bytes);
    const size_t first = next;
    for (; next < seen.size() && used + bytesOf(seen[next].kind) <= bytes;
         used += bytesOf(seen[next++].kind))
      put(buffer + used, seen[next]);
    state().complete(nullptr, 0, buffer, bytes, used);
    if (next == first)
      return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes,
                                              CUpti_Activity **record) {
  uint8_t *next = buffer;
  if (*record)
    next = reinterpret_cast<uint8_t *>(*record) + bytesOf((*record)->kind);
  if (next >= buffer + bytes)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity *>(next);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t,
                                                     size_t *dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}
