//===- BlasStandin.cpp - cuBLASLt without a GPU -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/BlasStandin.h"

#include "runtime/device/cuda/product/BlasApi.h"
#include "test/standins/BlasLoops.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

using namespace dyna::cuda;
using namespace dyna::standins;

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

namespace {

std::atomic<int64_t> live{0};
int64_t products[DYNA_STANDIN_ALGORITHMS];
int64_t epilogues = 0;

constexpr uint64_t kMagic = 0x6f67696c61736c62;

/// Functions of the driver's stand-in, which lies beside this library.
struct Driver {
#define DYNA_STANDIN_MEMBER(member, symbol, ...)                               \
  using member##_type = __VA_ARGS__;                                           \
  member##_type *member = nullptr;
  DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_STANDIN_MEMBER)
  int32_t (*holds)(const void *, size_t) = nullptr;

  Driver() {
    Dl_info here = {};
    dladdr(reinterpret_cast<const void *>(&products), &here);
    std::string path = here.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
    void *library = dlopen(path.c_str(), RTLD_NOW);
    if (!library)
      return;
#define DYNA_STANDIN_FIND(member, symbol, ...)                                 \
  member = reinterpret_cast<member##_type *>(dlsym(library, #symbol));
    DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_STANDIN_FIND)
    holds =
        reinterpret_cast<decltype(holds)>(dlsym(library, "dyna_standin_holds"));
  }
};

const Driver &driver() {
  static const Driver only;
  return only;
}

int64_t bytesOf(int32_t type) {
  return type == kBlasF64 ? 8 : type == kBlasF32 ? 4 : 2;
}

} // namespace

struct cublasLtContext {
  Module module = nullptr;
  Function function = nullptr;
};

struct dyna::cuda::BlasOperation {
  int32_t compute, scale;
  int32_t transposeA = kBlasAsIs, transposeB = kBlasAsIs;
  uint32_t epilogue = kBlasEpilogueNone;
  const void *bias = nullptr;
  void *aux = nullptr;
  int64_t auxLeading = 0;

  bool hasBias() const {
    return epilogue == kBlasEpilogueBias || epilogue == kBlasEpilogueBiasGelu ||
           epilogue == kBlasEpilogueBiasGeluAux;
  }
  bool hasAux() const {
    return epilogue == kBlasEpilogueBiasGeluAux ||
           epilogue == kBlasEpilogueGeluGrad;
  }
};

struct dyna::cuda::BlasLayout {
  int32_t type;
  uint64_t rows, columns;
  int64_t leading;
};

struct dyna::cuda::BlasPreference {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

template <typename T> BlasResult make(T **made, T value) {
  *made = new T(value);
  ++live;
  return kBlasSuccess;
}
template <typename T> BlasResult destroy(T *made) {
  if (!made)
    return kBlasInvalidValue;
  delete made;
  --live;
  return kBlasSuccess;
}
template <typename T> BlasResult set(T &field, const void *data, size_t bytes) {
  if (!data || bytes != sizeof(T))
    return kBlasInvalidValue;
  memcpy(&field, data, sizeof(T));
  return kBlasSuccess;
}

/// A product as its descriptors say.
struct Described {
  BlasOperation operation;
  BlasLayout a, b, c, d;
};

uint64_t alignmentOf(const void *address) {
  auto bits = reinterpret_cast<uint64_t>(address) | 256;
  return bits & (~bits + 1);
}

/// `isF64`: for which there are none. Only addresses are looked at.
BlasResult checkEpilogue(const Described &p, bool isF64) {
  const BlasOperation &o = p.operation;
  if (o.epilogue == kBlasEpilogueNone)
    return kBlasSuccess;
  if (isF64 || (!o.hasBias() && !o.hasAux()))
    return kBlasNotSupported;
  const auto element = static_cast<uint64_t>(bytesOf(p.d.type));
  if (o.hasBias() && (!o.bias || alignmentOf(o.bias) % element != 0))
    return kBlasInvalidValue;
  if (!o.hasAux())
    return kBlasSuccess;
  if (!o.aux || o.auxLeading < static_cast<int64_t>(p.d.rows) ||
      o.auxLeading % kBlasAuxElements != 0)
    return kBlasInvalidValue;
  return alignmentOf(o.aux) % 16 == 0 ? kBlasSuccess : kBlasNotSupported;
}

BlasResult check(const Described &p) {
  const BlasOperation &o = p.operation;
  const bool isF64 = p.a.type == kBlasF64 && p.c.type == kBlasF64;
  const bool isF32 = p.a.type == kBlasF32 && p.c.type == kBlasF32;
  const bool isBf16 =
      p.a.type == kBlasBf16 && (p.c.type == kBlasBf16 || p.c.type == kBlasF32);
  const bool isKnown = (isF64 && o.compute == kBlasComputeF64) ||
                       (isF32 && (o.compute == kBlasComputeF32 ||
                                  o.compute == kBlasComputeTf32)) ||
                       (isBf16 && o.compute == kBlasComputeF32);
  if (!isKnown || o.scale != (isF64 ? kBlasF64 : kBlasF32) ||
      p.b.type != p.a.type || p.d.type != p.c.type)
    return kBlasNotSupported;
  for (const BlasLayout *layout : {&p.a, &p.b, &p.c, &p.d})
    if (layout->rows == 0 || layout->columns == 0 ||
        layout->leading < static_cast<int64_t>(layout->rows))
      return kBlasInvalidValue;
  const bool a = o.transposeA == kBlasTransposed;
  const bool b = o.transposeB == kBlasTransposed;
  const uint64_t m = a ? p.a.columns : p.a.rows, n = b ? p.b.rows : p.b.columns;
  const uint64_t k = a ? p.a.rows : p.a.columns;
  if ((b ? p.b.columns : p.b.rows) != k || p.c.rows != m || p.c.columns != n ||
      p.d.rows != m || p.d.columns != n)
    return kBlasInvalidValue;
  return checkEpilogue(p, isF64);
}

uint64_t depth(const Described &p) {
  return p.operation.transposeA == kBlasTransposed ? p.a.rows : p.a.columns;
}

/// Bytes by which all rows of a matrix are aligned if its first element is by
/// `alignment`.
bool hasVectors(const BlasLayout &layout, uint64_t alignment) {
  return alignment % 16 == 0 && layout.leading * bytesOf(layout.type) % 16 == 0;
}

size_t workspaceOf(const Described &p, int algorithm) {
  if (algorithm != DYNA_STANDIN_PARTS)
    return 0;
  return p.d.rows * p.d.columns * (p.d.type == kBlasF64 ? 8 : 4);
}

/// Whether the algorithm can do it with matrices so aligned.
bool suits(const Described &p, int algorithm, const uint64_t (&alignments)[4]) {
  const BlasLayout *layouts[] = {&p.a, &p.b, &p.c, &p.d};
  for (size_t i = 0; i < 4; ++i)
    if (alignments[i] % static_cast<uint64_t>(bytesOf(layouts[i]->type)) != 0)
      return false;
  switch (algorithm) {
  case DYNA_STANDIN_ROUNDING:
    return p.d.type == kBlasBf16 && depth(p) >= 2;
  case DYNA_STANDIN_PARTS:
    return depth(p) >= 48;
  case DYNA_STANDIN_VECTORS:
    for (size_t i = 0; i < 4; ++i)
      if (!hasVectors(*layouts[i], alignments[i]))
        return false;
    if (p.operation.hasBias() && alignmentOf(p.operation.bias) % 16 != 0)
      return false;
    return depth(p) % 4 == 0;
  default:
    return true;
  }
}

/// What an algorithm is for beside sizes.
uint64_t kindOf(const Described &p) {
  return static_cast<uint64_t>(
             ((p.a.type * 32 + p.c.type) * 128 + p.operation.compute) * 4 +
             p.operation.transposeA * 2 + p.operation.transposeB) *
             256 +
         p.operation.epilogue;
}

BlasResult choose(const Described &p, int algorithm,
                  const uint64_t (&alignments)[4], BlasChoice &choice) {
  choice = {};
  choice.state = kBlasNotSupported;
  if (!suits(p, algorithm, alignments))
    return kBlasNotSupported;
  choice.algorithm = {{kMagic, static_cast<uint64_t>(algorithm), kindOf(p)}};
  choice.workspaceBytes = workspaceOf(p, algorithm);
  choice.waves = 1;
  choice.state = kBlasSuccess;
  return kBlasSuccess;
}

/// The algorithm's number; -1: it is for another product.
int numberOf(const BlasAlgorithm &algorithm, const Described &p) {
  if (algorithm.data[0] != kMagic || algorithm.data[2] != kindOf(p) ||
      algorithm.data[1] >= DYNA_STANDIN_ALGORITHMS)
    return -1;
  return static_cast<int>(algorithm.data[1]);
}

} // namespace

#define DYNA_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

DYNA_STANDIN_EXPORT int64_t dyna_standin_blas_live(void) { return live; }
DYNA_STANDIN_EXPORT const int64_t *dyna_standin_blas_products(void) {
  return products;
}
DYNA_STANDIN_EXPORT int64_t dyna_standin_blas_epilogues(void) {
  return epilogues;
}

//===----------------------------------------------------------------------===//
// Handles and descriptors
//===----------------------------------------------------------------------===//

DYNA_STANDIN_EXPORT size_t cublasLtGetVersion(void) {
#ifdef DYNA_STANDIN_OLD
  return 110402;
#else
  const char *text = std::getenv("DYNA_STANDIN_BLAS");
  return text && *text ? static_cast<size_t>(strtoll(text, nullptr, 10))
                       : 130000;
#endif
}

DYNA_STANDIN_EXPORT const char *cublasLtGetStatusName(BlasResult result) {
  switch (result) {
  case kBlasSuccess:
    return "CUBLAS_STATUS_SUCCESS";
  case kBlasNotInitialized:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case kBlasInvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case kBlasExecutionFailed:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case kBlasNotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return nullptr;
  }
}

/// Of the device to which the thread's calls of the driver go.
DYNA_STANDIN_EXPORT BlasResult cublasLtCreate(BlasHandle *handle) {
  cublasLtContext made;
  if (!driver().loadModule || !driver().holds ||
      driver().loadModule(&made.module, &blasImage(), 0, nullptr, nullptr) !=
          kSuccess ||
      driver().findFunction(&made.function, made.module, "standin_product") !=
          kSuccess)
    return kBlasNotInitialized;
  return make(handle, made);
}

DYNA_STANDIN_EXPORT BlasResult cublasLtDestroy(BlasHandle handle) {
  if (!handle || driver().unloadModule(handle->module) != kSuccess)
    return kBlasNotInitialized;
  return destroy(handle);
}

DYNA_STANDIN_EXPORT BlasResult cublasLtMatmulDescCreate(BlasOperation **made,
                                                        int32_t compute,
                                                        int32_t scale) {
  return make(made, BlasOperation{compute, scale});
}
DYNA_STANDIN_EXPORT BlasResult
cublasLtMatmulDescDestroy(BlasOperation *operation) {
  return destroy(operation);
}
DYNA_STANDIN_EXPORT BlasResult
cublasLtMatmulDescSetAttribute(BlasOperation *operation, int32_t attribute,
                               const void *data, size_t bytes) {
  switch (attribute) {
  case kBlasTransposeA:
    return set(operation->transposeA, data, bytes);
  case kBlasTransposeB:
    return set(operation->transposeB, data, bytes);
  case kBlasEpilogue:
    return set(operation->epilogue, data, bytes);
  case kBlasBiasPointer:
    return set(operation->bias, data, bytes);
  case kBlasAuxPointer:
    return set(operation->aux, data, bytes);
  case kBlasAuxLeading:
    return set(operation->auxLeading, data, bytes);
  default:
    return kBlasInvalidValue;
  }
}

DYNA_STANDIN_EXPORT BlasResult cublasLtMatrixLayoutCreate(BlasLayout **made,
                                                          int32_t type,
                                                          uint64_t rows,
                                                          uint64_t columns,
                                                          int64_t leading) {
  return make(made, BlasLayout{type, rows, columns, leading});
}
DYNA_STANDIN_EXPORT BlasResult cublasLtMatrixLayoutDestroy(BlasLayout *layout) {
  return destroy(layout);
}
DYNA_STANDIN_EXPORT BlasResult cublasLtMatrixLayoutSetAttribute(
    BlasLayout *layout, int32_t attribute, const void *data, size_t bytes) {
  switch (attribute) {
  case kBlasLayoutRows:
    return set(layout->rows, data, bytes);
  case kBlasLayoutColumns:
    return set(layout->columns, data, bytes);
  default:
    return kBlasInvalidValue;
  }
}

DYNA_STANDIN_EXPORT BlasResult
cublasLtMatmulPreferenceCreate(BlasPreference **made) {
  return make(made, BlasPreference());
}
DYNA_STANDIN_EXPORT BlasResult
cublasLtMatmulPreferenceDestroy(BlasPreference *preference) {
  return destroy(preference);
}
DYNA_STANDIN_EXPORT BlasResult cublasLtMatmulPreferenceSetAttribute(
    BlasPreference *preference, int32_t attribute, const void *data,
    size_t bytes) {
  switch (attribute) {
  case kBlasMaxWorkspace:
    return set(preference->workspace, data, bytes);
  case kBlasReductionMask:
    return set(preference->reductions, data, bytes);
  case kBlasAlignmentA:
  case kBlasAlignmentB:
  case kBlasAlignmentC:
  case kBlasAlignmentD:
    return set(preference->alignments[attribute - kBlasAlignmentA], data,
               bytes);
  default:
    return kBlasInvalidValue;
  }
}

//===----------------------------------------------------------------------===//
// Algorithms and products
//===----------------------------------------------------------------------===//

DYNA_STANDIN_EXPORT BlasResult cublasLtMatmulAlgoGetHeuristic(
    BlasHandle handle, BlasOperation *operation, BlasLayout *a, BlasLayout *b,
    BlasLayout *c, BlasLayout *d, BlasPreference *preference, int count,
    BlasChoice *choices, int *found) {
  if (!handle || count < 1)
    return kBlasInvalidValue;
  const Described p = {*operation, *a, *b, *c, *d};
  if (BlasResult result = check(p))
    return result;
  uint64_t alignments[4];
  std::copy_n(preference->alignments, 4, alignments);
  *found = 0;
  for (int algorithm = 0; algorithm < DYNA_STANDIN_ALGORITHMS; ++algorithm) {
    const uint32_t reductions =
        algorithm == DYNA_STANDIN_ROUNDING ? kBlasReduceInOutputType
        : algorithm == DYNA_STANDIN_PARTS  ? kBlasReduceInComputeType
                                           : 7u;
    if (*found == count || (preference->reductions & reductions) == 0 ||
        workspaceOf(p, algorithm) > preference->workspace)
      continue;
    if (choose(p, algorithm, alignments, choices[*found]) == kBlasSuccess)
      ++*found;
  }
  return *found > 0 ? kBlasSuccess : kBlasNotSupported;
}

#ifndef DYNA_STANDIN_OLD
DYNA_STANDIN_EXPORT BlasResult cublasLtMatmulAlgoCheck(
    BlasHandle handle, BlasOperation *operation, BlasLayout *a, BlasLayout *b,
    BlasLayout *c, BlasLayout *d, const BlasAlgorithm *algorithm,
    BlasChoice *result) {
  const Described p = {*operation, *a, *b, *c, *d};
  if (BlasResult refused = check(p))
    return refused;
  const int number = handle ? numberOf(*algorithm, p) : -1;
  const uint64_t alignments[] = {16, 16, 16, 16};
  return number < 0 ? kBlasInvalidValue
                    : choose(p, number, alignments, *result);
}
#endif

namespace {

/// Bytes from the first element of a matrix to the end of its last.
size_t extentOf(const BlasLayout &layout) {
  return static_cast<size_t>(
      (layout.leading * static_cast<int64_t>(layout.columns - 1) +
       static_cast<int64_t>(layout.rows)) *
      bytesOf(layout.type));
}

double scalar(const void *address, int32_t type) {
  return type == kBlasF64
             ? *static_cast<const double *>(address)
             : static_cast<double>(*static_cast<const float *>(address));
}

BlasResult launch(BlasHandle handle, const BlasWork &work,
                  StreamHandle stream) {
  size_t bytes = sizeof(work);
  void *packed[] = {kLaunchBuffer, const_cast<BlasWork *>(&work),
                    kLaunchBufferBytes, &bytes, kLaunchEnd};
  Result result = driver().launchKernel(handle->function, 1, 1, 1, 1, 1, 1, 0,
                                        stream, nullptr, packed);
  return result == kSuccess ? kBlasSuccess : kBlasExecutionFailed;
}

} // namespace

DYNA_STANDIN_EXPORT BlasResult cublasLtMatmul(
    BlasHandle handle, BlasOperation *operation, const void *alpha,
    const void *a, BlasLayout *layoutA, const void *b, BlasLayout *layoutB,
    const void *beta, const void *c, BlasLayout *layoutC, void *d,
    BlasLayout *layoutD, const BlasAlgorithm *algorithm, void *workspace,
    size_t workspaceBytes, StreamHandle stream) {
  const Described p = {*operation, *layoutA, *layoutB, *layoutC, *layoutD};
  if (!handle || !alpha || !beta || !a || !b || !c || !d || !algorithm)
    return kBlasInvalidValue;
  if (BlasResult result = check(p))
    return result;
  const int number = numberOf(*algorithm, p);
  if (number < 0 || (workspace && alignmentOf(workspace) < 256))
    return kBlasInvalidValue;
  const uint64_t alignments[] = {alignmentOf(a), alignmentOf(b), alignmentOf(c),
                                 alignmentOf(d)};
  if (!suits(p, number, alignments))
    return kBlasNotSupported;
  const size_t needed = workspaceOf(p, number);
  if (needed > workspaceBytes || (needed > 0 && !workspace))
    return kBlasInvalidValue;

  BlasWork work = {};
  work.types = p.a.type == kBlasF64   ? BlasTypes::F64
               : p.a.type == kBlasF32 ? BlasTypes::F32
               : p.d.type == kBlasF32 ? BlasTypes::Bf16F32
                                      : BlasTypes::Bf16;
  work.m = static_cast<int64_t>(p.d.rows);
  work.n = static_cast<int64_t>(p.d.columns);
  work.k = static_cast<int64_t>(depth(p));
  work.transposeA = operation->transposeA == kBlasTransposed;
  work.transposeB = operation->transposeB == kBlasTransposed;
  work.isTf32 = operation->compute == kBlasComputeTf32;
  work.alpha = scalar(alpha, operation->scale);
  work.beta = scalar(beta, operation->scale);
  work.a = a, work.lda = p.a.leading, work.b = b, work.ldb = p.b.leading;
  work.c = c, work.ldc = p.c.leading, work.d = d, work.ldd = p.d.leading;
  work.workspace = workspace;
  work.isOutside =
      !driver().holds(a, extentOf(p.a)) || !driver().holds(b, extentOf(p.b)) ||
      !driver().holds(c, extentOf(p.c)) || !driver().holds(d, extentOf(p.d)) ||
      (needed > 0 && !driver().holds(workspace, needed));
  if (operation->hasBias()) {
    work.bias = operation->bias;
    work.isOutside |=
        !driver().holds(work.bias, p.d.rows * size_t(bytesOf(p.d.type)));
  }
  if (operation->hasAux()) {
    work.aux = operation->aux, work.ldAux = operation->auxLeading;
    const BlasLayout aux = {p.d.type, p.d.rows, p.d.columns, work.ldAux};
    work.isOutside |= !driver().holds(work.aux, extentOf(aux));
  }
  work.epilogue =
      operation->epilogue == kBlasEpilogueNone       ? BlasEpilogue::None
      : operation->epilogue == kBlasEpilogueBias     ? BlasEpilogue::Bias
      : operation->epilogue == kBlasEpilogueGeluGrad ? BlasEpilogue::GeluGrad
                                                     : BlasEpilogue::BiasGelu;
  epilogues += work.epilogue != BlasEpilogue::None;
  ++products[number];
  if (number != DYNA_STANDIN_PARTS) {
    work.stage = number == DYNA_STANDIN_ROUNDING ? BlasStage::Rounding
                                                 : BlasStage::Whole;
    return launch(handle, work, stream);
  }
  work.stage = BlasStage::Parts;
  if (BlasResult result = launch(handle, work, stream))
    return result;
  work.stage = BlasStage::Sum;
  return launch(handle, work, stream);
}

// Every function has the type that the device calls it by.
namespace {

template <typename Ours, typename Declared> constexpr bool isSame = false;
template <typename T> constexpr bool isSame<T, T> = true;

#ifndef DYNA_STANDIN_OLD
#define DYNA_STANDIN_CHECK(member, symbol, ...)                                \
  static_assert(isSame<decltype(symbol), __VA_ARGS__>, #symbol);
DYNA_CUDA_BLAS_FUNCTIONS(DYNA_STANDIN_CHECK)
#endif

} // namespace
