//===- Matmul.cpp - Runs products for compiled code -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/Arguments.h"
#include "runtime/device/Failure.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/HandKernels.h"
#include "runtime/device/cuda/MatrixKernels.h"
#include "runtime/device/cuda/kernels/Sizes.h"

using namespace dyna;
using namespace dyna::cuda;
using gpu::Kernel;

namespace {

/// Returns true if rows of a matrix begin at multiples of so many bytes.
bool isAligned(const void *data, int64_t stride, int64_t element,
               int64_t bytes) {
  return reinterpret_cast<uint64_t>(data) % static_cast<uint64_t>(bytes) == 0 &&
         stride * element % bytes == 0;
}

static_assert(gpu::kFmaProductTile <= gpu::kMaxTile &&
              gpu::kMmaProductTile <= gpu::kMaxTile);

int64_t tiles(const dyna_matmul &p, int64_t tile) {
  return ((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile);
}

/// Multiplies by our own kernel; no size is 0.
dyna_status multiply(dyna_context *context, ProductKind kind,
                     const dyna_matmul &p) {
  if (p.m > gpu::kMaxSize || p.n > gpu::kMaxSize || p.k > gpu::kMaxSize)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of m=%d n=%d k=%d: kernels of CUDA devices take sizes of "
                "%d at most",
                nameOf(kind), p.m, p.n, p.k, gpu::kMaxSize);
  gpu::ProductArguments args = {};
  args.a = p.a, args.b = p.b, args.c = p.c;
  args.lda = p.lda, args.ldb = p.ldb, args.ldc = p.ldc;
  args.m = static_cast<int32_t>(p.m), args.n = static_cast<int32_t>(p.n);
  args.k = static_cast<int32_t>(p.k);
  args.transposeA = p.transpose_a != 0, args.transposeB = p.transpose_b != 0;
  args.accumulate = p.accumulate != 0;
  if (kind == ProductKind::F32)
    return launch<Kernel::product_f32>(context, args,
                                       tiles(p, gpu::kFmaProductTile));
  if (kind == ProductKind::F64)
    return launch<Kernel::product_f64>(context, args,
                                       tiles(p, gpu::kFmaProductTile));
  const int64_t result = resultBytes(kind);
  args.isWide = result == 4;
  args.isAligned = isAligned(p.a, p.lda, 2, 16) && isAligned(p.b, p.ldb, 2, 16);
  args.hasPairs = isAligned(p.c, p.ldc, result, 2 * result);
  const int64_t blocks = tiles(p, gpu::kMmaProductTile);
  if (p.transpose_a)
    return p.transpose_b
               ? launch<Kernel::product_bf16_tt>(context, args, blocks)
               : launch<Kernel::product_bf16_tn>(context, args, blocks);
  return p.transpose_b ? launch<Kernel::product_bf16_nt>(context, args, blocks)
                       : launch<Kernel::product_bf16_nn>(context, args, blocks);
}

/// Applies an epilogue by our own kernel, to the product in C; no size is 0.
dyna_status applyEpilogue(dyna_context *context, ProductKind kind,
                          const dyna_matmul &p, const dyna_epilogue &epilogue) {
  const int64_t element = resultBytes(kind);
  const int64_t piece = gpu::kProductEpilogueBytes / element;
  gpu::ProductEpilogueArguments args = {};
  args.isGelu = epilogue.kind == DYNA_EPILOGUE_BIAS_GELU;
  args.isGradient = epilogue.kind == DYNA_EPILOGUE_GELU_GRAD;
  args.c = p.c, args.ldc = p.ldc;
  args.bias = args.isGradient ? nullptr : epilogue.bias;
  args.aux = epilogue.kind == DYNA_EPILOGUE_BIAS ? nullptr : epilogue.aux;
  args.auxStride = epilogue.aux_stride;
  args.m = p.m, args.n = p.n;
  auto fits = [&](const void *data, int64_t stride) {
    return isAligned(data, stride, element, gpu::kProductEpilogueBytes);
  };
  args.isAligned = p.n % piece == 0 && fits(p.c, p.ldc) && fits(args.bias, 0) &&
                   fits(args.aux, args.aux ? args.auxStride : 0);
  const int64_t pieces = p.m * (args.isAligned ? p.n / piece : p.n);
  const int64_t blocks = (pieces + gpu::kProductEpilogueThreads - 1) /
                         gpu::kProductEpilogueThreads;
  if (element == 8)
    return launch<Kernel::product_epilogue_f64>(context, args, blocks);
  return element == 4
             ? launch<Kernel::product_epilogue_f32>(context, args, blocks)
             : launch<Kernel::product_epilogue_bf16>(context, args, blocks);
}

dyna_status run(dyna_context *context, const dyna_matmul *p, ProductKind kind);

/// Runs the product, and then its epilogue.
dyna_status runApart(dyna_context *context, const dyna_matmul &p,
                     ProductKind kind) {
  dyna_matmul plain = p;
  plain.described = 0, plain.epilogue_args = nullptr;
  if (dyna_status status = run(context, &plain, kind))
    return status;
  return applyEpilogue(context, kind, p, *dyna_described_epilogue(&p));
}

dyna_status run(dyna_context *context, const dyna_matmul *p, ProductKind kind) {
  if (dyna_status status = checkMatmul(context, p, nameOf(kind)))
    return status;
  if (p->epilogue)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with an epilogue, which is code of the host", nameOf(kind));
  StatusOr<bool> isDone = CudaDevice::of(*context).products().multiply(
      kind, *p, static_cast<StreamHandle>(context->stream));
  if (!isDone.isOk())
    return give(context, isDone.status());
  if (!*isDone && p->described)
    return runApart(context, *p, kind);
  if (!*isDone)
    if (dyna_status status = multiply(context, kind, *p))
      return status;
  context->matrix_flops += 2 * p->m * p->n * p->k;
  return DYNA_OK;
}

} // namespace

dyna_status cuda::matmulF32(dyna_context *context, const dyna_matmul *p) {
  return run(context, p, ProductKind::F32);
}
dyna_status cuda::matmulF64(dyna_context *context, const dyna_matmul *p) {
  return run(context, p, ProductKind::F64);
}
dyna_status cuda::matmulBf16(dyna_context *context, const dyna_matmul *p) {
  return run(context, p, ProductKind::Bf16);
}
dyna_status cuda::matmulBf16F32(dyna_context *context, const dyna_matmul *p) {
  return run(context, p, ProductKind::Bf16F32);
}
