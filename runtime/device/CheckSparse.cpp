//===- CheckSparse.cpp - Checks arguments of sparse kernels ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/CheckSparse.h"

#include "runtime/device/Failure.h"

using namespace dyna;

namespace {

bool isSide(const dyna_sparse_side &side, int64_t survivors, bool byColumn) {
  return side.starts && side.lines && side.counts &&
         (survivors == 0 || (side.depths && (!byColumn || side.places)));
}

dyna_status checkWeight(dyna_context *context, const dyna_sparse_weight *w,
                        const void *values, const char *name) {
  if (!w)
    return fail(context, DYNA_INVALID_ARGUMENT, "%s without a weight", name);
  if (w->rows < 1 || w->columns < 1 || w->survivors < 0 ||
      !isSide(w->by_row, w->survivors, false) ||
      !isSide(w->by_column, w->survivors, true))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with a weight of %d x %d and %d survivors: expected at "
                "least one row and column, and the index by rows and columns",
                name, w->rows, w->columns, w->survivors);
  if (w->survivors > 0 && !values)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with %d survivors and no array for them", name,
                w->survivors);
  return DYNA_OK;
}

/// `data` is a matrix of [tokens, features].
dyna_status checkMatrix(dyna_context *context, const void *data, int64_t stride,
                        int64_t tokens, int64_t features, const char *what,
                        const char *name) {
  if (tokens < 0 || (tokens > 0 && !data) || stride < features)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of %d tokens, with %s in rows %d elements apart: expected "
                "a matrix with rows of at least %d",
                name, tokens, what, stride, features);
  return DYNA_OK;
}

} // namespace

dyna_status dyna::checkSparseProduct(dyna_context *context,
                                     const dyna_sparse_product *p,
                                     const char *name) {
  if (!p)
    return fail(context, DYNA_INVALID_ARGUMENT, "%s without a description",
                name);
  if (dyna_status status = checkWeight(context, p->weight, p->values, name))
    return status;
  const dyna_sparse_weight &w = *p->weight;
  if (dyna_status status =
          checkMatrix(context, p->x, p->ldx, p->tokens,
                      p->by_column ? w.rows : w.columns, "x", name))
    return status;
  return checkMatrix(context, p->y, p->ldy, p->tokens,
                     p->by_column ? w.columns : w.rows, "y", name);
}

dyna_status dyna::checkSparseGradient(dyna_context *context,
                                      const dyna_sparse_gradient *p,
                                      const char *name) {
  if (!p)
    return fail(context, DYNA_INVALID_ARGUMENT, "%s without a description",
                name);
  if (dyna_status status = checkWeight(context, p->weight, p->gradient, name))
    return status;
  if (dyna_status status = checkMatrix(context, p->x, p->ldx, p->tokens,
                                       p->weight->columns, "x", name))
    return status;
  return checkMatrix(context, p->dy, p->lddy, p->tokens, p->weight->rows, "dy",
                     name);
}
