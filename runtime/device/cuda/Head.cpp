//===- Head.cpp - Runs head and loss in chunks on CUDA ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gives the device the work of a call. The call contains the rows that have a
// target, or kernels find them (kernels/Head.cu). If their number is unknown,
// all rows are processed, those without a target as zeros. So no call waits.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Arguments.h"
#include "runtime/device/Failure.h"
#include "runtime/device/HeadWorkspace.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/HandKernels.h"
#include "runtime/device/cuda/MatrixKernels.h"

#include <algorithm>

using namespace dyna;
using namespace dyna::cuda;
using gpu::Kernel;

namespace {

/// Head and loss of one call.
class Head {
public:
  Head(dyna_context *context, const dyna_head &p, int64_t element)
      : context_(context), p_(p), element_(element),
        // If all rows have a target, no list of rows is needed.
        isWhole_(p.target_rows == p.rows),
        count_(p.target_rows < 0 ? p.rows : p.target_rows), space_(p, element) {
    list_ = reinterpret_cast<int32_t *>(space_.list);
    used_ = p.used_rows ? p.used_rows : list_;
  }

  dyna_status run() {
    if (dyna_status status = listRows())
      return status;
    if (count_ == 0)
      return clear(p_.loss_sum, 8);
    for (int64_t first = 0; first < count_; first += space_.chunkRows)
      if (dyna_status status =
              runChunk(first, std::min(space_.chunkRows, count_ - first)))
        return status;
    return DYNA_OK;
  }

private:
  dyna_status clear(void *data, int64_t bytes) {
    return give(context_,
                CudaDevice::of(*context_).clear(
                    static_cast<StreamHandle>(context_->stream), data, bytes));
  }

  /// Lists the rows that have a target, if some have none and the call has no
  /// list. Clears the gradient of all rows.
  dyna_status listRows() {
    if (isWhole_)
      return DYNA_OK;
    if (used_ == list_) {
      gpu::HeadListArguments list = {};
      list.targets = p_.targets, list.used = list_, list.rows = p_.rows;
      list.announced = p_.target_rows, list.ignored = p_.ignore_index;
      if (dyna_status status = launch<Kernel::head_list>(context_, list, 1))
        return status;
    }
    return p_.dx ? clear(p_.dx, p_.rows * space_.rowBytes) : DYNA_OK;
  }

  /// Rows of x or dx that have a target, side by side in `gathered`, or back.
  dyna_status copyRows(const void *from, void *to, int64_t first, int64_t count,
                       bool isBack) {
    gpu::HeadRowsArguments copy = {};
    copy.from = from, copy.to = to, copy.used = used_ + first;
    copy.isBack = isBack;
    uint64_t bits = reinterpret_cast<uint64_t>(from) |
                    reinterpret_cast<uint64_t>(to) |
                    static_cast<uint64_t>(space_.rowBytes);
    copy.wordBytes = 16;
    while (bits % static_cast<uint64_t>(copy.wordBytes) != 0)
      copy.wordBytes /= 2;
    copy.words = space_.rowBytes / copy.wordBytes;
    return launch<Kernel::head_rows>(context_, copy, count);
  }

  dyna_status runChunk(int64_t first, int64_t count) {
    const void *x = static_cast<const char *>(p_.x) + first * space_.rowBytes;
    if (!isWhole_) {
      if (dyna_status status =
              copyRows(p_.x, space_.gathered, first, count, /*isBack=*/false))
        return status;
      x = space_.gathered;
    }
    dyna_matmul logits = {};
    logits.m = count, logits.n = p_.vocab, logits.k = p_.width;
    logits.a = x, logits.lda = p_.width;
    logits.b = p_.w, logits.ldb = p_.width, logits.transpose_b = 1;
    logits.c = space_.logits, logits.ldc = space_.stride;
    if (dyna_status status = p_.matmul(context_, &logits))
      return status;
    if (dyna_status status = computeLosses(first, count))
      return status;
    if (!p_.dx)
      return DYNA_OK;
    if (dyna_status status = addInput(first, count))
      return status;
    return p_.dw ? addWeight(x, first, count) : DYNA_OK;
  }

  /// Logits become their gradient (in training).
  dyna_status computeLosses(int64_t first, int64_t count) {
    gpu::HeadLossArguments loss = {};
    loss.logits = space_.logits,
    loss.gradient = p_.dx ? space_.gradient : nullptr;
    loss.targets = p_.targets, loss.used = isWhole_ ? nullptr : used_;
    loss.losses = space_.losses;
    loss.first = first, loss.stride = space_.stride, loss.vocab = p_.vocab;
    loss.scale = p_.gradient_scale;
    loss.bad = CudaDevice::of(*context_).badRow();
    dyna_status status =
        element_ == 8   ? launch<Kernel::head_loss_f64>(context_, loss, count)
        : element_ == 4 ? launch<Kernel::head_loss_f32>(context_, loss, count)
        : p_.narrow_logits
            ? launch<Kernel::head_loss_bf16>(context_, loss, count)
            : launch<Kernel::head_loss_wide>(context_, loss, count);
    if (status)
      return status;
    return launch<Kernel::head_sum>(
        context_, {space_.losses, p_.loss_sum, count, first == 0, 0}, 1);
  }

  dyna_status addInput(int64_t first, int64_t count) {
    void *dx = isWhole_ ? static_cast<char *>(p_.dx) + first * space_.rowBytes
                        : space_.gatheredGradient;
    dyna_matmul input = {};
    input.m = count, input.n = p_.width, input.k = p_.vocab;
    input.a = space_.gradient, input.lda = space_.stride;
    input.b = p_.w, input.ldb = p_.width;
    input.c = dx, input.ldc = p_.width;
    if (dyna_status status = p_.matmul_input(context_, &input))
      return status;
    return isWhole_ ? DYNA_OK : copyRows(dx, p_.dx, first, count, true);
  }

  dyna_status addWeight(const void *x, int64_t first, int64_t count) {
    dyna_matmul weight = {};
    weight.m = p_.vocab, weight.n = p_.width, weight.k = count;
    weight.a = space_.gradient, weight.lda = space_.stride,
    weight.transpose_a = 1;
    weight.b = x, weight.ldb = p_.width;
    weight.c = p_.dw, weight.ldc = p_.width, weight.accumulate = 1;
    if (!space_.slice)
      return p_.matmul_weight(context_, &weight);
    weight.c = space_.slice, weight.accumulate = 0;
    for (int64_t row = 0; row < p_.vocab; row += DYNA_HEAD_SLICE_ROWS) {
      weight.a = space_.gradient + row * element_;
      weight.m = std::min<int64_t>(DYNA_HEAD_SLICE_ROWS, p_.vocab - row);
      if (dyna_status status = p_.matmul_weight(context_, &weight))
        return status;
      gpu::HeadSplitArguments split = {};
      split.source = space_.slice;
      split.upper = static_cast<uint16_t *>(p_.dw) + row * p_.width;
      split.lower = space_.lowerHalves + row * p_.width;
      split.elements = weight.m * p_.width;
      split.isFirst = first == 0, split.isLast = first + count == count_;
      constexpr int64_t perBlock =
          gpu::kHeadSplitThreads * gpu::kHeadSplitElements;
      if (dyna_status status = launch<Kernel::head_split>(
              context_, split, (split.elements + perBlock - 1) / perBlock))
        return status;
    }
    return DYNA_OK;
  }

  dyna_context *context_;
  const dyna_head &p_;
  const int64_t element_;
  const bool isWhole_;  ///< every row has a target
  const int64_t count_; ///< rows that are taken
  const HeadWorkspace space_;
  int32_t *list_;       ///< room for a list of our own
  const int32_t *used_; ///< rows with a target, ascending; then, in ours, -1
};

dyna_status runHead(dyna_context *context, const dyna_head *p, int64_t element,
                    const char *name) {
  if (dyna_status status = checkHead(context, p, element, name))
    return status;
  if (p->whole_vocab != 0)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: a vocabulary of %d shared among ranks is not there for "
                "CUDA devices yet",
                name, p->whole_vocab);
  if (p->target_rows > p->rows)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: %d of %d rows are said to have a target", name,
                p->target_rows, p->rows);
  return Head(context, *p, element).run();
}

} // namespace

dyna_status cuda::headF32(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 4, "head_f32");
}
dyna_status cuda::headF64(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 8, "head_f64");
}
dyna_status cuda::headBf16(dyna_context *context, const dyna_head *p) {
  return runHead(context, p, 2, "head_bf16");
}
