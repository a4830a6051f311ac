//===- Arguments.cpp - Checks the arguments of products and of the head ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/Arguments.h"

#include "runtime/device/Failure.h"

using namespace dyna;

/// Checks that a given description has all fields of its kind.
static dyna_status checkEpilogue(dyna_context *context, const dyna_matmul &p,
                                 const char *name) {
  const dyna_epilogue *epilogue = dyna_described_epilogue(&p);
  if (!epilogue || p.epilogue || epilogue->kind <= DYNA_EPILOGUE_NONE ||
      epilogue->kind >= DYNA_EPILOGUE_COUNT)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with a description of an epilogue that there is not, or "
                "with code beside it",
                name);
  if (p.accumulate)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with a described epilogue, which adds to nothing", name);
  const bool isGradient = epilogue->kind == DYNA_EPILOGUE_GELU_GRAD;
  if ((!isGradient && !epilogue->bias) || (isGradient && !epilogue->aux))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with epilogue %d: bias or aux is null", name,
                epilogue->kind);
  if (epilogue->aux && epilogue->kind != DYNA_EPILOGUE_BIAS &&
      epilogue->aux_stride < p.n)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of n=%d with epilogue %d: rows of aux are %d apart", name,
                p.n, epilogue->kind, epilogue->aux_stride);
  return DYNA_OK;
}

dyna_status dyna::checkMatmul(dyna_context *context, const dyna_matmul *p,
                              const char *name) {
  if (!p)
    return fail(context, DYNA_INVALID_ARGUMENT, "%s without a description",
                name);
  if (p->m < 0 || p->n < 0 || p->k < 0)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of m=%d n=%d k=%d: sizes must not be negative", name, p->m,
                p->n, p->k);
  int64_t leastA = p->transpose_a ? p->m : p->k;
  int64_t leastB = p->transpose_b ? p->k : p->n;
  if (p->lda < leastA || p->ldb < leastB || p->ldc < p->n)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of m=%d n=%d k=%d: leading dimensions %d, %d, %d "
                "must be at least %d, %d, %d",
                name, p->m, p->n, p->k, p->lda, p->ldb, p->ldc, leastA, leastB,
                p->n);
  bool product = p->m > 0 && p->n > 0;
  if (product && (!p->c || (p->k > 0 && (!p->a || !p->b))))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of m=%d n=%d k=%d: a, b or c is null", name, p->m, p->n,
                p->k);
  return p->described ? checkEpilogue(context, *p, name) : DYNA_OK;
}

dyna_status dyna::checkHead(dyna_context *context, const dyna_head *p,
                            int64_t element, const char *name) {
  if (!p)
    return fail(context, DYNA_INVALID_ARGUMENT, "%s without a description",
                name);
  if (p->rows < 0 || p->width <= 0 || p->vocab <= 0)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of %d rows, width %d, vocabulary %d: rows must not be "
                "negative, the others positive",
                name, p->rows, p->width, p->vocab);
  if (p->chunk_rows < 0)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s in chunks of %d rows: they must not be negative", name,
                p->chunk_rows);
  if (p->narrow_dw && element != 2)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: only a bf16 head adds to a bf16 gradient", name);
  if (p->narrow_logits && (element != 2 || p->whole_vocab != 0))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: only a bf16 head with a whole vocabulary has bf16 logits",
                name);
  if (p->used_rows && p->target_rows < 0)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: rows with a target are listed, but not how many they are",
                name);
  if (!p->loss_sum || !p->matmul || (p->dx && !p->matmul_input) ||
      (p->dw && ((!p->dx && p->rows > 0) || !p->matmul_weight)))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: loss_sum, or a matrix product, or (with dw) dx is null",
                name);
  if (p->rows > 0 && (!p->x || !p->w || !p->targets || !p->workspace))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: x, w, targets or the workspace is null", name);
  return DYNA_OK;
}
