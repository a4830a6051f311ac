//===- Places.cpp - Copies rows from one place to another -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/wire/Strips.h"
#include "runtime/device/Failure.h"
#include "runtime/device/host/HostKernels.h"

using namespace dyna;

dyna_status host::placeRows(dyna_context *context, const dyna_place *p) {
  if (!dyna_is_place(p))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "place_rows of rows that are not there, that overlap, or whose "
                "elements are added and none of f32, f64 and bf16");
  static_assert(kReplaces == DYNA_REPLACES);
  placeStrips(p->added_as,
              {{const_cast<void *>(p->source), p->rows, p->row_bytes,
                p->source_stride}},
              {{p->target, p->rows, p->row_bytes, p->target_stride}});
  return DYNA_OK;
}
