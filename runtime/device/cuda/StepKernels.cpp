//===- StepKernels.cpp - Checks of indices, and the end of a step ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/Failure.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/HandKernels.h"

using namespace dyna;
using namespace dyna::cuda;

/// In the words of the host's kernels.
Status cuda::explainBadRow(const gpu::BadRow &bad) {
  if (bad.kind == gpu::BadRow::None)
    return Status::ok();
  if (bad.kind == gpu::BadRow::Target)
    return Status::invalidArgument(formatText(
        "target id %d of row %d is outside the vocabulary of %d; check that "
        "the data was made with the model's tokenizer",
        static_cast<int32_t>(bad.target),
        static_cast<int64_t>(bad.target >> 32), bad.rows));
  return Status::invalidArgument(
      formatText("%s %d in row %d of the micro-batch: the table has %d rows",
                 bad.kind == gpu::BadRow::Token ? "token id" : "position",
                 bad.value, bad.row, bad.rows));
}

static dyna_status checkRows(dyna_context *context, const int32_t *ids,
                             const int64_t *positions, int64_t count,
                             int64_t rows, const char *what) {
  if (count < 0 || rows <= 0 || (count > 0 && !ids && !positions))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of %d rows against a table of %d: there must be rows in "
                "both, and the indices",
                what, count, rows);
  if (count == 0)
    return DYNA_OK;
  return launch<gpu::Kernel::check_rows>(
      context, {ids, positions, count, rows, CudaDevice::of(*context).badRow()},
      /*blocks=*/1);
}

dyna_status cuda::checkIds(dyna_context *context, const int32_t *ids,
                           int64_t count, int64_t rows) {
  return checkRows(context, ids, nullptr, count, rows, "check_ids");
}

dyna_status cuda::checkPositions(dyna_context *context,
                                 const int64_t *positions, int64_t count,
                                 int64_t rows) {
  return checkRows(context, nullptr, positions, count, rows, "check_positions");
}

dyna_status cuda::noteLosses(dyna_context *context, const double *losses,
                             int64_t count, double *squaredNorm) {
  if (count < 0 || (count > 0 && !losses) || !squaredNorm)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "note_losses of %d losses: they and a norm must be there",
                count);
  if (count == 0)
    return DYNA_OK;
  return launch<gpu::Kernel::note_losses>(context, {losses, count, squaredNorm},
                                          /*blocks=*/1);
}

dyna_status cuda::clipNorm(dyna_context *context, const dyna_clip *p) {
  if (!p || p->count < 0 || (p->count > 0 && !p->squared_norms) || !p->norm ||
      !p->scale || !p->skips_left)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "clip_norm without squared norms, or without a place for the "
                "norm, the factor and the steps that may be passed over");
  return launch<gpu::Kernel::clip_norm>(
      context,
      {p->squared_norms, p->count, p->limit, p->norm, p->scale, p->skips_left},
      /*blocks=*/1);
}
