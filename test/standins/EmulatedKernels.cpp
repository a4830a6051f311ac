//===- EmulatedKernels.cpp - The kernels written by hand, emulated --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/FunctionTable.h"
#include "test/standins/Fibers.h"

#define DYNA_CUDA_KERNEL(name, Arguments, Shared, threads)                     \
  extern "C" void dyna_emulated_kernel_##name(const void *arguments);
#include "runtime/device/cuda/kernels/Kernels.def"

using namespace dyna::gpu;

static const dyna_emulated_entry entries[] = {
#define DYNA_CUDA_KERNEL(name, Arguments, Shared, threads)                     \
  {#name, dyna_emulated_kernel_##name, sizeof(Arguments)},
#include "runtime/device/cuda/kernels/Kernels.def"
};

static const dyna_emulated_image image = {DYNA_EMULATED_MAGIC, sizeof(image),
                                          kKernelCount, entries,
                                          dyna_emulated_run};

static const dyna_device_image images[] = {
    {0, DYNA_IMAGE_EMULATED, &image, sizeof(image)}};

const dyna_device_code dyna_cuda_kernels = {images, 1, kKernelFunctions,
                                            kKernelCount, 0};
