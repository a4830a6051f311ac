//===- AttentionClass.cpp - Groups calls of attention that share a plan ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/AttentionClass.h"

#include "runtime/base/text/Text.h"
#include "runtime/device/cuda/product/ProductClass.h"

#include <algorithm>
#include <initializer_list>

using namespace dyna;
using namespace dyna::cuda;

/// Returns the next power of two, at least `least`, which is one.
static int64_t roundToPower(int64_t size, int64_t least) {
  int64_t rounded = least;
  while (rounded < size)
    rounded *= 2;
  return rounded;
}

AttentionClass AttentionClass::of(const dyna_attention &p) {
  AttentionClass result;
  result.causal = p.causal != 0;
  result.segments = roundToPower(p.segments->count, 1);
  result.longest = roundToPower(p.segments->longest_query, 128);
  // All tokens together are at least as many as those of the longest segment.
  result.tokens = std::max(roundTokens(p.segments->tq), result.longest);
  result.heads = p.heads, result.kvHeads = p.kv_heads;
  result.headDim = p.head_dim;
  result.scale = p.scale;
  result.strides = {p.q_stride, p.k_stride, p.v_stride, p.out_stride, p.heads};
  return result;
}

AttentionClass AttentionClass::of(const dyna_attention_grad &p,
                                  bool isOrdered) {
  AttentionClass result = of(p.forward);
  result.isGradient = true;
  result.isOrdered = isOrdered;
  result.strides[gpu::kTableDq] = p.dq_stride;
  result.strides[gpu::kTableDk] = p.dk_stride;
  result.strides[gpu::kTableDv] = p.dv_stride;
  return result;
}

std::array<double, 10 + gpu::kAttentionTables> AttentionClass::key() const {
  std::array<double, 10 + gpu::kAttentionTables> key = {
      double(isGradient), double(isOrdered),
      double(causal),     double(segments),
      double(longest),    double(tokens),
      double(heads),      double(kvHeads),
      double(headDim),    scale};
  for (size_t i = 0; i < strides.size(); ++i)
    key[10 + i] = static_cast<double>(strides[i]);
  return key;
}

std::string AttentionClass::text() const {
  std::string text = formatText(
      "%s of %d segments of up to %d tokens, %d in all%s, %d heads of %d",
      isGradient ? "attention_grad" : "attention", segments, longest, tokens,
      causal ? ", causal" : "", heads, headDim);
  if (kvHeads != heads)
    text += formatText(" with %d of keys", kvHeads);
  return text;
}

//===----------------------------------------------------------------------===//
// Limits of plans
//===----------------------------------------------------------------------===//

static const char *whyNotAligned(std::initializer_list<const void *> addresses,
                                 std::initializer_list<int64_t> strides) {
  for (const void *address : addresses)
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
      return "an operand does not begin at a multiple of 16 bytes";
  for (int64_t stride : strides)
    if (stride % 8 != 0)
      return "rows do not begin at multiples of 16 bytes";
  return nullptr;
}

const char *cuda::whyNotPlanned(const dyna_attention &p) {
  const dyna_segments &segments = *p.segments;
  // If segments shared keys, their gradients would have to be summed, and rows
  // without segment would need gradients of 0. With as many keys as queries,
  // all definitions of a causal mask agree.
  if (!segments.keys_are_queries || segments.tq != segments.tkv)
    return "keys are not those of the queries' own rows";
  if (!arePlannedHeads(p.head_dim))
    return "heads are no multiple of 8 elements, or of more than 256";
  return whyNotAligned({p.q, p.k, p.v, p.out},
                       {p.q_stride, p.k_stride, p.v_stride, p.out_stride});
}

const char *cuda::whyNotPlanned(const dyna_attention_grad &p) {
  if (const char *why = whyNotPlanned(p.forward))
    return why;
  return whyNotAligned({p.dout, p.dq, p.dk, p.dv},
                       {p.dq_stride, p.dk_stride, p.dv_stride});
}
