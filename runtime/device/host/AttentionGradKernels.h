//===- AttentionGradKernels.h - Computes attention gradients --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes gradients of attention by the formulas of AttentionKernels.h. A task
// adds to the gradients of its queries and of its keys. The caller never runs
// two tasks that share either at the same time. It runs them in a fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_ATTENTIONGRADKERNELS_H
#define DYNA_RUNTIME_DEVICE_HOST_ATTENTIONGRADKERNELS_H

#include "runtime/device/host/AttentionKernels.h"

namespace dyna {
namespace DYNA_ISA {

template <typename T> struct BackwardScratch {
  T *qT, *doutT, *q, *dout, *keys, *values, *p, *ds, *lse, *delta;
  BackwardScratch(Carver<T> &carver, int64_t headDim) {
    int64_t padded = padHeadDim(headDim);
    qT = carver.take(headDim * kQ);
    doutT = carver.take(headDim * kQ);
    q = carver.take(kQ * padded);
    dout = carver.take(kQ * padded);
    keys = carver.take(kSuperRows * padded);
    values = carver.take(kSuperRows * padded);
    p = carver.take(kKeys * kQ);
    ds = carver.take(kKeys * kQ);
    lse = carver.take(kQ);
    delta = carver.take(kQ);
  }
};

template <typename E> int64_t attentionGradScratch(int64_t headDim) {
  Carver<typename E::Sum> carver{nullptr};
  BackwardScratch<typename E::Sum> scratch(carver, headDim);
  return carver.used * int64_t(sizeof(typename E::Sum));
}

template <typename T>
void clearRows(T *data, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; ++i)
      data[row * stride + i] = 0;
}

/// One block of queries of one head: its operands in the forms needed.
template <typename T> struct QueryBlock {
  int64_t queries, vectors;
  Rows<T> q, dout;
  T *dq;
};

/// Sums over the head of out * dout, times the scale; made by the first task of
/// these queries, kept in the workspace for the others.
template <typename E>
void prepareDelta(const dyna_attention_grad &g, const AttentionSums &sums,
                  bool isFirst, int64_t row, int64_t head,
                  const QueryBlock<typename E::Sum> &block,
                  BackwardScratch<typename E::Sum> &s) {
  using T = typename E::Sum;
  constexpr int w = kLanes<T>;
  const dyna_attention &f = g.forward;
  T *delta = static_cast<T *>(sums.delta) + row * f.heads + head;
  if (isFirst) {
    int64_t padded = padHeadDim(f.head_dim);
    const auto *out = static_cast<const typename E::Storage *>(f.out) +
                      row * f.out_stride + head * f.head_dim;
    // `p` and `ds` are free now. They hold 64 columns of a row, so go row by
    // row.
    for (int64_t q = 0; q < block.queries; ++q) {
      Rows<T> outRow = viewRows<E>(out + q * f.out_stride, f.out_stride, 1,
                                   f.head_dim, padded, s.qT);
      Vec<T> sum{};
      for (int64_t d = 0; d < padded; d += w)
        sum += load(outRow.data + d) *
               load(block.dout.data + q * block.dout.stride + d);
      delta[q * f.heads] = sumLanes<T>(sum) * static_cast<T>(f.scale);
    }
  }
  for (int64_t q = 0; q < block.vectors * w; ++q)
    s.delta[q] = q < block.queries ? delta[q * f.heads] : T(0);
}

template <typename E>
QueryBlock<typename E::Sum>
prepareQueries(const dyna_attention_grad &g, const AttentionSums &sums,
               const AttentionGradTask &task, int64_t head, int64_t first,
               BackwardScratch<typename E::Sum> &s) {
  using T = typename E::Sum;
  using Storage = typename E::Storage;
  constexpr int w = kLanes<T>;
  const dyna_attention &f = g.forward;
  int64_t headDim = f.head_dim, padded = padHeadDim(headDim);
  int64_t row = task.segment->q_begin + task.firstQuery + first;
  QueryBlock<T> block;
  block.queries = least(kQ, task.queries - first);
  block.vectors = vectorsOf<T>(block.queries);
  block.q = viewRows<E>(static_cast<const Storage *>(f.q) + row * f.q_stride +
                            head * headDim,
                        f.q_stride, block.queries, headDim, padded, s.q);
  block.dout =
      viewRows<E>(static_cast<const Storage *>(g.dout) + row * f.out_stride +
                      head * headDim,
                  f.out_stride, block.queries, headDim, padded, s.dout);
  block.dq =
      static_cast<T *>(sums.dq) + row * sums.dqStride + head * sums.dqHead;
  prepareDelta<E>(g, sums, task.clearQueries, row, head, block, s);
  transposeQueries(block.q, block.queries, headDim, s.qT,
                   static_cast<T>(f.scale * kLog2E));
  transposeQueries(block.dout, block.queries, headDim, s.doutT,
                   static_cast<T>(f.scale));
  const T *lse = static_cast<const T *>(f.lse) + row * f.heads + head;
  for (int64_t q = 0; q < block.vectors * w; ++q) {
    // Queries that do not exist, or that see no key, get weights of
    // 2^-infinity.
    T value = q < block.queries ? lse[q * f.heads] : static_cast<T>(-INFINITY);
    s.lse[q] = value == static_cast<T>(-INFINITY)
                   ? static_cast<T>(INFINITY)
                   : value * static_cast<T>(kLog2E);
  }
  return block;
}

/// Replaces scores and dP (in `p` and `ds`) by P and dS. Hidden ones become 0.
template <typename T>
void softmaxGradient(BackwardScratch<T> &s, int64_t keys, int64_t vectors,
                     const Sight &sight) {
  constexpr int w = kLanes<T>;
  for (int64_t v = 0; v < vectors; ++v) {
    Vec<T> lse = load(s.lse + v * w), delta = load(s.delta + v * w);
    Vec<T> limits = laneNumbers<T>(sight.first + v * w);
    int64_t fullKeys =
        sight.all ? keys : clamp(sight.first + v * w + 1, 0, keys);
    int64_t seenKeys = sight.keysOf<T>(v, keys);
    T *p = s.p + v * w, *ds = s.ds + v * w;
    int64_t j = 0;
    for (; j < fullKeys; ++j, p += kQ, ds += kQ) {
      Vec<T> weight = powerOfTwo(load(p) - lse);
      store(p, weight);
      store(ds, weight * (load(ds) - delta));
    }
    for (; j < seenKeys; ++j, p += kQ, ds += kQ) {
      Vec<T> number = splat(static_cast<T>(j)), none{};
      Vec<T> weight = number <= limits ? powerOfTwo(load(p) - lse) : none;
      store(p, weight);
      store(ds, number <= limits ? weight * (load(ds) - delta) : none);
    }
    for (; j < keys; ++j, p += kQ, ds += kQ) {
      store(p, Vec<T>{});
      store(ds, Vec<T>{});
    }
  }
}

/// target[j][d] += weights[j][q] * rows[q][d] over the queries that see key j.
template <typename T>
void addToKeys(const T *weights, Rows<T> rows, int64_t keys, int64_t queries,
               int64_t vectors, const Sight &sight, T *target, int64_t stride) {
  int64_t step = sight.all ? keys : kCausalStep;
  for (int64_t j = 0; j < keys; j += step) {
    int64_t first = sight.firstQuery(j, queries);
    if (first == queries)
      break;
    SmallProduct<T> p;
    p.k = queries - first;
    p.a = weights + j * kQ + first, p.rowA = kQ, p.stepA = 1;
    p.b = rows.data + first * rows.stride, p.strideB = rows.stride;
    p.c = target + j * stride, p.strideC = stride;
    p.start = Start::Add;
    multiply(p, least(step, keys - j), vectors);
  }
}

/// dq[q][d] += ds[key][q] * keys[key][d] over the keys that query q sees.
template <typename T>
void addToQueries(const T *ds, Rows<T> rows, int64_t keys, int64_t queries,
                  int64_t vectors, const Sight &sight, T *dq, int64_t stride) {
  int64_t step = sight.all ? queries : kCausalStep;
  for (int64_t q = 0; q < queries; q += step) {
    SmallProduct<T> p;
    p.k = sight.all ? keys : clamp(sight.first + q + step, 0, keys);
    if (p.k == 0)
      continue;
    p.a = ds + q, p.rowA = 1, p.stepA = kQ;
    p.b = rows.data, p.strideB = rows.stride;
    p.c = dq + q * stride, p.strideC = stride;
    p.start = Start::Add;
    multiply(p, least(step, queries - q), vectors);
  }
}

template <typename E>
void clearSums(const dyna_attention &f, const AttentionSums &sums,
               const AttentionGradTask &task) {
  using T = typename E::Sum;
  int64_t padded = padHeadDim(f.head_dim), group = f.heads / f.kv_heads;
  int64_t row = task.segment->q_begin + task.firstQuery;
  int64_t key = task.segment->kv_begin + task.firstKey - sums.firstKey;
  if (task.clearQueries)
    for (int64_t head = task.kvHead * group; head < (task.kvHead + 1) * group;
         ++head)
      clearRows(static_cast<T *>(sums.dq) + row * sums.dqStride +
                    head * sums.dqHead,
                sums.dqStride, task.queries, padded);
  if (!task.clearKeys)
    return;
  clearRows(static_cast<T *>(sums.dk) + key * sums.dkStride +
                task.kvHead * sums.dkHead,
            sums.dkStride, task.keys, padded);
  clearRows(static_cast<T *>(sums.dv) + key * sums.dvStride +
                task.kvHead * sums.dkHead,
            sums.dvStride, task.keys, padded);
}

template <typename E>
void attentionGrad(const dyna_attention_grad &g, const AttentionSums &sums,
                   const AttentionGradTask &task, void *scratch) {
  using T = typename E::Sum;
  const dyna_attention &f = g.forward;
  const int64_t headDim = f.head_dim, padded = padHeadDim(headDim);
  const int64_t wide = padded / kLanes<T>, group = f.heads / f.kv_heads;
  clearSums<E>(f, sums, task);
  if (task.queries == 0 || task.keys == 0)
    return;
  Carver<T> carver{static_cast<T *>(scratch)};
  BackwardScratch<T> s(carver, headDim);
  const KeyValueRows<E> rows(f, *task.segment);
  Rows<T> keys =
      viewRows<E>(rows.k + task.firstKey * rows.kStride + task.kvHead * headDim,
                  rows.kStride, task.keys, headDim, padded, s.keys);
  Rows<T> values =
      viewRows<E>(rows.v + task.firstKey * rows.vStride + task.kvHead * headDim,
                  rows.vStride, task.keys, headDim, padded, s.values);
  int64_t keyRow = task.segment->kv_begin + task.firstKey - sums.firstKey;
  T *dk = static_cast<T *>(sums.dk) + keyRow * sums.dkStride +
          task.kvHead * sums.dkHead;
  T *dv = static_cast<T *>(sums.dv) + keyRow * sums.dvStride +
          task.kvHead * sums.dkHead;
  for (int64_t head = task.kvHead * group; head < (task.kvHead + 1) * group;
       ++head)
    for (int64_t first = 0; first < task.queries; first += kQ) {
      QueryBlock<T> block = prepareQueries<E>(g, sums, task, head, first, s);
      for (int64_t key = 0; key < task.keys; key += kKeys) {
        int64_t count = least(kKeys, task.keys - key);
        Sight sight =
            makeSight(*task.segment, f.causal, task.firstQuery + first,
                      task.firstKey + key, count);
        if (!sight.all && sight.first + block.queries <= 0)
          break; // no query sees these keys or later ones
        Rows<T> k = {keys.data + key * keys.stride, keys.stride};
        Rows<T> v = {values.data + key * values.stride, values.stride};
        multiplyInSight(k, s.qT, headDim, count, block.vectors, sight, s.p);
        multiplyInSight(v, s.doutT, headDim, count, block.vectors, sight, s.ds);
        softmaxGradient(s, count, block.vectors, sight);
        addToKeys(s.p, block.dout, count, block.queries, wide, sight,
                  dv + key * sums.dvStride, sums.dvStride);
        addToKeys(s.ds, block.q, count, block.queries, wide, sight,
                  dk + key * sums.dkStride, sums.dkStride);
        addToQueries(s.ds, k, count, block.queries, wide, sight, block.dq,
                     sums.dqStride);
      }
    }
}

} // namespace DYNA_ISA
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_ATTENTIONGRADKERNELS_H
