//===- CheckAttention.cpp - Checks the arguments of attention -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/CheckAttention.h"

#include "runtime/device/Failure.h"

using namespace dyna;

dyna_status dyna::checkAttention(dyna_context *context, const dyna_attention *p,
                                 const char *name) {
  if (!p || !p->segments)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s without a description or segments", name);
  if (p->heads <= 0 || p->kv_heads <= 0 || p->head_dim <= 0 ||
      p->heads % p->kv_heads != 0)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of %d heads, %d key/value heads, head size %d: all must "
                "be positive and heads a multiple of key/value heads",
                name, p->heads, p->kv_heads, p->head_dim);
  int64_t qWidth = p->heads * p->head_dim, kvWidth = p->kv_heads * p->head_dim;
  if (p->q_stride < qWidth || p->out_stride < qWidth || p->k_stride < kvWidth ||
      p->v_stride < kvWidth)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: strides of q, k, v, out are %d, %d, %d, %d but rows "
                "have %d, %d, %d, %d elements",
                name, p->q_stride, p->k_stride, p->v_stride, p->out_stride,
                qWidth, kvWidth, kvWidth, qWidth);
  if ((p->segments->tq > 0 && (!p->q || !p->out)) ||
      (p->segments->tkv > 0 && (!p->k || !p->v)))
    return fail(context, DYNA_INVALID_ARGUMENT, "%s: q, k, v or out is null",
                name);
  const dyna_segments &segments = *p->segments;
  if (segments.count < 0 || segments.tq < 0 || segments.tkv < 0 ||
      (segments.count > 0 && !segments.data))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of %d segments with %d queries and %d keys: sizes must "
                "not be negative, and segments must be there",
                name, segments.count, segments.tq, segments.tkv);
  if (segments.stored < 0 || (segments.stored > 0 && !p->store.data))
    return fail(
        context, DYNA_INVALID_ARGUMENT,
        "%s: slices read the keys of %d tokens in a store, but there is "
        "none",
        name, segments.stored);
  return DYNA_OK;
}

dyna_status dyna::checkAttentionGrad(dyna_context *context,
                                     const dyna_attention_grad *p,
                                     const char *name) {
  if (dyna_status status =
          checkAttention(context, p ? &p->forward : nullptr, name))
    return status;
  const dyna_attention &f = p->forward;
  if ((f.segments->tq > 0 && (!p->dout || !p->dq || !f.lse || !p->workspace)) ||
      (f.segments->tkv > 0 && (!p->dk || !p->dv)))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: lse, dout, dq, dk, dv or the workspace is null", name);
  if (f.segments->stored > 0 && !f.store.gradients)
    return fail(
        context, DYNA_INVALID_ARGUMENT,
        "%s: slices add to the gradients of %d keys, but there are none", name,
        f.segments->stored);
  int64_t qWidth = f.heads * f.head_dim, kvWidth = f.kv_heads * f.head_dim;
  if (p->dq_stride < qWidth || p->dk_stride < kvWidth || p->dv_stride < kvWidth)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: strides of dq, dk, dv are %d, %d, %d but rows have "
                "%d, %d, %d elements",
                name, p->dq_stride, p->dk_stride, p->dv_stride, qWidth, kvWidth,
                kvWidth);
  return DYNA_OK;
}
