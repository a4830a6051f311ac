//===- BlasStandin.h - cuBLASLt without a GPU -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `standins/cuda/libcublasLt.so.13` of the build folder has the functions of
// runtime/device/cuda/product/BlasApi.h and is found through DYNA_CUDA_LIBRARY_PATH, as
// the real one may be. It is to the driver's stand-in beside it what the library
// is to the driver: products are kernels that it loads and launches, loops over
// fibers, which run late and alone may touch device memory.
//
// Descriptors, layouts and preferences mean what they mean to the library. Refused
// are types that do not go together, sizes that do not fit, leading dimensions
// that are too small, algorithms of other products, a workspace that is too small
// or not aligned; epilogues in f64, without the vector or matrix that they take,
// with an aux whose columns are no multiple of eight elements apart. It proposes,
// if the preferences and the product allow:
//
//   Rounding   parts of the sum over k are added in the type of C
//   Parts      they are added in the compute type, in the workspace: two pieces of
//              work, between which nobody else may touch it
//   Vectors    all matrices are aligned to 16 bytes, k is a multiple of 4
//   Elements   anything
//
// DYNA_STANDIN_BLAS is its version: 130000. Beside it, `standins/old` has one of
// version 11.4.2, which lacks a function.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_BLASSTANDIN_H
#define DYNA_TEST_STANDINS_BLASSTANDIN_H

#include <cstdint>

// Exported beside the library's functions, for tests, which find them by dlsym.

/// Handles, descriptors, layouts and preferences made and not destroyed.
extern "C" int64_t dyna_standin_blas_live(void);

/// Products so far that had an epilogue.
extern "C" int64_t dyna_standin_blas_epilogues(void);

/// Products so far by each algorithm, in the order above.
extern "C" const int64_t *dyna_standin_blas_products(void);
enum {
  DYNA_STANDIN_ROUNDING,
  DYNA_STANDIN_PARTS,
  DYNA_STANDIN_VECTORS,
  DYNA_STANDIN_ELEMENTS,
  DYNA_STANDIN_ALGORITHMS
};

#endif // DYNA_TEST_STANDINS_BLASSTANDIN_H
