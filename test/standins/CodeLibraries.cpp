//===- CodeLibraries.cpp - What cuDNN asks of a driver to plan --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// When cuDNN makes a plan for a device that is described to it, it compiles the
// plan's kernels, gives their machine code to the driver and looks them up. Here
// the code is read as far as that: it must be an ELF of NVIDIA's, of an architecture,
// with a kernel of that name. None can run.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/DriverApi.h"
#include "test/standins/DriverStandin.h"

#include <cstring>
#include <elf.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dyna::cuda;

// The driver's own names of what it gives out.
struct CUlib_st {
  std::vector<char> code;
};
struct CUkern_st {
  CUlib_st *library;
};

namespace {

constexpr Elf64_Half kMachineCuda = 190;
constexpr Result kNotSupported = 801;

struct Libraries {
  std::mutex mutex;
  std::map<CUlib_st *, std::unique_ptr<CUlib_st>> loaded;
  std::vector<std::unique_ptr<CUkern_st>> kernels;
  int64_t found = 0;
};

Libraries &libraries() {
  static auto *only = new Libraries; // used until the process ends
  return *only;
}

/// Bytes of an ELF, up to the end of its tables; 0: it is none of NVIDIA's.
size_t sizeOfCode(const char *code) {
  Elf64_Ehdr head;
  if (memcmp(code, ELFMAG, SELFMAG) != 0)
    return 0;
  memcpy(&head, code, sizeof(head));
  if (head.e_machine != kMachineCuda)
    return 0;
  const size_t sections =
      head.e_shoff + size_t(head.e_shnum) * head.e_shentsize;
  const size_t programs =
      head.e_phoff + size_t(head.e_phnum) * head.e_phentsize;
  return sections < programs ? programs : sections;
}

} // namespace

#define DYNA_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

DYNA_STANDIN_EXPORT int64_t dyna_standin_libraries(void) {
  std::lock_guard<std::mutex> lock(libraries().mutex);
  return static_cast<int64_t>(libraries().loaded.size());
}

DYNA_STANDIN_EXPORT int64_t dyna_standin_kernels_found(void) {
  std::lock_guard<std::mutex> lock(libraries().mutex);
  return libraries().found;
}

/// Tables of functions that only NVIDIA's own libraries know.
DYNA_STANDIN_EXPORT Result cuGetExportTable(const void **, const void *) {
  return kNotFound;
}

DYNA_STANDIN_EXPORT Result cuLibraryLoadData(CUlib_st **library,
                                             const void *code, int32_t *,
                                             void **, unsigned, int32_t *,
                                             void **, unsigned) {
  const auto *bytes = static_cast<const char *>(code);
  const size_t size = sizeOfCode(bytes);
  if (size == 0)
    return kInvalidImage;
  std::lock_guard<std::mutex> lock(libraries().mutex);
  auto made = std::make_unique<CUlib_st>();
  made->code.assign(bytes, bytes + size);
  *library = made.get();
  libraries().loaded.emplace(made.get(), std::move(made));
  return kSuccess;
}

DYNA_STANDIN_EXPORT Result cuLibraryUnload(CUlib_st *library) {
  std::lock_guard<std::mutex> lock(libraries().mutex);
  return libraries().loaded.erase(library) > 0 ? kSuccess : kInvalidHandle;
}

DYNA_STANDIN_EXPORT Result cuLibraryGetKernel(CUkern_st **kernel,
                                              CUlib_st *library,
                                              const char *name) {
  std::lock_guard<std::mutex> lock(libraries().mutex);
  Libraries &all = libraries();
  if (all.loaded.count(library) == 0)
    return kInvalidHandle;
  const std::vector<char> &code = library->code;
  // With its end, as tables of names have it; they begin with an empty one.
  std::string text(1, '\0');
  text.append(name).push_back('\0');
  if (std::string_view(code.data(), code.size()).find(text) ==
      std::string_view::npos)
    return kNotFound;
  all.kernels.push_back(std::make_unique<CUkern_st>(CUkern_st{library}));
  *kernel = all.kernels.back().get();
  ++all.found;
  return kSuccess;
}

// What cuDNN looks up when it begins, and what its plans would need to run: refused.
#define DYNA_STANDIN_REFUSE(name)                                              \
  DYNA_STANDIN_EXPORT Result name(void) { return kNotSupported; }
DYNA_STANDIN_REFUSE(cuCtxGetCurrent)
DYNA_STANDIN_REFUSE(cuCtxGetLimit)
DYNA_STANDIN_REFUSE(cuCtxPopCurrent)
DYNA_STANDIN_REFUSE(cuCtxPushCurrent)
DYNA_STANDIN_REFUSE(cuKernelGetAttribute)
DYNA_STANDIN_REFUSE(cuKernelSetAttribute)
DYNA_STANDIN_REFUSE(cuLaunchCooperativeKernel)
DYNA_STANDIN_REFUSE(cuLaunchKernelEx)
DYNA_STANDIN_REFUSE(cuLibraryLoadFromFile)
DYNA_STANDIN_REFUSE(cuLinkAddData)
DYNA_STANDIN_REFUSE(cuLinkComplete)
DYNA_STANDIN_REFUSE(cuLinkCreate)
DYNA_STANDIN_REFUSE(cuLinkDestroy)
DYNA_STANDIN_REFUSE(cuOccupancyMaxPotentialClusterSize)
DYNA_STANDIN_REFUSE(cuStreamGetCtx)
