//===- CheckSparse.cpp - Checks arguments of sparse kernels ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/CheckSparse.h"

#include "runtime/device/Arguments.h"
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

/// Sizes of the weight, by what the product is.
static dyna_status checkWeightShape(dyna_context *context,
                                    const dyna_sparse_matmul &p,
                                    const char *name) {
  const dyna_matmul &product = p.product;
  const bool isGradient = product.transpose_a != 0;
  const int64_t rows = isGradient            ? product.m
                       : product.transpose_b ? product.n
                                             : product.k;
  const int64_t columns =
      !isGradient && product.transpose_b ? product.k : product.n;
  const dyna_sparse_weight &weight = p.form->weight;
  if (rows == weight.rows && columns == weight.columns)
    return DYNA_OK;
  return fail(context, DYNA_INVALID_ARGUMENT,
              "%s with a weight of %d x %d and a form of %d x %d", name, rows,
              columns, weight.rows, weight.columns);
}

dyna_status dyna::checkSparseMatmul(dyna_context *context,
                                    const dyna_sparse_matmul *p,
                                    const char *name) {
  if (!p || !p->form)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s without a description, or without a form", name);
  const dyna_matmul &product = p->product;
  if (dyna_status status = checkMatmul(context, &product, name))
    return status;
  if (dyna_status status =
          checkWeight(context, &p->form->weight, p->form->values, name))
    return status;
  if (product.described ||
      (product.transpose_a && (product.transpose_b || product.epilogue)))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s with a described epilogue, an epilogue behind a gradient, "
                "or both operands transposed",
                name);
  return checkWeightShape(context, *p, name);
}

dyna_status dyna::checkSparseValues(dyna_context *context,
                                    const dyna_sparse_values *p,
                                    const char *name) {
  if (!p || !p->form)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s without a description, or without a form", name);
  const dyna_sparse_weight &weight = p->form->weight;
  if (dyna_status status = checkWeight(context, &weight, p->form->values, name))
    return status;
  if (p->element_bytes != 8 && p->element_bytes != 4 && p->element_bytes != 2)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s of elements of %d bytes: expected 8, 4 or 2", name,
                p->element_bytes);
  return checkMatrix(context, p->dense, p->stride, weight.rows, weight.columns,
                     "the dense weight", name);
}
