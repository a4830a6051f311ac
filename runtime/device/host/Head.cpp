//===- Head.cpp - Head and loss in chunks -----------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/Failure.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/KernelTable.h"

#include <algorithm>
#include <cstring>

using namespace dyna;

namespace {

dyna_status check(dyna_context *context, const dyna_head *p, const char *name) {
  if (!isBound(context))
    return failUnbound(context, name);
  if (!p)
    return fail(context, DYNA_INVALID_ARGUMENT, "%s without a description",
                name);
  if (p->rows < 0 || p->width <= 0 || p->vocab <= 0)
    return fail(
        context, DYNA_INVALID_ARGUMENT,
        "%s of %lld rows, width %lld, vocabulary %lld: rows must not be "
        "negative, the others positive",
        name, (long long)p->rows, (long long)p->width, (long long)p->vocab);
  if (!p->loss_sum || !p->matmul ||
      (p->dx && (!p->dw || !p->matmul_input || !p->matmul_weight)))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: loss_sum, or a matrix product, or (with dx) dw is null",
                name);
  if (p->rows > 0 && (!p->x || !p->w || !p->targets || !p->workspace))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: x, w, targets or the workspace is null", name);
  return DYNA_OK;
}

/// Head and loss of one call. The workspace is laid out as its formula says.
class Head {
public:
  Head(dyna_context *context, const dyna_head &p, int64_t element,
       const TypedKernels &kernels)
      : context_(context), p_(p), element_(element), kernels_(kernels),
        team_(HostDevice::of(*context).team()), rowBytes_(p.width * element),
        stride_(dyna_head_stride(p.vocab)) {
    constexpr int64_t rows = DYNA_HEAD_CHUNK_ROWS;
    char *at = static_cast<char *>(p.workspace);
    auto take = [&](int64_t bytes) {
      char *taken = at;
      at += dyna_align_block(bytes);
      return taken;
    };
    gathered_ = take(rows * rowBytes_);
    gatheredGradient_ = take(rows * rowBytes_);
    logits_ = take(rows * stride_ * (element == 8 ? 8 : 4));
    gradient_ = element == 2 ? take(rows * stride_ * element) : logits_;
    losses_ = reinterpret_cast<double *>(take(rows * 8));
    used_ = reinterpret_cast<int64_t *>(at);
  }

  dyna_status run(const char *name) {
    if (dyna_status status = findRows(name))
      return status;
    double sum = 0;
    for (int64_t first = 0; first < usedCount_; first += DYNA_HEAD_CHUNK_ROWS)
      if (dyna_status status = runChunk(
              used_ + first,
              std::min<int64_t>(DYNA_HEAD_CHUNK_ROWS, usedCount_ - first), sum))
        return status;
    *p_.loss_sum = sum;
    return DYNA_OK;
  }

private:
  char *row(const void *matrix, int64_t index) const {
    return const_cast<char *>(static_cast<const char *>(matrix)) +
           index * rowBytes_;
  }

  /// Lists the rows that have a target; clears the gradient of the others.
  dyna_status findRows(const char *name) {
    for (int64_t i = 0; i < p_.rows; ++i) {
      int32_t target = p_.targets[i];
      if (target == p_.ignore_index)
        continue;
      if (target < 0 || target >= p_.vocab)
        return fail(
            context_, DYNA_INVALID_ARGUMENT,
            "%s: target id %d of row %lld is outside the vocabulary of "
            "%lld; check that the data was made with the model's tokenizer",
            name, target, (long long)i, (long long)p_.vocab);
      used_[usedCount_++] = i;
    }
    if (p_.dx)
      for (int64_t i = 0; i < p_.rows; ++i)
        if (p_.targets[i] == p_.ignore_index)
          memset(row(p_.dx, i), 0, static_cast<size_t>(rowBytes_));
    return DYNA_OK;
  }

  dyna_status runChunk(const int64_t *rows, int64_t count, double &sum) {
    // Neighbouring rows are used where they are.
    bool together = rows[count - 1] - rows[0] == count - 1;
    if (!together)
      for (int64_t i = 0; i < count; ++i)
        memcpy(row(gathered_, i), row(p_.x, rows[i]),
               static_cast<size_t>(rowBytes_));
    const void *x = together ? row(p_.x, rows[0]) : gathered_;

    dyna_matmul logits = {};
    logits.m = count, logits.n = p_.vocab, logits.k = p_.width;
    logits.a = x, logits.lda = p_.width;
    logits.b = p_.w, logits.ldb = p_.width, logits.transpose_b = 1;
    logits.c = logits_, logits.ldc = stride_;
    if (dyna_status status = p_.matmul(context_, &logits))
      return status;
    addLosses(rows, count, sum);
    if (!p_.dx)
      return DYNA_OK;

    void *dx = together ? row(p_.dx, rows[0]) : gatheredGradient_;
    dyna_matmul input = {};
    input.m = count, input.n = p_.width, input.k = p_.vocab;
    input.a = gradient_, input.lda = stride_;
    input.b = p_.w, input.ldb = p_.width;
    input.c = dx, input.ldc = p_.width;
    if (dyna_status status = p_.matmul_input(context_, &input))
      return status;
    if (!together)
      for (int64_t i = 0; i < count; ++i)
        memcpy(row(p_.dx, rows[i]), row(dx, i), static_cast<size_t>(rowBytes_));

    dyna_matmul weight = {};
    weight.m = p_.vocab, weight.n = p_.width, weight.k = count;
    weight.a = gradient_, weight.lda = stride_, weight.transpose_a = 1;
    weight.b = x, weight.ldb = p_.width;
    weight.c = p_.dw, weight.ldc = p_.width, weight.accumulate = 1;
    return p_.matmul_weight(context_, &weight);
  }

  /// Logits become their gradient (in training); losses are added row by row.
  void addLosses(const int64_t *rows, int64_t count, double &sum) {
    constexpr int64_t perTask = 4;
    int64_t logitBytes = stride_ * (element_ == 8 ? 8 : 4);
    team_.parallelFor((count + perTask - 1) / perTask, [&](int64_t task, int) {
      int64_t end = std::min(count, (task + 1) * perTask);
      for (int64_t i = task * perTask; i < end; ++i)
        losses_[i] = kernels_.lossRow(
            {logits_ + i * logitBytes,
             p_.dx ? gradient_ + i * stride_ * element_ : nullptr, p_.vocab,
             p_.targets[rows[i]], p_.gradient_scale});
    });
    for (int64_t i = 0; i < count; ++i)
      sum += losses_[i];
  }

  dyna_context *context_;
  const dyna_head &p_;
  const int64_t element_;
  const TypedKernels &kernels_;
  Team &team_;
  const int64_t rowBytes_; ///< of x and dx
  const int64_t stride_;   ///< of logits
  char *gathered_, *gatheredGradient_, *logits_, *gradient_;
  double *losses_;
  int64_t *used_; ///< rows with a target, ascending
  int64_t usedCount_ = 0;
};

dyna_status runHead(dyna_context *context, const dyna_head *p, int64_t element,
                    const char *name) {
  if (dyna_status status = check(context, p, name))
    return status;
  const KernelTable &table = HostDevice::of(*context).kernels();
  return Head(context, *p, element,
              element == 8   ? table.f64
              : element == 4 ? table.f32
                             : table.bf16)
      .run(name);
}

} // namespace

extern "C" {

dyna_status dyna_head_f32(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 4, "head_f32");
}
dyna_status dyna_head_f64(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 8, "head_f64");
}
dyna_status dyna_head_bf16(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 2, "head_bf16");
}

} // extern "C"
