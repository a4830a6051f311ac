//===- AttentionKernels.h - Computes attention of a block -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scores are stored transposed, S^T[key][query] = K * Q^T: the queries of a
// block are in the lanes of vectors. This has three advantages:
//
// - K and V are only broadcast, element by element. They need no packing for
//   any strides and head size.
// - The online softmax works lane by lane without horizontal sums.
// - Causality cuts off whole vectors.
//
// Only Q is transposed once before, and the output once after.
//
//     S^T[key][q]  = K[key][d] * Q^T[d][q]
//     O^T[d][q]   += V[key][d] * P^T[key][q]
//
// The backward pass computes P^T again from the saved log-sum:
//
//     dP^T[key][q] = V[key][d] * dO^T[d][q]     dS^T = P^T * (dP^T - delta[q])
//     dV[key][d]  += P^T[key][q] * dO[q][d]
//     dK[key][d]  += dS^T[key][q] * Q[q][d]
//     dQ[q][d]    += (dS^T)^T[q][key] * K[key][d]
//
// Scores are in units of log 2. Log2 e and the scale are folded into Q^T, and
// the scale of dS into dO^T and delta.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_ATTENTIONKERNELS_H
#define DYNA_RUNTIME_DEVICE_HOST_ATTENTIONKERNELS_H

#include "runtime/device/host/MicroKernel.h"
#include "runtime/device/host/RowKernels.h"

namespace dyna {
namespace DYNA_ISA {

constexpr int64_t kQ = kBlockRows;
constexpr int64_t kKeys = kBlockRows;
/// Rows of a product between two looks at what causality still needs: whole
/// tiles.
constexpr int64_t kCausalStep = 12;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}
/// Vectors that `count` lanes fill, or start.
template <typename T> int64_t vectorsOf(int64_t count) {
  return (count + kLanes<T> - 1) / kLanes<T>;
}

/// Hands out scratch memory; the sizes add up in `used` even with no memory.
template <typename T> struct Carver {
  T *base;
  int64_t used = 0;
  T *take(int64_t elements) {
    T *at = base ? base + used : nullptr;
    used += (elements + 15) / 16 * 16;
    return at;
  }
};

/// Rows of a matrix in the type of sums.
template <typename T> struct Rows {
  const T *data;
  int64_t stride;
};

/// Returns true if the distance of rows is a multiple of many cache lines. Rows
/// then share few sets of the cache, which is typical of rows of several heads.
/// A copy is faster in this case.
template <typename T> bool stridesClash(int64_t stride) {
  return stride * int64_t(sizeof(T)) % 512 == 0;
}

/// Returns the rows in place, or a copy. Rows are copied if they have another
/// type, clash in the cache, or must be padded with zeros to `padded` columns.
template <typename E>
Rows<typename E::Sum> viewRows(const typename E::Storage *source,
                               int64_t stride, int64_t rows, int64_t columns,
                               int64_t padded, typename E::Sum *copy) {
  using T = typename E::Sum;
  if constexpr (sizeof(typename E::Storage) == sizeof(T))
    if (columns == padded && !stridesClash<T>(stride))
      return {source, stride};
  for (int64_t row = 0; row < rows; ++row) {
    convertRow(source + row * stride, copy + row * padded, columns);
    for (int64_t i = columns; i < padded; ++i)
      copy[row * padded + i] = 0;
  }
  return {copy, padded};
}

/// target[d][q] = rows[q][d] * factor; lanes up to a whole vector are zero.
template <typename T>
void transposeQueries(Rows<T> rows, int64_t queries, int64_t headDim, T *target,
                      T factor) {
  int64_t lanes = vectorsOf<T>(queries) * kLanes<T>;
  if (lanes > queries)
    for (int64_t d = 0; d < headDim; ++d)
      for (int64_t q = queries; q < lanes; ++q)
        target[d * kQ + q] = 0;
  transpose(rows.data, rows.stride, queries, headDim, target, kQ, factor);
}

/// Visible keys of a block of keys for a block of queries. Query q (a lane)
/// sees key j if j <= first + q. `all` is true if every query sees every key.
struct Sight {
  int64_t first;
  bool all;
  /// Returns a bound: keys below it are seen by at least one lane of vector v.
  template <typename T> int64_t keysOf(int64_t v, int64_t keys) const {
    return all ? keys : clamp(first + (v + 1) * kLanes<T>, 0, keys);
  }
  /// Returns the first vector with a lane that sees key j.
  template <typename T> int64_t firstVector(int64_t j, int64_t vectors) const {
    return all || j <= first ? 0 : least((j - first) / kLanes<T>, vectors);
  }
  /// Returns the first query that sees key j.
  int64_t firstQuery(int64_t j, int64_t queries) const {
    return all ? 0 : clamp(j - first, 0, queries);
  }
};

/// Keys and values of a segment, from its first key on: in the micro-batch, or for a
/// slice in the bundle's store.
template <typename E> struct KeyValueRows {
  const typename E::Storage *k, *v;
  int64_t kStride, vStride;

  KeyValueRows(const dyna_attention &p, const dyna_segment &segment) {
    using Storage = typename E::Storage;
    const int64_t row = segment.kv_begin - p.segments->tkv;
    if (p.segments->stored > 0 && row >= 0) {
      const auto *rows = static_cast<const Storage *>(p.store.data);
      kStride = vStride = p.store.stride;
      k = rows + row * kStride + p.store.k_column;
      v = rows + row * vStride + p.store.v_column;
      return;
    }
    kStride = p.k_stride, vStride = p.v_stride;
    k = static_cast<const Storage *>(p.k) + segment.kv_begin * kStride;
    v = static_cast<const Storage *>(p.v) + segment.kv_begin * vStride;
  }
};

inline Sight makeSight(const dyna_segment &segment, bool causal, int64_t query,
                       int64_t key, int64_t keys) {
  int64_t first = segment.kv_len - segment.q_len + query - key;
  return {first, !causal || first >= keys - 1};
}

/// Returns the lanes' numbers, from `from`.
template <typename T> Vec<T> laneNumbers(int64_t from) {
  Vec<T> result;
  for (int i = 0; i < kLanes<T>; ++i)
    result[i] = static_cast<T>(from + i);
  return result;
}

/// scores[j][q] = rows[j] * columns[.][q] for visible pairs; skips the rest by
/// whole vectors.
template <typename T>
void multiplyInSight(Rows<T> rows, const T *columns, int64_t headDim,
                     int64_t keys, int64_t vectors, const Sight &sight,
                     T *scores) {
  int64_t step = sight.all ? keys : kCausalStep;
  for (int64_t j = 0; j < keys; j += step) {
    int64_t v = sight.firstVector<T>(j, vectors);
    if (v == vectors)
      break;
    SmallProduct<T> p;
    p.k = headDim;
    p.a = rows.data + j * rows.stride, p.rowA = rows.stride, p.stepA = 1;
    p.b = columns + v * kLanes<T>, p.strideB = kQ;
    p.c = scores + j * kQ + v * kLanes<T>, p.strideC = kQ;
    multiply(p, least(step, keys - j), vectors - v);
  }
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

template <typename T> struct ForwardScratch {
  T *q, *scores, *out, *keys, *values, *most, *sum, *decay;
  ForwardScratch(Carver<T> &carver, int64_t headDim)
      : q(carver.take(headDim * kQ)), scores(carver.take(kKeys * kQ)),
        out(carver.take(headDim * kQ)), keys(carver.take(kKeys * headDim)),
        values(carver.take(kKeys * headDim)), most(carver.take(kQ)),
        sum(carver.take(kQ)), decay(carver.take(kQ)) {}
};

template <typename E> int64_t attentionScratch(int64_t headDim) {
  Carver<typename E::Sum> carver{nullptr};
  ForwardScratch<typename E::Sum> scratch(carver, headDim);
  return carver.used * int64_t(sizeof(typename E::Sum));
}

/// Runs one step of the online softmax for the lanes of one vector. Scores
/// become exponentials relative to the largest score so far. `decay` becomes
/// the factor for earlier results.
template <typename T>
void softmaxStep(ForwardScratch<T> &s, int64_t v, int64_t keys,
                 const Sight &sight) {
  constexpr int w = kLanes<T>;
  T *column = s.scores + v * w;
  Vec<T> before = load(s.most + v * w);
  int64_t fullKeys = sight.all ? keys : clamp(sight.first + v * w + 1, 0, keys);
  if (fullKeys < keys) {
    Vec<T> limits = laneNumbers<T>(sight.first + v * w);
    for (int64_t j = fullKeys; j < keys; ++j) {
      Vec<T> hidden = splat(static_cast<T>(-INFINITY));
      Vec<T> number = splat(static_cast<T>(j));
      store(column + j * kQ, number <= limits ? load(column + j * kQ) : hidden);
    }
  }
  Vec<T> chains[4] = {before, before, before, before};
  int64_t j = 0;
  for (; j + 4 <= keys; j += 4)
    DYNA_UNROLL
  for (int c = 0; c < 4; ++c)
    chains[c] = larger<T>(load(column + (j + c) * kQ), chains[c]);
  for (; j < keys; ++j)
    chains[0] = larger<T>(load(column + j * kQ), chains[0]);
  Vec<T> most = larger<T>(larger<T>(chains[0], chains[1]),
                          larger<T>(chains[2], chains[3]));
  Vec<T> sum{};
  for (j = 0; j < keys; ++j) {
    Vec<T> e = powerOfTwo(load(column + j * kQ) - most);
    store(column + j * kQ, e);
    sum += e;
  }
  Vec<T> decay = powerOfTwo(before - most);
  store(s.most + v * w, most);
  store(s.sum + v * w, load(s.sum + v * w) * decay + sum);
  store(s.decay + v * w, decay);
}

/// Adds the values of one block of keys, weighted, to the outputs.
template <typename T>
void addValues(ForwardScratch<T> &s, Rows<T> values, int64_t headDim,
               int64_t keys, int64_t vectors, const Sight &sight,
               bool isFirst) {
  constexpr int w = kLanes<T>;
  int64_t width = sight.all ? vectors : 2;
  for (int64_t v = 0; v < vectors; v += width) {
    int64_t count = least(width, vectors - v);
    int64_t used = sight.keysOf<T>(v + count - 1, keys);
    for (int64_t other = v; other < v + count - 1; ++other)
      for (int64_t j = sight.keysOf<T>(other, keys); j < used; ++j)
        store(s.scores + j * kQ + other * w, Vec<T>{});
    SmallProduct<T> p;
    p.k = used;
    p.a = values.data, p.rowA = 1, p.stepA = values.stride;
    p.b = s.scores + v * w, p.strideB = kQ;
    p.c = s.out + v * w, p.strideC = kQ;
    p.start = isFirst ? Start::Zero : Start::Scale;
    p.scale = s.decay + v * w;
    multiply(p, headDim, count);
  }
}

/// Divides by the sums, stores the outputs and the log-sums.
template <typename E>
void finishQueries(const dyna_attention &p, const AttentionTask &task,
                   ForwardScratch<typename E::Sum> &s) {
  using T = typename E::Sum;
  constexpr int w = kLanes<T>;
  int64_t row = task.segment->q_begin + task.firstQuery;
  int64_t vectors = vectorsOf<T>(task.queries);
  T *lse = static_cast<T *>(p.lse);
  for (int64_t v = 0; v < vectors; ++v) {
    Vec<T> sum = load(s.sum + v * w);
    Vec<T> none = splat(T(0));
    // For a query that sees no key, the output is 0 and the log-sum minus
    // infinity.
    Vec<T> inverse = sum == none ? none : T(1) / sum;
    for (int64_t d = 0; d < p.head_dim; ++d) {
      T *out = s.out + d * kQ + v * w;
      store(out, load(out) * inverse);
    }
    if (!lse)
      continue;
    Vec<T> logs = (load(s.most + v * w) + logOfTwo(sum)) * static_cast<T>(kLn2);
    logs = sum == none ? splat(static_cast<T>(-INFINITY)) : logs;
    for (int64_t lane = 0; lane < w && v * w + lane < task.queries; ++lane)
      lse[(row + v * w + lane) * p.heads + task.head] = logs[lane];
  }
  auto *out = static_cast<typename E::Storage *>(p.out) + row * p.out_stride +
              task.head * p.head_dim;
  if constexpr (sizeof(typename E::Storage) == sizeof(T)) {
    transpose(s.out, kQ, p.head_dim, task.queries, out, p.out_stride, T(1));
  } else {
    transpose(s.out, kQ, p.head_dim, task.queries, s.keys, p.head_dim, T(1));
    for (int64_t q = 0; q < task.queries; ++q)
      convertRow(s.keys + q * p.head_dim, out + q * p.out_stride, p.head_dim);
  }
}

template <typename E>
void attention(const dyna_attention &p, const AttentionTask &task,
               void *scratch) {
  using T = typename E::Sum;
  using Storage = typename E::Storage;
  constexpr int w = kLanes<T>;
  const dyna_segment &segment = *task.segment;
  const int64_t headDim = p.head_dim, vectors = vectorsOf<T>(task.queries);
  Carver<T> carver{static_cast<T *>(scratch)};
  ForwardScratch<T> s(carver, headDim);

  const auto *q = static_cast<const Storage *>(p.q) +
                  (segment.q_begin + task.firstQuery) * p.q_stride +
                  task.head * headDim;
  int64_t kvHead = task.head / (p.heads / p.kv_heads);
  const KeyValueRows<E> rows(p, segment);
  const auto *k = rows.k + kvHead * headDim;
  const auto *v = rows.v + kvHead * headDim;
  transposeQueries(
      viewRows<E>(q, p.q_stride, task.queries, headDim, headDim, s.keys),
      task.queries, headDim, s.q, static_cast<T>(p.scale * kLog2E));
  for (int64_t i = 0; i < vectors * w; ++i) {
    s.most[i] = static_cast<T>(-1e30); // finite: differences must stay numbers
    s.sum[i] = 0;
  }

  int64_t end = segment.kv_len;
  // Prefetch the rows of the output, which are written at the end, row by row.
  const char *out = reinterpret_cast<const char *>(
      static_cast<const Storage *>(p.out) +
      (segment.q_begin + task.firstQuery) * p.out_stride + task.head * headDim);
  for (int64_t i = 0; i < task.queries; ++i)
    for (int64_t byte = 0; byte < headDim * int64_t(sizeof(Storage));
         byte += 64)
      __builtin_prefetch(
          out + i * p.out_stride * int64_t(sizeof(Storage)) + byte, 1);
  if (p.causal)
    end = clamp(end - segment.q_len + task.firstQuery + task.queries, 0, end);
  for (int64_t key = 0; key < end; key += kKeys) {
    int64_t keys = least(kKeys, end - key);
    Sight sight = makeSight(segment, p.causal, task.firstQuery, key, keys);
    Rows<T> keyRows = viewRows<E>(k + key * rows.kStride, rows.kStride, keys,
                                  headDim, headDim, s.keys);
    multiplyInSight(keyRows, s.q, headDim, keys, vectors, sight, s.scores);
    for (int64_t i = 0; i < vectors; ++i)
      softmaxStep(s, i, sight.keysOf<T>(i, keys), sight);
    Rows<T> valueRows = viewRows<E>(v + key * rows.vStride, rows.vStride, keys,
                                    headDim, headDim, s.values);
    addValues(s, valueRows, headDim, keys, vectors, sight, key == 0);
  }
  if (end <= 0)
    for (int64_t i = 0; i < headDim * kQ; ++i)
      s.out[i] = 0;
  finishQueries<E>(p, task, s);
}

} // namespace DYNA_ISA
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_ATTENTIONKERNELS_H
