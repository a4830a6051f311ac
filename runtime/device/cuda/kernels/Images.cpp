//===- Images.cpp - Embeds the kernels for GPUs ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// CMakeLists.txt makes the images and writes their list. The assembler takes them
// in and knows their sizes: it writes the table, of dyna_device_image, too.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/FunctionTable.h"

static_assert(sizeof(dyna_device_image) == 24 && DYNA_IMAGE_CUBIN == 0 &&
                  DYNA_IMAGE_PTX == 1,
              "as the assembler writes it below");

asm(".section .data.rel.ro.dyna_kernels, \"aw\"\n"
    ".balign 8\n"
    ".hidden dyna_kernel_images\n"
    ".globl dyna_kernel_images\n"
    "dyna_kernel_images:\n"
    ".previous\n");

// A 0 follows, which ends text for the driver and is part of it.
#define DYNA_EMBED(architecture, kind, zeros, path)                            \
  asm(".section .rodata.dyna_kernels, \"a\"\n"                                 \
      ".balign 64\n"                                                           \
      "1: .incbin \"" path "\"\n"                                              \
      ".byte 0\n"                                                              \
      "2:\n"                                                                   \
      ".section .data.rel.ro.dyna_kernels, \"aw\"\n"                           \
      ".long " #architecture "\n"                                              \
      ".long " #kind "\n"                                                      \
      ".quad 1b\n"                                                             \
      ".quad 2b - 1b - 1 + " #zeros "\n"                                       \
      ".previous\n"                                                            \
      ".previous\n");
#define DYNA_CUBIN(architecture, path) DYNA_EMBED(architecture, 0, 0, path)
#define DYNA_PTX(architecture, path) DYNA_EMBED(architecture, 1, 1, path)
#include "runtime/device/cuda/kernels/Images.inc"

#undef DYNA_CUBIN
#undef DYNA_PTX

#define DYNA_CUBIN(architecture, path) +1
#define DYNA_PTX(architecture, path) +1
static constexpr int kImages =
#include "runtime/device/cuda/kernels/Images.inc"
    ;

extern "C" const dyna_device_image dyna_kernel_images[kImages];

const dyna_device_code dyna_cuda_kernels = {
    dyna_kernel_images, kImages, dyna::gpu::kKernelFunctions,
    dyna::gpu::kKernelCount, DYNA_CUDA_TOOLKIT_MAJOR * 1000};
