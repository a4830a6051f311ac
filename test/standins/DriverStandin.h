//===- DriverStandin.h - A driver of CUDA without a GPU ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `standins/cuda/libcuda.so.1` of the build folder has the functions of
// runtime/device/cuda/driver/DriverApi.h and is found through DYNA_CUDA_LIBRARY_PATH, as
// the real one may be. Streams run late, in seeded order (LateStreams.h), host
// code cannot touch device memory (DeviceMemory.h), modules are images of
// Fibers.h. A call with a wrong handle, a range outside of an allocation, or on a
// thread without a context fails as a driver's does. What would block the host
// for ever ends the process with a line; so does a copy from or to memory that is
// not page-locked, behind work that hangs.
//
// It does as environment variables say when a device is first retained, or
// retained again after all were released:
//
//   DYNA_STANDIN_SEED        0 (as late as can be) or another order of streams
//   DYNA_STANDIN_DEVICES     how many there are: 1
//   DYNA_STANDIN_MEMORY      bytes of each: 1 GiB
//   DYNA_STANDIN_CAPABILITY  10 major + minor: 0, that of emulated code
//   DYNA_STANDIN_DRIVER      version: 13000
//   DYNA_STANDIN_NAME        of each device: stand-in
//   DYNA_STANDIN_FAULT       n: the n-th copy, fill or launch of the process,
//   DYNA_STANDIN_HANG        counted in the order given from then on, accesses an
//                            illegal address or never ends; a copy to the host
//                            that does so has come in parts
//
// DYNA_STANDIN_DEVICES, DYNA_STANDIN_DRIVER and DYNA_STANDIN_NAME are read at
// every question. As a driver does, it loads the library that CUDA_INJECTION64_PATH
// names when it is initialized, and calls InitializeInjection there. Beside it,
// `standins/old/libcuda.so.1` is of CUDA 10.2 and lacks a function, and
// `standins/named/libcuda.so.1` has its own name inside: once it is loaded, libraries
// that open the driver by that name get it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_DRIVERSTANDIN_H
#define DYNA_TEST_STANDINS_DRIVERSTANDIN_H

#include <cstddef>
#include <cstdint>

// Exported beside the driver's functions, for tests, which find them by dlsym.

/// How much was made and not destroyed, on all devices together.
extern "C" int64_t dyna_standin_live(void);
/// Forgets all devices with what they have, as the end of a process does. None
/// may be used any more.
extern "C" void dyna_standin_reset(void);
/// Of the thread's device: how much work (as DYNA_STANDIN_FAULT counts it) was
/// given so far, and of all work how much has not run.
extern "C" int64_t dyna_standin_given(void);
extern "C" int64_t dyna_standin_waiting(void);
/// Copies that were asked for from or to memory of the host that is not page-locked, for
/// which a driver may make the host wait.
extern "C" int64_t dyna_standin_pageable(void);
/// Libraries of machine code that are loaded (CodeLibraries.cpp), and kernels that
/// were found in such, ever.
extern "C" int64_t dyna_standin_libraries(void);
extern "C" int64_t dyna_standin_kernels_found(void);
/// Whether the range lies in one allocation of the thread's device.
extern "C" int32_t dyna_standin_holds(const void *data, size_t bytes);

/// From now on `observer` is told of all work that has run: its stream's number, and
/// when it began and ended, in nanoseconds of the host's steady clock. What
/// the stand-in of CUPTI is made of.
enum dyna_standin_work : int32_t {
  DYNA_STANDIN_KERNEL,
  DYNA_STANDIN_FILL,
  DYNA_STANDIN_TO_DEVICE,
  DYNA_STANDIN_TO_HOST,
  DYNA_STANDIN_INSIDE ///< a copy from device memory to device memory
};
using dyna_standin_observer = void (*)(dyna_standin_work kind, const char *name,
                                       uint32_t stream, int64_t begin,
                                       int64_t end);
extern "C" void dyna_standin_observe(dyna_standin_observer observer);

#endif // DYNA_TEST_STANDINS_DRIVERSTANDIN_H
