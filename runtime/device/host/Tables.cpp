//===- Tables.cpp - Checks the indices of tables --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/Failure.h"
#include "runtime/device/host/HostKernels.h"

using namespace dyna;

namespace {

template <typename Index>
dyna_status checkRows(dyna_context *context, const Index *indices,
                      int64_t count, int64_t rows, const char *name,
                      const char *what) {
  if (count < 0 || rows <= 0 || (count > 0 && !indices))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of %d rows against a table of %d: there must be rows "
                "in both, and the %s",
                name, count, rows, what);
  // Without a branch for each row the check is as fast as memory.
  bool outside = false;
  for (int64_t i = 0; i < count; ++i)
    outside |= indices[i] < 0 || int64_t(indices[i]) >= rows;
  if (!outside)
    return DYNA_OK;
  int64_t row = 0;
  while (indices[row] >= 0 && int64_t(indices[row]) < rows)
    ++row;
  return fail(context, DYNA_INVALID_ARGUMENT,
              "%s %d in row %d of the micro-batch: the table has %d rows", what,
              indices[row], row, rows);
}

} // namespace

dyna_status host::checkIds(dyna_context *context, const int32_t *ids,
                           int64_t count, int64_t rows) {
  return checkRows(context, ids, count, rows, "check_ids", "token id");
}

dyna_status host::checkPositions(dyna_context *context,
                                 const int64_t *positions, int64_t count,
                                 int64_t rows) {
  return checkRows(context, positions, count, rows, "check_positions",
                   "position");
}
