//===- Attention.cpp - Runs attention over segments on the team -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cuts attention into tasks for the team (the tasks themselves are in
// AttentionKernels.h). Forward tasks, one per block of queries and head, are
// independent. Backward tasks are pairs of super-blocks of queries and keys of
// one segment. They add to both, so they run in phases. With n super-blocks on
// the longer side, phase p has the pairs (i, (i - p) mod n). No two of them
// share a side. So every gradient is added in the order of the phases, for any
// number of threads. Within a phase the largest tasks come first.
//
// Keys of slices are in the store of their bundle (Abi.h). Forward copies the
// slice's own rows there first. Backward adds to the sums of the store in
// place, and copies the slice's own rows to dk and dv at the end.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "runtime/device/CheckAttention.h"
#include "runtime/device/Failure.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/HostKernels.h"
#include "runtime/device/host/KernelTable.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace dyna;

namespace {

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Returns true if the keys of the segment lie in the store.
bool isSlice(const dyna_segments &segments, const dyna_segment &segment) {
  return segments.stored > 0 && segment.kv_begin >= segments.tkv;
}

dyna_status checkSegments(dyna_context *context, const dyna_segments &segments,
                          const char *name) {
  for (int64_t i = 0; i < segments.count; ++i) {
    const dyna_segment &s = segments.data[i];
    const bool sliced = isSlice(segments, s);
    const int64_t end = segments.tkv + (sliced ? segments.stored : 0);
    if (s.q_begin < 0 || s.q_len < 0 || s.q_begin > segments.tq - s.q_len ||
        s.kv_begin < 0 || s.kv_len < 0 || s.kv_begin > end - s.kv_len)
      return fail(context, DYNA_INVALID_ARGUMENT,
                  "%s: segment %d has queries [%d, +%d) of %d and keys "
                  "[%d, +%d) of %d",
                  name, i, s.q_begin, s.q_len, segments.tq, s.kv_begin,
                  s.kv_len, end);
    if (sliced && (s.kv_len < s.q_len || segments.tkv != segments.tq))
      return fail(
          context, DYNA_INVALID_ARGUMENT,
          "%s: segment %d is a slice of %d queries with %d keys in the "
          "store: its own are the last of them, and the micro-batch has "
          "as many keys (%d) as queries (%d)",
          name, i, s.q_len, s.kv_len, segments.tkv, segments.tq);
  }
  return DYNA_OK;
}

dyna_status check(dyna_context *context, const dyna_attention *p,
                  const char *name) {
  if (dyna_status status = checkAttention(context, p, name))
    return status;
  if (dyna_status status = checkSegments(context, *p->segments, name))
    return status;
  return dyna_progress(context);
}

/// Counts `products` products over the visible pairs.
void countFlops(dyna_context *context, const dyna_attention &p,
                int64_t products) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < p.segments->count; ++i)
    pairs += dyna_visible_pairs(&p.segments->data[i], p.causal);
  context->matrix_flops += 2 * products * p.heads * p.head_dim * pairs;
}

dyna_status failMemory(dyna_context *context, const char *name) {
  return fail(context, DYNA_RESOURCE_EXHAUSTED,
              "%s: no memory for the threads' scratch", name);
}

//===----------------------------------------------------------------------===//
// The store of a bundle
//===----------------------------------------------------------------------===//

/// Rows of a slice that one task copies.
struct SliceRows {
  int64_t row;   ///< first, in the micro-batch
  int64_t store; ///< its row in the store
  int64_t count;
};

/// Cuts the slices' own rows into pieces for the team.
std::vector<SliceRows> rowsOfSlices(const dyna_segments &segments) {
  constexpr int64_t most = 64;
  std::vector<SliceRows> rows;
  for (int64_t i = 0; segments.stored > 0 && i < segments.count; ++i) {
    const dyna_segment &s = segments.data[i];
    if (!isSlice(segments, s))
      continue;
    const int64_t store = s.kv_begin - segments.tkv + s.kv_len - s.q_len;
    for (int64_t begin = 0; begin < s.q_len; begin += most)
      rows.push_back(
          {s.q_begin + begin, store + begin, std::min(most, s.q_len - begin)});
  }
  return rows;
}

/// Copies keys and values of slices to their rows in the store.
void storeKeys(Team &team, const dyna_attention &p, int64_t element) {
  const std::vector<SliceRows> slices = rowsOfSlices(*p.segments);
  if (slices.empty())
    return;
  const auto width = static_cast<size_t>(p.kv_heads * p.head_dim * element);
  auto copy = [&](const SliceRows &rows, const void *from, int64_t stride,
                  int64_t column) {
    for (int64_t row = 0; row < rows.count; ++row)
      memcpy(static_cast<char *>(p.store.data) +
                 ((rows.store + row) * p.store.stride + column) * element,
             static_cast<const char *>(from) +
                 (rows.row + row) * stride * element,
             width);
  };
  team.parallelFor(static_cast<int64_t>(slices.size()), [&](int64_t task, int) {
    const SliceRows &rows = slices[static_cast<size_t>(task)];
    copy(rows, p.k, p.k_stride, p.store.k_column);
    copy(rows, p.v, p.v_stride, p.store.v_column);
  });
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Keys that the last of these queries sees.
int64_t seenKeys(const dyna_segment &s, bool causal, int64_t endQuery) {
  int64_t keys = causal ? s.kv_len - s.q_len + endQuery : s.kv_len;
  return std::clamp<int64_t>(keys, 0, s.kv_len);
}

dyna_status runAttention(dyna_context *context, const dyna_attention *attention,
                         int64_t element, const TypedKernels &kernels,
                         const char *name) {
  if (dyna_status status = check(context, attention, name))
    return status;
  const dyna_attention &p = *attention;
  HostDevice &device = HostDevice::of(*context);
  if (!device.reserveWorkers(kernels.attentionScratch(p.head_dim)))
    return failMemory(context, name);
  countFlops(context, p, DYNA_ATTENTION_PRODUCTS);
  storeKeys(device.team(), p, element);

  struct Block {
    AttentionTask task;
    int64_t work;
  };
  std::vector<Block> blocks;
  for (int64_t i = 0; i < p.segments->count; ++i) {
    const dyna_segment &segment = p.segments->data[i];
    for (int64_t q = 0; q < segment.q_len; q += kBlockRows) {
      int64_t queries = std::min(kBlockRows, segment.q_len - q);
      blocks.push_back({{&segment, 0, q, queries},
                        seenKeys(segment, p.causal, q + queries)});
    }
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Block &a, const Block &b) { return a.work > b.work; });
  int64_t count = static_cast<int64_t>(blocks.size()) * p.heads;
  device.team().parallelFor(count, [&](int64_t index, int worker) {
    AttentionTask task = blocks[static_cast<size_t>(index / p.heads)].task;
    task.head = index % p.heads;
    kernels.attention(p, task, device.workerScratch(worker));
  });
  return DYNA_OK;
}

//===----------------------------------------------------------------------===//
// Backward: the schedule
//===----------------------------------------------------------------------===//

struct Pair {
  AttentionGradTask task; ///< for any key/value head
  int64_t phase;
  int64_t work;
};

/// Keys that several segments see, such as slices of one sample, must not be
/// added to at the same time.
bool sharesKeys(const dyna_segments &segments) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t i = 0; i < segments.count; ++i)
    if (const dyna_segment &s = segments.data[i]; s.kv_len > 0)
      ranges.push_back({s.kv_begin, s.kv_begin + s.kv_len});
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return true;
  return false;
}

int64_t superBlocks(int64_t rows) {
  return (rows + kSuperRows - 1) / kSuperRows;
}

/// Adds the pairs of one segment; returns the number of phases they take.
int64_t addPairs(const dyna_segment &segment, bool causal, bool clearKeys,
                 int64_t firstPhase, std::vector<Pair> &pairs) {
  int64_t nq = superBlocks(segment.q_len), nk = superBlocks(segment.kv_len);
  int64_t n = std::max(nq, nk);
  std::vector<bool> doneQueries(static_cast<size_t>(nq)),
      doneKeys(static_cast<size_t>(nk));
  auto add = [&](int64_t phase, int64_t i, int64_t j) {
    AttentionGradTask task = {&segment, 0, 0, 0, 0, 0, false, false};
    if (i >= 0) {
      task.firstQuery = i * kSuperRows;
      task.queries = std::min(kSuperRows, segment.q_len - task.firstQuery);
      task.clearQueries = !doneQueries[static_cast<size_t>(i)];
      doneQueries[static_cast<size_t>(i)] = true;
    }
    if (j >= 0) {
      task.firstKey = j * kSuperRows;
      task.keys = std::min(kSuperRows, segment.kv_len - task.firstKey);
      task.clearKeys = clearKeys && !doneKeys[static_cast<size_t>(j)];
      doneKeys[static_cast<size_t>(j)] = true;
    }
    int64_t seen = seenKeys(segment, causal, task.firstQuery + task.queries);
    int64_t keys =
        std::min(task.keys, std::max<int64_t>(seen - task.firstKey, 0));
    pairs.push_back({task, firstPhase + phase, keys * task.queries});
  };
  for (int64_t phase = 0; phase < n; ++phase)
    for (int64_t i = 0; i < nq; ++i) {
      int64_t j = (i - phase + n) % n;
      int64_t endQuery = std::min(segment.q_len, (i + 1) * kSuperRows);
      if (j < nk && j * kSuperRows < seenKeys(segment, causal, endQuery))
        add(phase, i, j);
    }
  // Rows without a pair are only cleared.
  for (int64_t i = 0; i < nq; ++i)
    if (!doneQueries[static_cast<size_t>(i)])
      add(0, i, -1);
  for (int64_t j = 0; j < nk; ++j)
    if (!doneKeys[static_cast<size_t>(j)] && clearKeys)
      add(0, -1, j);
  return n;
}

std::vector<Pair> schedulePairs(const dyna_segments &segments, bool causal,
                                bool shared) {
  std::vector<Pair> pairs;
  int64_t firstPhase = 0;
  for (int64_t i = 0; i < segments.count; ++i) {
    // Later slices have already added to the sums of the store, so keep these.
    const bool clears = !shared && !isSlice(segments, segments.data[i]);
    int64_t phases =
        addPairs(segments.data[i], causal, clears, firstPhase, pairs);
    if (shared)
      firstPhase += phases;
  }
  // Pairs of one phase are independent: how ties are broken changes no result.
  std::sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) {
    return a.phase != b.phase ? a.phase < b.phase : a.work > b.work;
  });
  return pairs;
}

//===----------------------------------------------------------------------===//
// Backward: gradients' memory
//===----------------------------------------------------------------------===//

/// Sums of one gradient: where, the row length in use, and its final place.
struct Gradient {
  char *sums;
  int64_t sumStride; ///< elements
  void *target;
  int64_t targetStride;
  int64_t heads;
};

class Gradients {
public:
  Gradients(const dyna_attention_grad &g, int64_t element)
      : element_(element), sumBytes_(element == 8 ? 8 : 4),
        headDim_(g.forward.head_dim), padded_(padHeadDim(headDim_)),
        inPlace_(accumulatesInPlace(element, headDim_)) {
    const dyna_attention &f = g.forward;
    int64_t tq = dyna_round_rows(f.segments->tq);
    int64_t tkv = dyna_round_rows(f.segments->tkv);
    char *at = static_cast<char *>(g.workspace);
    delta_ = at;
    at += tq * f.heads * sumBytes_;
    auto place = [&](void *target, int64_t stride, int64_t heads,
                     int64_t rows) {
      if (inPlace_)
        return Gradient{static_cast<char *>(target), stride, target, stride,
                        heads};
      Gradient result = {at, heads * padded_, target, stride, heads};
      at += rows * result.sumStride * sumBytes_;
      return result;
    };
    dq = place(g.dq, g.dq_stride, f.heads, tq);
    dk = place(g.dk, g.dk_stride, f.kv_heads, tkv);
    dv = place(g.dv, g.dv_stride, f.kv_heads, tkv);
  }

  AttentionSums sums() const {
    return {dq.sums,      dq.sumStride, padded_, dk.sums, dv.sums,
            dk.sumStride, dv.sumStride, padded_, delta_};
  }

  /// Returns the sums of slices: gradients of keys and values are added in the store.
  AttentionSums storeSums(const dyna_attention &f) const {
    AttentionSums result = sums();
    result.dk = inStore(f, f.store.dk_column);
    result.dv = inStore(f, f.store.dv_column);
    result.dkStride = result.dvStride = f.store.gradient_stride;
    result.firstKey = f.segments->tkv;
    return result;
  }

  /// Brings the slices' own rows from the store to their final place and type.
  void finishSlice(const dyna_attention &f, const SliceRows &rows,
                   const TypedKernels &kernels) const {
    const int64_t stride = f.store.gradient_stride;
    auto finishOne = [&](Gradient g, int64_t column) {
      // Row `rows.row` of the sums is that of the store.
      g.sums =
          inStore(f, column) + (rows.store - rows.row) * stride * sumBytes_;
      g.sumStride = stride;
      finish(g, rows.row, rows.row + rows.count, kernels);
    };
    finishOne(dk, f.store.dk_column);
    finishOne(dv, f.store.dv_column);
  }

  /// Sets rows [begin, end) of the sums to zero.
  void clear(const Gradient &g, int64_t begin, int64_t end) const {
    int64_t columns = g.heads * (inPlace_ ? headDim_ : padded_);
    for (int64_t row = begin; row < end; ++row)
      memset(g.sums + row * g.sumStride * sumBytes_, 0,
             static_cast<size_t>(columns * sumBytes_));
  }

  /// Brings rows [begin, end) to their final place and type.
  void finish(const Gradient &g, int64_t begin, int64_t end,
              const TypedKernels &kernels) const {
    for (int64_t head = 0; head < g.heads; ++head)
      kernels.narrow(
          {g.sums + (begin * g.sumStride + head * padded_) * sumBytes_,
           g.sumStride,
           static_cast<char *>(g.target) +
               (begin * g.targetStride + head * headDim_) * element_,
           g.targetStride, end - begin, headDim_});
  }

  bool inPlace() const { return inPlace_; }

  Gradient dq, dk, dv;

private:
  char *inStore(const dyna_attention &f, int64_t column) const {
    return static_cast<char *>(f.store.gradients) + column * sumBytes_;
  }

  int64_t element_, sumBytes_, headDim_, padded_;
  bool inPlace_;
  void *delta_ = nullptr;
};

/// Rows of dk and dv that no task clears: those of no segment, or, when
/// segments share keys, all. Rows of dq are covered by the segments.
void clearKeys(Team &team, const dyna_segments &segments,
               const Gradients &gradients, bool all) {
  std::vector<std::pair<int64_t, int64_t>> gaps;
  if (all) {
    gaps.push_back({0, segments.tkv});
  } else {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (int64_t i = 0; i < segments.count; ++i) {
      const dyna_segment &s = segments.data[i];
      if (isSlice(segments, s)) // `finishSlice` writes the rows of its queries
        ranges.push_back({s.q_begin, s.q_begin + s.q_len});
      else
        ranges.push_back({s.kv_begin, s.kv_begin + s.kv_len});
    }
    std::sort(ranges.begin(), ranges.end());
    ranges.push_back({segments.tkv, segments.tkv});
    int64_t end = 0;
    for (const auto &range : ranges) {
      if (range.first > end)
        gaps.push_back({end, range.first});
      end = std::max(end, range.second);
    }
  }
  constexpr int64_t kRows = 64;
  for (const auto &gap : gaps)
    team.parallelFor((gap.second - gap.first + kRows - 1) / kRows,
                     [&](int64_t task, int) {
                       int64_t begin = gap.first + task * kRows;
                       int64_t end = std::min(gap.second, begin + kRows);
                       gradients.clear(gradients.dk, begin, end);
                       gradients.clear(gradients.dv, begin, end);
                     });
}

void finishGradients(Team &team, const dyna_segments &segments,
                     const Gradients &gradients, const TypedKernels &kernels) {
  if (gradients.inPlace())
    return;
  constexpr int64_t kRows = 32;
  int64_t queryTasks = (segments.tq + kRows - 1) / kRows;
  int64_t keyTasks = (segments.tkv + kRows - 1) / kRows;
  team.parallelFor(queryTasks + keyTasks, [&](int64_t task, int) {
    if (task < queryTasks) {
      int64_t end = std::min(segments.tq, (task + 1) * kRows);
      gradients.finish(gradients.dq, task * kRows, end, kernels);
      return;
    }
    int64_t begin = (task - queryTasks) * kRows;
    int64_t end = std::min(segments.tkv, begin + kRows);
    gradients.finish(gradients.dk, begin, end, kernels);
    gradients.finish(gradients.dv, begin, end, kernels);
  });
}

dyna_status runAttentionGrad(dyna_context *context,
                             const dyna_attention_grad *grad, int64_t element,
                             const TypedKernels &kernels, const char *name) {
  if (dyna_status status =
          check(context, grad ? &grad->forward : nullptr, name))
    return status;
  if (dyna_status status = checkAttentionGrad(context, grad, name))
    return status;
  const dyna_attention_grad &g = *grad;
  const dyna_attention &f = g.forward;
  const dyna_segments &segments = *f.segments;
  HostDevice &device = HostDevice::of(*context);
  Team &team = device.team();
  if (!device.reserveWorkers(kernels.attentionGradScratch(f.head_dim)))
    return failMemory(context, name);
  countFlops(context, f, DYNA_ATTENTION_GRAD_PRODUCTS);
  Gradients gradients(g, element);
  const AttentionSums sums = gradients.sums();
  const AttentionSums storeSums = gradients.storeSums(f);
  bool shared = sharesKeys(segments);
  clearKeys(team, segments, gradients, shared);

  std::vector<Pair> pairs = schedulePairs(segments, f.causal, shared);
  for (size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end].phase == pairs[begin].phase)
      ++end;
    int64_t count = static_cast<int64_t>(end - begin) * f.kv_heads;
    team.parallelFor(count, [&](int64_t index, int worker) {
      AttentionGradTask task =
          pairs[begin + static_cast<size_t>(index / f.kv_heads)].task;
      task.kvHead = index % f.kv_heads;
      kernels.attentionGrad(g,
                            isSlice(segments, *task.segment) ? storeSums : sums,
                            task, device.workerScratch(worker));
    });
  }
  finishGradients(team, segments, gradients, kernels);
  const std::vector<SliceRows> slices = rowsOfSlices(segments);
  team.parallelFor(static_cast<int64_t>(slices.size()), [&](int64_t task, int) {
    gradients.finishSlice(f, slices[static_cast<size_t>(task)], kernels);
  });
  return DYNA_OK;
}

const KernelTable &tableOf(const dyna_context *context) {
  return HostDevice::of(*context).kernels();
}

} // namespace

dyna_status host::attentionF32(dyna_context *context, const dyna_attention *p) {
  return runAttention(context, p, 4, tableOf(context).f32, "attention_f32");
}
dyna_status host::attentionF64(dyna_context *context, const dyna_attention *p) {
  return runAttention(context, p, 8, tableOf(context).f64, "attention_f64");
}
dyna_status host::attentionBf16(dyna_context *context,
                                const dyna_attention *p) {
  return runAttention(context, p, 2, tableOf(context).bf16, "attention_bf16");
}

dyna_status host::attentionGradF32(dyna_context *context,
                                   const dyna_attention_grad *p) {
  return runAttentionGrad(context, p, 4, tableOf(context).f32,
                          "attention_grad_f32");
}
dyna_status host::attentionGradF64(dyna_context *context,
                                   const dyna_attention_grad *p) {
  return runAttentionGrad(context, p, 8, tableOf(context).f64,
                          "attention_grad_f64");
}
dyna_status host::attentionGradBf16(dyna_context *context,
                                    const dyna_attention_grad *p) {
  return runAttentionGrad(context, p, 2, tableOf(context).bf16,
                          "attention_grad_bf16");
}
