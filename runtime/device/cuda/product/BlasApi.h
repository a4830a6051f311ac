//===- BlasApi.h - Declares the used part of cuBLASLt -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the used types, numbers and functions of cuBLASLt, so that the build
// needs no toolkit. BlasApiTest compares all of it with cublasLt.h if that is
// installed.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASAPI_H
#define DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASAPI_H

#include "runtime/device/cuda/driver/DriverApi.h"

// The library's own name.
struct cublasLtContext;

namespace dyna::cuda {

/// Enumerations of the interface are passed as 32 bits.
using BlasResult = int32_t;
using BlasHandle = cublasLtContext *;

// Opaque types of the library.
struct BlasOperation;  ///< cublasLtMatmulDesc
struct BlasLayout;     ///< cublasLtMatrixLayout, column-major
struct BlasPreference; ///< cublasLtMatmulPreference

/// An algorithm; it may be stored in a file, for the same version of the
/// library and device.
struct BlasAlgorithm {
  uint64_t data[8];
};

/// An algorithm that the library proposes for a product.
struct BlasChoice {
  BlasAlgorithm algorithm;
  size_t workspaceBytes;
  BlasResult state; ///< kBlasSuccess, or the rest is undefined
  float waves;
  int32_t reserved[4];
};

enum : BlasResult {
  kBlasSuccess = 0,
  kBlasNotInitialized = 1,
  kBlasAllocFailed = 3,
  kBlasInvalidValue = 7,
  kBlasArchMismatch = 8,
  kBlasExecutionFailed = 13,
  kBlasInternalError = 14,
  kBlasNotSupported = 15,
};

enum : int32_t {
  // cudaDataType
  kBlasF32 = 0,
  kBlasF64 = 1,
  kBlasBf16 = 14,
  // cublasComputeType_t
  kBlasComputeF32 = 68,
  kBlasComputeF64 = 70,
  kBlasComputeTf32 = 77,
  // cublasLtMatmulDescAttributes_t, and their values (cublasOperation_t)
  kBlasTransposeA = 3,
  kBlasTransposeB = 4,
  kBlasEpilogue = 7,
  kBlasBiasPointer = 8,
  kBlasAuxPointer = 11,
  kBlasAuxLeading = 12,
  kBlasAsIs = 0,
  kBlasTransposed = 1,
  // cublasLtMatrixLayoutAttribute_t
  kBlasLayoutRows = 2,
  kBlasLayoutColumns = 3,
  // cublasLtMatmulPreferenceAttributes_t
  kBlasMaxWorkspace = 1,
  kBlasReductionMask = 3,
  kBlasAlignmentA = 5,
  kBlasAlignmentB = 6,
  kBlasAlignmentC = 7,
  kBlasAlignmentD = 8,
};

enum : uint32_t {
  // cublasLtEpilogue_t
  kBlasEpilogueNone = 1,
  kBlasEpilogueBias = 4,
  kBlasEpilogueBiasGelu = 36,
  kBlasEpilogueBiasGeluAux = 164,
  kBlasEpilogueGeluGrad = 192,
  // cublasLtReductionScheme_t: memory in which parts of a sum over k are added.
  // Algorithms that do not split k are always allowed.
  kBlasReduceInPlace = 1,
  kBlasReduceInComputeType = 2,
  kBlasReduceInOutputType = 4,
};

/// Distance of columns of aux must be a multiple of this number of elements.
inline constexpr int64_t kBlasAuxElements = 8;

/// Alignment that the library needs for its workspace.
inline constexpr int64_t kBlasWorkspaceAlignment = 256;

// clang-format off
/// X(member, function of the library, type)
#define DYNA_CUDA_BLAS_FUNCTIONS(X)                                            \
  X(create, cublasLtCreate, BlasResult(BlasHandle *))                          \
  X(destroy, cublasLtDestroy, BlasResult(BlasHandle))                          \
  X(libraryVersion, cublasLtGetVersion, size_t())                              \
  X(statusName, cublasLtGetStatusName, const char *(BlasResult))               \
  X(createOperation, cublasLtMatmulDescCreate,                                 \
    BlasResult(BlasOperation **, int32_t, int32_t))                            \
  X(destroyOperation, cublasLtMatmulDescDestroy, BlasResult(BlasOperation *))  \
  X(setOperation, cublasLtMatmulDescSetAttribute,                              \
    BlasResult(BlasOperation *, int32_t, const void *, size_t))                \
  X(createLayout, cublasLtMatrixLayoutCreate,                                  \
    BlasResult(BlasLayout **, int32_t, uint64_t, uint64_t, int64_t))           \
  X(destroyLayout, cublasLtMatrixLayoutDestroy, BlasResult(BlasLayout *))      \
  X(setLayout, cublasLtMatrixLayoutSetAttribute,                               \
    BlasResult(BlasLayout *, int32_t, const void *, size_t))                   \
  X(createPreference, cublasLtMatmulPreferenceCreate,                          \
    BlasResult(BlasPreference **))                                             \
  X(destroyPreference, cublasLtMatmulPreferenceDestroy,                        \
    BlasResult(BlasPreference *))                                              \
  X(setPreference, cublasLtMatmulPreferenceSetAttribute,                       \
    BlasResult(BlasPreference *, int32_t, const void *, size_t))               \
  X(propose, cublasLtMatmulAlgoGetHeuristic,                                   \
    BlasResult(BlasHandle, BlasOperation *, BlasLayout *, BlasLayout *,        \
               BlasLayout *, BlasLayout *, BlasPreference *, int,              \
               BlasChoice *, int *))                                           \
  X(check, cublasLtMatmulAlgoCheck,                                            \
    BlasResult(BlasHandle, BlasOperation *, BlasLayout *, BlasLayout *,        \
               BlasLayout *, BlasLayout *, const BlasAlgorithm *,              \
               BlasChoice *))                                                  \
  X(multiply, cublasLtMatmul,                                                  \
    BlasResult(BlasHandle, BlasOperation *, const void *, const void *,        \
               BlasLayout *, const void *, BlasLayout *, const void *,         \
               const void *, BlasLayout *, void *, BlasLayout *,               \
               const BlasAlgorithm *, void *, size_t, StreamHandle))
// clang-format on

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASAPI_H
