//===- DeviceCode.h - Kernels that compiled code brings -----------*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What compiled code for a GPU has beside its layer functions: the kernels that
// these launch, compiled for some architectures, as constants of the object. A
// device loads the image that suits it once. The host's device has none of this.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_DEVICECODE_H
#define DYNA_RUNTIME_ABI_DEVICECODE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The architectures that code is made for, ascending: {80, 90, 100, 120}.
#define DYNA_ARCHITECTURES {80, 90, 100, 120}

/// What `kind` says of an image.
enum {
  /// A cubin: for `architecture` and those of the same major number above it.
  DYNA_IMAGE_CUBIN = 0,
  /// PTX, with a 0 at its end: for `architecture` and all above it.
  DYNA_IMAGE_PTX = 1,
  /// A dyna_emulated_image (test/standins/Fibers.h): code of the processor.
  DYNA_IMAGE_EMULATED = 2,
};

typedef struct dyna_device_image {
  int32_t architecture; ///< 90: compute capability 9.0; 0: emulated
  int32_t kind;         ///< DYNA_IMAGE_*
  const void *bytes;
  int64_t size;
} dyna_device_image;

/// A kernel: its name in the images, and how it is launched. Its one parameter
/// is a struct of `argument_bytes` bytes, by value.
typedef struct dyna_device_function {
  const char *name;
  int64_t argument_bytes;
  int32_t block; ///< threads of a block, in one dimension
  /// Of a block, beside what it declares itself; generated code has 0.
  int32_t shared_bytes;
} dyna_device_function;

/// Images by architecture, cubins before PTX; kernels by number.
struct dyna_device_code {
  const dyna_device_image *images;
  int64_t image_count;
  const dyna_device_function *functions;
  int64_t function_count;
  /// Oldest version of the driver's interface that loads the images, 1000 major +
  /// 10 minor: the first of the major version of the toolkit that made them, whose
  /// minor versions are compatible. 0: any.
  int64_t oldest_driver;
};

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_RUNTIME_ABI_DEVICECODE_H
