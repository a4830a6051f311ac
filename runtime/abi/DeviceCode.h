//===- DeviceCode.h - Describes the kernels of compiled code ------*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiled code for a GPU has kernels beside its layer functions, which launch
// them. The kernels are compiled for some architectures and are constants of
// the object. A device loads the matching image once. The host's device has no
// kernels of this kind.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_DEVICECODE_H
#define DYNA_RUNTIME_ABI_DEVICECODE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The architectures that code can be made for, ascending.
#define DYNA_ARCHITECTURES {80, 90, 100, 120}

/// Values of `kind` of an image.
enum {
  /// A cubin: for `architecture` and higher ones of the same major number.
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
  /// Shared memory of a block beside what the kernel declares itself; generated
  /// code has 0.
  int32_t shared_bytes;
} dyna_device_function;

/// Images by architecture, cubins before PTX; kernels by number.
struct dyna_device_code {
  const dyna_device_image *images;
  int64_t image_count;
  const dyna_device_function *functions;
  int64_t function_count;
  /// Oldest version of the driver's interface that loads the images, 1000 major
  /// + 10 minor; 0: any. Minor versions of a toolkit are compatible. So this is
  /// the first version with the major number of the toolkit that made the
  /// images.
  int64_t oldest_driver;
};

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_RUNTIME_ABI_DEVICECODE_H
