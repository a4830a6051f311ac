//===- StepKernels.cpp - Runs checks, updates and switches ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/BufferRange.h"
#include "runtime/device/Failure.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/HandKernels.h"

#include <algorithm>

using namespace dyna;
using namespace dyna::cuda;

/// Describes a bad row with the text of the host's kernels.
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

Status CudaDevice::zeroWhere(Stream &stream, Buffer &target, int64_t offset,
                             const Buffer &mask, int64_t maskOffset,
                             int64_t count, int64_t elementBytes) {
  DYNA_RETURN_IF_ERROR(
      checkZeroWhere(target, offset, mask, maskOffset, count, elementBytes));
  if (count == 0)
    return Status::ok();
  const gpu::ZeroWhereArguments arguments = {
      static_cast<char *>(target.data()) + offset,
      static_cast<const uint8_t *>(mask.data()) + maskOffset, count,
      elementBytes};
  constexpr int64_t elementsOfThread = 4, mostBlocks = 1 << 12;
  return launch(
      static_cast<StreamHandle>(stream.handle()), dyna_cuda_kernels,
      static_cast<int64_t>(gpu::Kernel::zero_where),
      std::clamp<int64_t>(count / (elementsOfThread * gpu::kPlaceThreads), 1,
                          mostBlocks),
      &arguments, sizeof arguments);
}

Status CudaDevice::addScores(Stream &stream, Buffer &buffer,
                             const ScoredWeights &scored) {
  DYNA_RETURN_IF_ERROR(checkScores(buffer, scored));
  if (scored.count == 0)
    return Status::ok();
  auto *const base = static_cast<char *>(buffer.data());
  auto at = [&](int64_t offset) {
    return offset < 0 ? nullptr : base + offset;
  };
  const gpu::AddScoresArguments arguments = {
      at(scored.scores),    at(scored.weights),
      at(scored.gradients), reinterpret_cast<const uint8_t *>(at(scored.mask)),
      scored.scale,         scored.count,
      scored.scoreBytes,    scored.gradientBytes};
  constexpr int64_t elementsOfThread = 4, mostBlocks = 1 << 12;
  return launch(static_cast<StreamHandle>(stream.handle()), dyna_cuda_kernels,
                static_cast<int64_t>(gpu::Kernel::add_scores),
                std::clamp<int64_t>(scored.count /
                                        (elementsOfThread * gpu::kPlaceThreads),
                                    1, mostBlocks),
                &arguments, sizeof arguments);
}

/// Returns the largest word size of which everything is a multiple.
static int32_t wordBytes(const dyna_place &p, bool hasGaps) {
  uint64_t all = reinterpret_cast<uintptr_t>(p.source) |
                 reinterpret_cast<uintptr_t>(p.target) |
                 static_cast<uint64_t>(p.row_bytes);
  if (hasGaps)
    all |= static_cast<uint64_t>(p.source_stride | p.target_stride);
  constexpr uint64_t largest = 16;
  all |= largest;
  return static_cast<int32_t>(all & (~all + 1));
}

dyna_status cuda::placeRows(dyna_context *context, const dyna_place *p) {
  if (!dyna_is_place(p))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "place_rows of rows that are not there, that overlap, or whose "
                "elements are added and none of f32, f64 and bf16");
  if (p->rows == 0 || p->row_bytes == 0)
    return DYNA_OK;
  dyna_place rows = *p;
  const bool hasGaps = p->rows > 1 && (p->source_stride != p->row_bytes ||
                                       p->target_stride != p->row_bytes);
  if (!hasGaps) {
    rows.row_bytes *= rows.rows;
    rows.rows = 1;
  }
  const int32_t word = wordBytes(rows, hasGaps);
  if (word < dyna_added_bytes(p->added_as))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "place_rows of elements that do not lie at multiples of their "
                "size");
  const int64_t words = rows.row_bytes / word;
  // Each thread handles several words, because more blocks only cost time.
  constexpr int64_t wordsOfThread = 4, mostBlocks = 1 << 12;
  const int64_t blocks = std::clamp<int64_t>(
      rows.rows * words / (wordsOfThread * gpu::kPlaceThreads), 1, mostBlocks);
  return launch<gpu::Kernel::place_rows>(
      context,
      {static_cast<const char *>(rows.source), static_cast<char *>(rows.target),
       rows.rows, words, rows.source_stride, rows.target_stride, word,
       rows.added_as},
      blocks);
}
