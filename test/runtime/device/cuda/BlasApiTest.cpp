//===- BlasApiTest.cpp - Our declarations against the toolkit's -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/product/BlasApi.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define DYNA_HAS_BLAS_HEADER 1
#endif

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

using namespace dyna::cuda;

#ifdef DYNA_HAS_BLAS_HEADER
namespace {

/// As we write a type of the library's: its enumerations are 32 bits, and what
/// it alone looks into has names of ours.
template <typename T> struct Ours {
  using type = T;
};
template <> struct Ours<cublasLtMatmulDescOpaque_t> {
  using type = BlasOperation;
};
template <> struct Ours<cublasLtMatrixLayoutOpaque_t> {
  using type = BlasLayout;
};
template <> struct Ours<cublasLtMatmulPreferenceOpaque_t> {
  using type = BlasPreference;
};
template <> struct Ours<cublasLtMatmulAlgo_t> {
  using type = BlasAlgorithm;
};
template <> struct Ours<cublasLtMatmulHeuristicResult_t> {
  using type = BlasChoice;
};
template <typename T> struct Enumeration {
  static_assert(sizeof(T) == 4);
  using type = int32_t;
};
template <typename T> struct Plain {
  using type = typename std::conditional_t<std::is_enum_v<T>, Enumeration<T>,
                                           Ours<T>>::type;
};
template <typename T> struct Plain<const T> {
  using type = const typename Plain<T>::type;
};
template <typename T> struct Plain<T *> {
  using type = typename Plain<T>::type *;
};
template <typename R, typename... A> struct Plain<R(A...)> {
  using type = typename Plain<R>::type(typename Plain<A>::type...);
};

#define DYNA_CHECK_FUNCTION(member, symbol, ...)                               \
  static_assert(                                                               \
      std::is_same_v<typename Plain<decltype(symbol)>::type, __VA_ARGS__>,     \
      #symbol);
DYNA_CUDA_BLAS_FUNCTIONS(DYNA_CHECK_FUNCTION)

static_assert(std::is_same_v<cublasLtHandle_t, BlasHandle>);
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(BlasAlgorithm));
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(BlasChoice));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) ==
              offsetof(BlasChoice, workspaceBytes));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) ==
              offsetof(BlasChoice, state));

static_assert(kBlasSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kBlasNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(kBlasAllocFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(kBlasInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kBlasArchMismatch == CUBLAS_STATUS_ARCH_MISMATCH);
static_assert(kBlasExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(kBlasInternalError == CUBLAS_STATUS_INTERNAL_ERROR);
static_assert(kBlasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(kBlasF32 == CUDA_R_32F);
static_assert(kBlasF64 == CUDA_R_64F);
static_assert(kBlasBf16 == CUDA_R_16BF);
static_assert(kBlasComputeF32 == CUBLAS_COMPUTE_32F);
static_assert(kBlasComputeF64 == CUBLAS_COMPUTE_64F);
static_assert(kBlasComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kBlasTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kBlasTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kBlasEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kBlasBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kBlasAuxPointer == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
static_assert(kBlasAuxLeading == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(kBlasEpilogueNone == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(kBlasEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kBlasEpilogueBiasGelu == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(kBlasEpilogueBiasGeluAux == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(kBlasEpilogueGeluGrad == CUBLASLT_EPILOGUE_DGELU);
static_assert(kBlasAsIs == CUBLAS_OP_N);
static_assert(kBlasTransposed == CUBLAS_OP_T);
static_assert(kBlasLayoutRows == CUBLASLT_MATRIX_LAYOUT_ROWS);
static_assert(kBlasLayoutColumns == CUBLASLT_MATRIX_LAYOUT_COLS);
static_assert(kBlasMaxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kBlasReductionMask == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kBlasAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kBlasAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kBlasAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kBlasAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kBlasReduceInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE);
static_assert(kBlasReduceInComputeType ==
              CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kBlasReduceInOutputType == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);

} // namespace

TEST(BlasApi, IsTheToolkits) {}
#else
TEST(BlasApi, IsTheToolkits) {
  GTEST_SKIP() << "there is no cublasLt.h to compare with";
}
#endif
