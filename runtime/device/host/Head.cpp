//===- Head.cpp - Computes head and loss in chunks --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "runtime/device/Arguments.h"
#include "runtime/device/Failure.h"
#include "runtime/device/HeadWorkspace.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/HostKernels.h"
#include "runtime/device/host/KernelTable.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace dyna;

namespace {

/// The rows of the vocabulary that w holds.
struct Part {
  Part(const dyna_context &context, const dyna_head &p) {
    if (p.whole_vocab == 0) {
      size = whole = p.vocab;
      return;
    }
    const dyna_group &group = context.groups[p.group];
    whole = p.whole_vocab;
    begin = dyna_part_begin(whole, group.size, group.index);
    size = dyna_part_size(whole, group.size, group.index);
  }
  int64_t begin = 0, size, whole;
};

dyna_status checkPart(dyna_context *context, const dyna_head &p,
                      const char *name) {
  if (p.group < 0 || p.group >= context->group_count || !context->groups)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: group %d of a context with %d groups", name, p.group,
                context->groups ? context->group_count : 0);
  Part part(*context, p);
  if (p.whole_vocab < 0 || part.size > p.vocab)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: this rank's part of a vocabulary of %d has %d rows, "
                "but there is room for %d",
                name, p.whole_vocab, part.size, p.vocab);
  return DYNA_OK;
}

dyna_status check(dyna_context *context, const dyna_head *p, int64_t element,
                  const char *name) {
  if (dyna_status status = checkHead(context, p, element, name))
    return status;
  return p->whole_vocab == 0 ? DYNA_OK : checkPart(context, *p, name);
}

/// Head and loss of one call.
class Head {
public:
  Head(dyna_context *context, const dyna_head &p, int64_t element,
       const TypedKernels &kernels)
      : context_(context), p_(p), part_(*context, p), element_(element),
        kernels_(kernels), team_(HostDevice::of(*context).team()),
        space_(p, element) {
    if (p.narrow_logits)
      wideRows_.resize(
          static_cast<size_t>(team_.size() * space_.stride / kLineFloats));
    used_ = reinterpret_cast<int64_t *>(space_.list);
  }

  dyna_status run(const char *name) {
    if (dyna_status status = findRows(name))
      return status;
    double sum = 0;
    for (int64_t first = 0; first < usedCount_; first += space_.chunkRows)
      if (dyna_status status =
              runChunk(used_ + first,
                       std::min(space_.chunkRows, usedCount_ - first), sum))
        return status;
    *p_.loss_sum = sum;
    return DYNA_OK;
  }

private:
  char *row(const void *matrix, int64_t index) const {
    return const_cast<char *>(static_cast<const char *>(matrix)) +
           index * space_.rowBytes;
  }

  /// Lists the rows that have a target; clears the gradient of the others.
  dyna_status findRows(const char *name) {
    for (int64_t i = 0; i < p_.rows; ++i) {
      int32_t target = p_.targets[i];
      if (target == p_.ignore_index)
        continue;
      if (target < 0 || target >= part_.whole)
        return fail(
            context_, DYNA_INVALID_ARGUMENT,
            "%s: target id %d of row %d is outside the vocabulary of "
            "%d; check that the data was made with the model's tokenizer",
            name, target, i, part_.whole);
      used_[usedCount_++] = i;
    }
    if (p_.target_rows >= 0 && p_.target_rows != usedCount_)
      return fail(context_, DYNA_INVALID_ARGUMENT,
                  "%s: %d of %d rows have a target, but %d were announced",
                  name, usedCount_, p_.rows, p_.target_rows);
    if (p_.dx)
      for (int64_t i = 0; i < p_.rows; ++i)
        if (p_.targets[i] == p_.ignore_index)
          memset(row(p_.dx, i), 0, static_cast<size_t>(space_.rowBytes));
    return DYNA_OK;
  }

  dyna_status runChunk(const int64_t *rows, int64_t count, double &sum) {
    // Adjacent rows need not be gathered.
    bool together = rows[count - 1] - rows[0] == count - 1;
    if (!together)
      for (int64_t i = 0; i < count; ++i)
        memcpy(row(space_.gathered, i), row(p_.x, rows[i]),
               static_cast<size_t>(space_.rowBytes));
    const void *x = together ? row(p_.x, rows[0]) : space_.gathered;

    dyna_matmul logits = {};
    logits.m = count, logits.n = part_.size, logits.k = p_.width;
    logits.a = x, logits.lda = p_.width;
    logits.b = p_.w, logits.ldb = p_.width, logits.transpose_b = 1;
    logits.c = space_.logits, logits.ldc = space_.stride;
    if (dyna_status status = p_.matmul(context_, &logits))
      return status;
    if (dyna_status status = p_.whole_vocab == 0 ? computeLosses(rows, count)
                                                 : shareLosses(rows, count))
      return status;
    for (int64_t i = 0; i < count; ++i)
      sum += space_.losses[i];
    if (!p_.dx)
      return DYNA_OK;

    void *dx = together ? row(p_.dx, rows[0]) : space_.gatheredGradient;
    dyna_matmul input = {};
    input.m = count, input.n = p_.width, input.k = part_.size;
    input.a = space_.gradient, input.lda = space_.stride;
    input.b = p_.w, input.ldb = p_.width;
    input.c = dx, input.ldc = p_.width;
    if (dyna_status status = p_.matmul_input(context_, &input))
      return status;
    if (!together)
      for (int64_t i = 0; i < count; ++i)
        memcpy(row(p_.dx, rows[i]), row(dx, i),
               static_cast<size_t>(space_.rowBytes));
    if (!p_.dw)
      return DYNA_OK;

    dyna_matmul weight = {};
    weight.m = part_.size, weight.n = p_.width, weight.k = count;
    weight.a = space_.gradient, weight.lda = space_.stride,
    weight.transpose_a = 1;
    weight.b = x, weight.ldb = p_.width;
    weight.c = p_.dw, weight.ldc = p_.width, weight.accumulate = 1;
    if (!space_.slice)
      return p_.matmul_weight(context_, &weight);
    // Handle a slice of the rows at a time, so that its sums stay in cache.
    bool isFirst = rows == used_, isLast = rows + count == used_ + usedCount_;
    weight.c = space_.slice, weight.accumulate = 0;
    for (int64_t first = 0; first < part_.size; first += DYNA_HEAD_SLICE_ROWS) {
      weight.a = space_.gradient + first * element_;
      weight.m = std::min<int64_t>(DYNA_HEAD_SLICE_ROWS, part_.size - first);
      if (dyna_status status = p_.matmul_weight(context_, &weight))
        return status;
      addSlice(first, weight.m, isFirst, isLast);
    }
    return DYNA_OK;
  }

  /// Adds `rows` rows of `space_.slice` to a bf16 gradient, from row `first` on. The
  /// sums keep their f32 until the last chunk: rounding each chunk would lose
  /// what is small beside the sum.
  void addSlice(int64_t first, int64_t rows, bool isFirst, bool isLast) {
    constexpr int64_t perTask = 64;
    const KernelTable &table = HostDevice::of(*context_).kernels();
    team_.parallelFor((rows + perTask - 1) / perTask, [&](int64_t task, int) {
      int64_t begin = task * perTask, end = std::min(rows, begin + perTask);
      int64_t at = (first + begin) * p_.width;
      SplitSum sum;
      sum.source = space_.slice + begin * p_.width;
      sum.upper = static_cast<uint16_t *>(p_.dw) + at;
      sum.lower = space_.lowerHalves + at;
      sum.elements = (end - begin) * p_.width;
      sum.isFirst = isFirst, sum.isLast = isLast;
      table.addSplit(sum);
    });
  }

  /// Calls work(i, logits of row i of the chunk) for all rows, in parallel.
  template <typename Work>
  void forRows(const int64_t *rows, int64_t count, Work work) {
    constexpr int64_t perTask = 4;
    int64_t rowBytes =
        space_.stride * dyna_logit_bytes(element_, p_.narrow_logits);
    team_.parallelFor((count + perTask - 1) / perTask, [&](int64_t task,
                                                           int thread) {
      int64_t end = std::min(count, (task + 1) * perTask);
      for (int64_t i = task * perTask; i < end; ++i) {
        char *logits = space_.logits + i * rowBytes;
        work(i, LossRow{p_.narrow_logits ? widen(logits, thread) : logits,
                        p_.dx ? space_.gradient + i * space_.stride * element_
                              : nullptr,
                        part_.size, p_.targets[rows[i]] - part_.begin,
                        p_.gradient_scale});
      }
    });
  }

  /// Returns a row of bf16 logits in f32, in memory of the thread's own.
  void *widen(const char *logits, int thread) {
    auto *wide = reinterpret_cast<float *>(
        wideRows_.data() + thread * space_.stride / kLineFloats);
    for (int64_t i = 0; i < part_.size; ++i) {
      uint16_t narrow;
      memcpy(&narrow, logits + 2 * i, 2);
      const uint32_t bits = static_cast<uint32_t>(narrow) << 16;
      memcpy(wide + i, &bits, 4);
    }
    return wide;
  }

  /// Logits become their gradient (in training).
  dyna_status computeLosses(const int64_t *rows, int64_t count) {
    forRows(rows, count, [&](int64_t i, const LossRow &row) {
      space_.losses[i] = kernels_.lossRow(row);
    });
    return DYNA_OK;
  }

  /// Computes losses if each rank has some of the logits of every row.
  dyna_status shareLosses(const int64_t *rows, int64_t count) {
    double *most = space_.exchanged, *sums = most + count,
           *targets = sums + count;
    forRows(rows, count, [&](int64_t i, const LossRow &row) {
      most[i] = kernels_.largestLogit(row);
    });
    if (dyna_status status = reduce(most, count, DYNA_REDUCE_MAX))
      return status;
    forRows(rows, count, [&](int64_t i, const LossRow &row) {
      LossTerms terms = kernels_.lossTerms(row, most[i]);
      sums[i] = terms.sum;
      targets[i] = terms.target;
    });
    if (dyna_status status = reduce(sums, 2 * count, DYNA_REDUCE_SUM))
      return status;
    forRows(rows, count, [&](int64_t i, const LossRow &row) {
      space_.losses[i] = std::log(sums[i]) + (most[i] - targets[i]);
      if (p_.dx)
        kernels_.lossGradient(row, sums[i]);
    });
    return DYNA_OK;
  }

  /// Reduces values over the ranks that share the vocabulary, in place.
  dyna_status reduce(double *values, int64_t count, int32_t reduction) {
    dyna_collective exchange = {};
    exchange.in = exchange.out = values;
    exchange.outer = exchange.inner = 1;
    exchange.split = count;
    exchange.group = p_.group;
    exchange.element = DYNA_ELEMENT_F64;
    exchange.reduction = reduction;
    return dyna_all_reduce(context_, &exchange);
  }

  dyna_context *context_;
  const dyna_head &p_;
  const Part part_;
  const int64_t element_;
  const TypedKernels &kernels_;
  Team &team_;
  const HeadWorkspace space_;
  /// Elements of the f32 row that each thread converts its bf16 logits to.
  static constexpr int64_t kLineFloats = 16;
  struct alignas(64) Line {
    float values[kLineFloats];
  };
  std::vector<Line> wideRows_;
  int64_t *used_; ///< rows with a target, ascending
  int64_t usedCount_ = 0;
};

dyna_status runHead(dyna_context *context, const dyna_head *p, int64_t element,
                    const char *name) {
  if (dyna_status status = check(context, p, element, name))
    return status;
  const KernelTable &table = HostDevice::of(*context).kernels();
  return Head(context, *p, element,
              element == 8   ? table.f64
              : element == 4 ? table.f32
                             : table.bf16)
      .run(name);
}

} // namespace

dyna_status host::headF32(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 4, "head_f32");
}
dyna_status host::headF64(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 8, "head_f64");
}
dyna_status host::headBf16(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 2, "head_bf16");
}
