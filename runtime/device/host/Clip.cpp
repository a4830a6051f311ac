//===- Clip.cpp - Computes the factor of clipping -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/DeviceLimits.h"
#include "runtime/device/Failure.h"
#include "runtime/device/host/HostKernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dyna;

dyna_status host::noteLosses(dyna_context *context, const double *losses,
                             int64_t count, double *squaredNorm) {
  if (count < 0 || (count > 0 && !losses) || !squaredNorm)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "note_losses of %d losses: they and a norm must be there",
                count);
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(losses[i]))
      *squaredNorm = std::nan("");
  return DYNA_OK;
}

dyna_status host::clipNorm(dyna_context *context, const dyna_clip *p) {
  if (!p || p->count < 0 || (p->count > 0 && !p->squared_norms) || !p->norm ||
      !p->scale || !p->skips_left)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "clip_norm without squared norms, or without a place for the "
                "norm, the factor and the steps that may be passed over");
  double sum = 0;
  for (int64_t i = 0; i < p->count; ++i)
    sum += p->squared_norms[i];
  double norm = std::sqrt(sum);
  const double applied = p->limit > 0 ? std::min(norm, p->limit) : norm;
  if (applied > DYNA_LARGEST_NORM)
    norm = std::numeric_limits<double>::infinity();
  *p->norm = norm;
  if (!std::isfinite(norm) && *p->skips_left >= 0)
    --*p->skips_left;
  *p->scale = !std::isfinite(norm) || *p->skips_left < 0 ? std::nan("")
              : p->limit > 0 && norm > p->limit          ? p->limit / norm
                                                         : 1;
  return DYNA_OK;
}
